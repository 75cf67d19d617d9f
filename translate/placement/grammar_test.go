package placement

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestExamplesAreRead(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		require.False(t, seen[k.Name], "%s is there twice", k.Name)
		seen[k.Name] = true
		require.NotEmpty(t, k.Meaning, k.Name)
		require.NotEmpty(t, k.Values, k.Name)
		r, err := Parse(Header, k.Name+"="+k.Example, nil)
		require.NoError(t, err, k.Name)
		require.Equal(t, k.Example, r.Pairs()[k.Name], "the example of %s is canonical", k.Name)
	}
}

func TestValuesHaveOneForm(t *testing.T) {
	cases := map[string]string{
		"memory=4096":                           "memory=4GiB",
		"memory=512MiB":                         "memory=512MiB",
		"memory=1536":                           "memory=1536MiB",
		"lifetime=3600":                         "lifetime=1h",
		"pause=true":                            "pause=filesystem",
		" cpu = 2 ;; rank = cost , startup ; ":  "cpu=2; rank=cost,startup",
		"region=eu,ch+fra1+eu,ch":               "region=eu,ch+fra1",
		"rank=cost; isolation=vm; exec=false":   "isolation=vm; exec=false; rank=cost",
		"idempotency-key=a b=c":                 "idempotency-key=a b=c",
		"":                                      "",
		"verified-isolation=true;gpu-count=2":   "verified-isolation=true; gpu=any; gpu-count=2",
		"network=internet_off,allow_domains":    "network=internet_off,allow_domains",
		"provider=modal;fallback=e2b,local":     "provider=modal; fallback=e2b,local",
		"affinity=build/7:x@y;spread-mode=hard": "affinity=build/7:x@y; spread-mode=hard",
	}
	for line, want := range cases {
		r, err := Parse(Header, line, nil)
		require.NoError(t, err, line)
		require.Equal(t, want, r.String(), line)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	classes := Classes{"ci": {}}
	cases := []struct {
		from Source
		line string
		says []string
	}{
		{Header, "isolaton=vm", []string{`"isolaton"`, `"isolation" may be meant`, "X-Isthmus-Require"}},
		{Header, "Isolation=vm", []string{`"Isolation"`, `"isolation" may be meant`}},
		{Metadata, "colour=red", []string{`"colour"`, "the metadata", "docs/placement.md"}},
		{Header, "isolation", []string{"key=value"}},
		{Header, "=vm", []string{`""`}},
		{Header, "isolation=", []string{"isolation", "process, container, gvisor, vm, microvm"}},
		{Header, "isolation=unknown", []string{"unknown", "microvm"}},
		{Header, "isolation=vm;isolation=gvisor", []string{"isolation", "twice"}},
		{Header, "cpu=0", []string{"cpu", "from 1 to 1024"}},
		{Header, "cpu=1.5", []string{"cpu", "whole number"}},
		{Header, "memory=4GB", []string{"memory", "4GiB"}},
		{Header, "memory=9999999999GiB", []string{"memory"}},
		{Header, "lifetime=10ms", []string{"lifetime", "whole seconds"}},
		{Header, "pools=a,,b", []string{"pools", "name"}},
		{Header, "pools=a,b,a", []string{"pools", "a is there twice"}},
		{Header, "fallback=e2b,e2b", []string{"fallback", "twice"}},
		{Header, "region=eu+", []string{"region"}},
		{Header, "rank=cost,cost", []string{"rank", "twice"}},
		{Header, "rank=order,cost", []string{"rank", "alone"}},
		{Header, "rank=price", []string{"rank", "cost"}},
		{Header, "exec=yes", []string{"exec", "true or false"}},
		{Header, "pause=disk", []string{"pause", "filesystem, memory"}},
		{Header, "network=none", []string{"network", "internet_off"}},
		{Header, "affinity=a b", []string{"affinity", "letters"}},
		{Header, "class=nightly", []string{"nightly", "ci"}},
		{Header, "labels=" + strings.Repeat("a", 2000), []string{"labels", "bytes"}},
		{Policy, "idempotency-key=k", []string{"idempotency-key", "the metadata or after"}},
		{PoolDefault, "provider=modal", []string{"provider", "the key's policy or after"}},
	}
	for _, c := range cases {
		_, err := Parse(c.from, c.line, classes)
		require.Error(t, err, c.line)
		var typed *adapters.Error
		require.ErrorAs(t, err, &typed, c.line)
		require.Equal(t, adapters.KindInvalid, typed.Kind, c.line)
		require.Equal(t, CodeInvalidRequirement, typed.Code, c.line)
		for _, part := range c.says {
			require.Contains(t, err.Error(), part, c.line)
		}
	}
}

func TestMetadataIsReadByItsPrefix(t *testing.T) {
	metadata := map[string]string{"isthmus:isolation": "gvisor", "isthmus:pty": "true", "owner": "me", "isthmus": "x"}
	r, err := FromMetadata(metadata, nil)
	require.NoError(t, err)
	require.Equal(t, "isolation=gvisor; pty=true", r.String())
	_, err = FromMetadata(map[string]string{"isthmus:": "x"}, nil)
	require.Error(t, err)
}

func TestClassesStandForRequirements(t *testing.T) {
	classes, err := ParseClasses(map[string]map[string]string{"ci": {"workload": "bursty", "cpu": "4", "pty": "false"}})
	require.NoError(t, err)
	r, err := Parse(Header, "class=ci; cpu=2", classes)
	require.NoError(t, err)
	require.Equal(t, "cpu=2; pty=false; workload=bursty; class=ci", r.String())
	require.Equal(t, "cpu=4; pty=false; workload=bursty", classes["ci"].String(), "a class is not changed by its use")

	_, err = ParseClasses(map[string]map[string]string{"a": {"class": "b"}, "b": {}})
	require.ErrorContains(t, err, "class a")
	_, err = ParseClasses(map[string]map[string]string{"a": {"cpus": "1"}})
	require.ErrorContains(t, err, `"cpu" may be meant`)
}

func FuzzParse(f *testing.F) {
	for _, k := range Keys() {
		f.Add(k.Name + "=" + k.Example)
	}
	f.Add("pools=a,b; region=eu,ch+fra1; exec=false; memory=1; lifetime=90m; ; idempotency-key== =")
	f.Fuzz(func(t *testing.T, line string) {
		r, err := Parse(Header, line, nil)
		if err != nil {
			require.Equal(t, adapters.KindInvalid, adapters.KindOf(err))
			return
		}
		again, err := Parse(Header, r.String(), nil)
		require.NoError(t, err, r.String())
		require.Equal(t, r, again)
		record, err := json.Marshal(r)
		require.NoError(t, err)
		var read Requirements
		require.NoError(t, json.Unmarshal(record, &read))
		require.Equal(t, r, read)
	})
}
