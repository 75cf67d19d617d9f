package vercel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestImagesOfOtherRegistriesAreRefused(t *testing.T) {
	for _, image := range []string{"", "vercel/sandbox/universal:latest", "repo", "repo:tag", "vcr.vercel.com/team/project/repo:tag", "team/project/repo"} {
		require.NoError(t, checkImage(image), image)
	}
	for image, word := range map[string]string{
		"docker.io/library/debian": "docker.io", "ghcr.io/a/b:1": "ghcr.io", "localhost/a": "localhost", "127.0.0.1:5000/a": "127.0.0.1:5000",
		"no image": "no image", "UPPER": "UPPER",
	} {
		require.ErrorContains(t, checkImage(image), word)
		_, err := newPlace(Config{Token: func() (string, error) { return "", nil }, Team: "t", Project: "p", Templates: []Template{{Name: "base", Image: image}}})
		require.ErrorContains(t, err, word)
	}
}

func TestImagesOfTheOwnRegistryAreTemplates(t *testing.T) {
	p := newTestPlace(t, nil)
	found, err := p.Resolve(t.Context(), "vcr.vercel.com/team/project/repo:tag")
	require.NoError(t, err)
	image, err := p.image(found)
	require.NoError(t, err)
	require.Equal(t, "vcr.vercel.com/team/project/repo:tag", image)
	_, err = p.Resolve(t.Context(), "docker.io/library/debian")
	require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
	_, err = p.Resolve(t.Context(), "nothing")
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.ErrorContains(t, err, "base")
}

// TestPlans holds what a create asks for against the limits of a plan, in the vendor's units.
func TestPlans(t *testing.T) {
	for plan, c := range map[string]struct {
		cpu  int
		life time.Duration
	}{"hobby": {4, 45 * time.Minute}, "pro": {8, 24 * time.Hour}, "enterprise": {32, 24 * time.Hour}} {
		t.Run(plan, func(t *testing.T) {
			p, err := newPlace(Config{Token: func() (string, error) { return "", nil }, Team: "t", Project: "p", Plan: plan})
			require.NoError(t, err)
			d := p.Describe()
			require.Equal(t, adapters.Resources{CPU: c.cpu, MemoryMB: c.cpu * 2048}, d.Max)
			spec := adapters.Spec{BoxID: "i1", Template: adapters.Template{Name: "base"}, Resources: adapters.Resources{CPU: 1, MemoryMB: 2049}}
			body, err := p.body(spec)
			require.NoError(t, err)
			require.Equal(t, 2, body.Resources.VCPUs, "memory comes with CPUs")
			require.Equal(t, c.life.Milliseconds(), body.Timeout)
			require.False(t, body.Persistent)
			spec.Envd.Deadline = time.Now().Add(10 * time.Minute)
			body, err = p.body(spec)
			require.NoError(t, err)
			require.InDelta(t, (10*time.Minute + slack).Milliseconds(), body.Timeout, 5000)
			spec.Envd.Deadline = time.Now().Add(100 * time.Hour)
			body, err = p.body(spec)
			require.NoError(t, err)
			require.Equal(t, c.life.Milliseconds(), body.Timeout)
			spec.Resources.CPU = c.cpu + 1
			_, err = p.body(spec)
			require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
		})
	}
	_, err := newPlace(Config{Token: func() (string, error) { return "", nil }, Team: "t", Project: "p", Plan: "free"})
	require.ErrorContains(t, err, "hobby, pro, enterprise")
}
