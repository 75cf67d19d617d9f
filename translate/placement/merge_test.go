package placement

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// layers reads one line for each source.
func layers(t *testing.T, lines map[Source]string) []Stated {
	t.Helper()
	var stated []Stated
	for from, line := range lines { // in no order: Merge knows the precedence
		r, err := Parse(from, line, nil)
		require.NoError(t, err, line)
		stated = append(stated, Stated{from, r})
	}
	return stated
}

func TestPrecedence(t *testing.T) {
	cases := []struct {
		name  string
		lines map[Source]string
		want  string
	}{
		{"nothing", nil, ""},
		{"defaults fill", map[Source]string{PoolDefault: "cpu=4; isolation=gvisor", Header: "cpu=2"}, "isolation=gvisor; cpu=2"},
		{"a floor is raised", map[Source]string{Policy: "isolation=gvisor; cpu=2", Header: "isolation=microvm; cpu=8"}, "isolation=microvm; cpu=8"},
		{"and never lowered", map[Source]string{Policy: "isolation=microvm; cpu=4; lifetime=2h", Template: "memory=4GiB", Metadata: "isolation=container; cpu=1; memory=512", Header: "lifetime=60"},
			"isolation=microvm; cpu=4; memory=4GiB; lifetime=2h"},
		{"the header replaces the metadata", map[Source]string{Metadata: "isolation=microvm; rank=cost; pty=true", Header: "isolation=container; pty=false"},
			"isolation=container; pty=false; rank=cost"},
		{"preferences are replaced", map[Source]string{Policy: "rank=cost; near=us", Template: "rank=startup", Metadata: "rank=reliability", Header: "near=eu"}, "rank=reliability; near=eu"},
		{"pools are narrowed", map[Source]string{Policy: "pools=a,b,c", Template: "pools=b,c", Header: "pools=c,d,b"}, "pools=c,b"},
		{"kinds of GPU are narrowed", map[Source]string{Policy: "gpu=any", Template: "gpu=h100,l4", Header: "gpu=l4,t4"}, "gpu=l4"},
		{"any leaves them", map[Source]string{Policy: "gpu=l4", Header: "gpu=any"}, "gpu=l4"},
		{"lists are joined", map[Source]string{Policy: "labels=hipaa; network=internet_off", Header: "labels=eu-only,hipaa; network=allow_domains"},
			"network=internet_off,allow_domains; labels=hipaa,eu-only"},
		{"regions must all hold", map[Source]string{Policy: "region=eu", Header: "region=fra1,cdg1"}, "region=eu+fra1,cdg1"},
		{"a feature is added", map[Source]string{Policy: "pty=false", Header: "pty=true"}, "pty=true"},
		{"a destination replaces the fallback", map[Source]string{Policy: "fallback=a,b", Header: "provider=c"}, "provider=c"},
		{"a destination is narrowed", map[Source]string{Policy: "provider=a; fallback=b,c", Header: "provider=a; fallback=c"}, "provider=a; fallback=c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			merged, err := Merge(layers(t, c.lines)...)
			require.NoError(t, err)
			require.Equal(t, c.want, merged.String())
		})
	}
}

func TestContradictionsNameTheirLayers(t *testing.T) {
	cases := []struct {
		name  string
		lines map[Source]string
		says  []string
	}{
		{"pools", map[Source]string{Policy: "pools=a,b", Header: "pools=c"}, []string{"pools=c in the header", "pools=a,b in the key's policy"}},
		{"provider", map[Source]string{Template: "provider=a", Metadata: "provider=b"}, []string{"provider=b in the metadata", "provider=a in the template"}},
		{"fallback outside", map[Source]string{Policy: "provider=a; fallback=b", Header: "fallback=c"}, []string{"fallback=c", "provider=a"}},
		{"gpu", map[Source]string{Policy: "gpu=h100", Header: "gpu=l4"}, []string{"gpu=l4", "gpu=h100"}},
		{"a needed feature", map[Source]string{Template: "pty=true", Header: "pty=false"}, []string{"pty=false", "pty=true in the template"}},
		{"verified", map[Source]string{Policy: "verified-isolation=true", Metadata: "verified-isolation=false"}, []string{"verified-isolation"}},
		{"fallback repeats provider", map[Source]string{Header: "provider=a; fallback=b,a"}, []string{"fallback names a"}},
		{"affinity-mode alone", map[Source]string{Header: "affinity-mode=hard"}, []string{"affinity-mode"}},
		{"spread-mode alone", map[Source]string{Header: "spread-mode=soft"}, []string{"spread-mode"}},
		{"both hard", map[Source]string{Header: "affinity=x; affinity-mode=hard; spread=x; spread-mode=hard"}, []string{"affinity=x", "spread=x"}},
		{"rank by region", map[Source]string{Header: "rank=region"}, []string{"near"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Merge(layers(t, c.lines)...)
			require.Error(t, err)
			require.Equal(t, adapters.KindInvalid, adapters.KindOf(err))
			for _, part := range c.says {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestMergeLeavesItsLayersAlone(t *testing.T) {
	stated := layers(t, map[Source]string{Policy: "labels=a; pty=false; region=eu", Metadata: "labels=b; pty=true; region=de; exec=false"})
	before := []string{stated[0].String(), stated[1].String()}
	_, err := Merge(stated...)
	require.NoError(t, err)
	require.Equal(t, before, []string{stated[0].String(), stated[1].String()})
}
