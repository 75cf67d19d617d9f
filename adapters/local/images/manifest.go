package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// maxManifest bounds the JSON files of an image archive.
const maxManifest = 4 << 20

// manifest is what is needed of an image's manifest and configuration.
type manifest struct {
	id     string // of the image's content
	layers []blob
	env    map[string]string
}

// blob is one file of an image archive; sha256 is empty when it is not known.
type blob struct{ name, sha256 string }

// descriptor is OCI's reference to a blob.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// blob returns the file that the descriptor means.
func (d descriptor) blob() (blob, error) {
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	if !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return blob{}, fmt.Errorf("digest %q is not one of SHA-256", d.Digest)
	}
	return blob{name: "blobs/sha256/" + sum, sha256: sum}, nil
}

// fits says whether the image may run on this machine.
func (d descriptor) fits() bool {
	return d.Platform == nil || (d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH)
}

// readManifest reads an OCI layout, or else what docker save wrote.
func readManifest(a archive) (manifest, error) {
	var index struct {
		Manifests []descriptor `json:"manifests"`
	}
	if err := readJSON(a, "index.json", &index); err == nil {
		return readOCI(a, index.Manifests, 0)
	}
	return readDocker(a)
}

// readOCI takes the one image for this machine, looking through nested lists.
func readOCI(a archive, list []descriptor, depth int) (manifest, error) {
	var fitting []descriptor
	for _, d := range list {
		if d.fits() {
			fitting = append(fitting, d)
		}
	}
	switch {
	case len(fitting) != 1:
		return manifest{}, fmt.Errorf("it holds %d images for linux/%s: save exactly one", len(fitting), runtime.GOARCH)
	case depth > 3:
		return manifest{}, errors.New("its lists are nested too deeply")
	}
	b, err := fitting[0].blob()
	if err != nil {
		return manifest{}, err
	}
	var m struct {
		Manifests []descriptor `json:"manifests"`
		Config    descriptor   `json:"config"`
		Layers    []descriptor `json:"layers"`
	}
	if err := readJSON(a, b.name, &m); err != nil {
		return manifest{}, err
	}
	if len(m.Manifests) > 0 {
		return readOCI(a, m.Manifests, depth+1)
	}
	out := manifest{id: b.sha256[:16]}
	for _, l := range m.Layers {
		layer, err := l.blob()
		if err != nil {
			return out, err
		}
		out.layers = append(out.layers, layer)
	}
	config, err := m.Config.blob()
	if err != nil {
		return out, err
	}
	out.env, err = readEnv(a, config.name)
	return out, err
}

// readDocker reads the manifest.json of docker save; its layers have no sums.
func readDocker(a archive) (manifest, error) {
	var list []struct {
		Config string
		Layers []string
	}
	if err := readJSON(a, "manifest.json", &list); err != nil {
		return manifest{}, err
	}
	if len(list) != 1 {
		return manifest{}, fmt.Errorf("it holds %d images: save exactly one", len(list))
	}
	m := manifest{}
	for _, l := range list[0].Layers {
		m.layers = append(m.layers, blob{name: l})
	}
	sum := list[0].Config[strings.LastIndexByte(list[0].Config, '/')+1:]
	sum = strings.TrimSuffix(sum, ".json")
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return m, fmt.Errorf("its configuration is named %q, not by its sum", list[0].Config)
	}
	m.id = sum[:16]
	var err error
	m.env, err = readEnv(a, list[0].Config)
	return m, err
}

// readEnv reads the environment variables of an image's configuration.
func readEnv(a archive, name string) (map[string]string, error) {
	var c struct {
		Config struct{ Env []string } `json:"config"`
	}
	if err := readJSON(a, name, &c); err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, e := range c.Config.Env {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	return env, nil
}

func readJSON(a archive, name string, into any) error {
	f, err := a.open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
