package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaultsAreValid(t *testing.T) {
	config, err := Load("")
	require.NoError(t, err)
	require.NoError(t, config.Check())
	for _, empty := range []string{"", "# only a comment\n", "limits:\n"} {
		parsed, err := Parse([]byte(empty))
		require.NoError(t, err)
		require.Equal(t, Default(), parsed)
	}
}

func TestOneDocumentOnly(t *testing.T) {
	for text, ok := range map[string]bool{
		"---\nlisten: 127.0.0.1:1\n": true, "listen: 127.0.0.1:1\n...\n": true, "listen: 127.0.0.1:1\n---\ndata: /x\n": false,
	} {
		_, err := Parse([]byte(text))
		require.Equal(t, ok, err == nil, "%q: %v", text, err)
	}
}

func TestEveryField(t *testing.T) {
	config, err := Parse([]byte(`
listen: 0.0.0.0:80
data: /var/lib/isthmus
domain: sandbox.example.com:8443
operator: {listen: "127.0.0.1:9100"}
limits: {max_sandboxes: 100, team_concurrency: 20, longest_life: 36h, cpu: 8, memory_mb: 4096, disk_mb: 1000}
local:
  isolation: process
  allow_single_id: false
  egress: none
  allow_private: [10.1.0.0/16, "fd00::/8"]
  resolvers: ["10.0.0.2:53"]
  first_id: 200000
  processes: 100
  warm: {base: 4, other: 0}
  images: {code-interpreter-v1: base}
`))
	require.NoError(t, err)
	require.Equal(t, 36*time.Hour, config.Limits.LongestLife)
	require.Equal(t, 20, config.Limits.TeamConcurrency)
	require.Equal(t, []string{"10.1.0.0/16", "fd00::/8"}, config.Local.AllowPrivate)
	require.Equal(t, "base", config.Local.Images["code-interpreter-v1"])
	require.Equal(t, map[string]int{"base": 4, "other": 0}, config.Local.Warm)
	require.Equal(t, "127.0.0.1:9100", config.Operator.Listen)
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := Parse([]byte(`
listen: 3000
dta: ./data
domain: UPPER.example
tls: {cert: /nowhere/cert.pem}
operator: yes please
limits: {max_sandboxes: many, longest_life: 24, cpu: -1, disk_mb: 1.5, memory_mb: 99999999999999999999}
local:
  isolation: jail
  egress: some
  allow_private: [10.0.0.1, 5]
  resolvers: 10.0.0.2
  images: {Bad Name: ""}
  allow_single_id: maybe
  warm: {base: -1, other: 101, third: many}
`))
	var faults Faults
	require.ErrorAs(t, err, &faults)
	var paths []string
	for _, fault := range faults {
		paths = append(paths, fault.Path)
	}
	require.Subset(t, paths, []string{
		"listen", "dta", "domain", "tls", "tls.cert", "operator", "limits.max_sandboxes", "limits.longest_life", "limits.cpu",
		"limits.disk_mb", "limits.memory_mb", "local.isolation", "local.egress", "local.allow_private[0]", "local.allow_private[1]",
		"local.resolvers", "local.images.Bad Name", "local.allow_single_id",
		"local.warm.base", "local.warm.other", "local.warm.third",
	})
	require.Contains(t, err.Error(), "dta: is not known: the fields here are classes, data, domain, limits, listen")
}

func TestFaultsThatServeWouldMeet(t *testing.T) {
	for text, says := range map[string]string{
		"domain: https://example.com":                                               "domain: must be a host name without https://",
		"domain: example.com/e2b":                                                   "domain: must be a host name without https://",
		"listen: 127.0.0.1:4000\noperator: {listen: 127.0.0.1:4000}":                "operator.listen: is that of listen",
		"pools: [{name: a, provider: e2b, credential: {env: A}, api_url: ftp://x}]": "pools[0].api_url: must be a URL such as https://",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
	_, err := Parse([]byte("listen: 127.0.0.1:0\noperator: {listen: 127.0.0.1:0}"))
	require.NoError(t, err, "two ports that are yet to be found")
}

func TestNotYAML(t *testing.T) {
	for _, text := range []string{"a: [", "listen: a\nlisten: b\n", "- a list\n", "just text"} {
		_, err := Parse([]byte(text))
		require.Error(t, err, text)
	}
}

func TestSecrets(t *testing.T) {
	valid := func(key string) bool { return strings.HasPrefix(key, "e2b_") }
	env := map[string]string{"ISTHMUS_API_KEY": "wrong", "ISTHMUS_ADMIN_TOKEN": "short"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	_, err := ReadSecrets(lookup, valid)
	require.ErrorContains(t, err, "ISTHMUS_API_KEY")
	require.ErrorContains(t, err, "ISTHMUS_ADMIN_TOKEN")
	require.NotContains(t, err.Error(), "wrong")
	env = map[string]string{"ISTHMUS_API_KEY": "e2b_x", "ISTHMUS_ADMIN_TOKEN": strings.Repeat("x", 16)}
	secrets, err := ReadSecrets(lookup, valid)
	require.NoError(t, err)
	require.Equal(t, "e2b_x", secrets.APIKey)
	env = nil
	_, err = ReadSecrets(lookup, valid)
	require.NoError(t, err)
}
