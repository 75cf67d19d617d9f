package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// render renders the chart as Helm does. The chart uses Go templates and two functions, so that it takes no Helm to
// check it: another function is an error here.
func render(t *testing.T, set map[string]any) string {
	t.Helper()
	text, err := os.ReadFile(top(t, "deploy", "chart", "values.yaml"))
	require.NoError(t, err)
	values := map[string]any{}
	require.NoError(t, yaml.Unmarshal(text, &values))
	for name, value := range set {
		require.Contains(t, values, name)
		values[name] = value
	}
	functions := template.FuncMap{"quote": func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) }}
	files, err := filepath.Glob(top(t, "deploy", "chart", "templates", "*.yaml"))
	require.NoError(t, err)
	var out bytes.Buffer
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		parsed, err := template.New(filepath.Base(file)).Option("missingkey=error").Funcs(functions).Parse(string(source))
		require.NoError(t, err)
		out.WriteString("---\n")
		require.NoError(t, parsed.Execute(&out, map[string]any{"Values": values, "Release": map[string]any{"Namespace": "isthmus", "Name": "isthmus"}}))
	}
	return out.String()
}

// documents are the objects of a manifest.
func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for part := range strings.SplitSeq(text, "\n---\n") {
		object := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(strings.TrimPrefix(part, "---\n")), &object), "%s", part)
		if len(object) > 0 {
			all = append(all, object)
		}
	}
	return all
}

// TestManifests compares the plain manifests with the chart. ISTHMUS_WRITE=1 writes them.
func TestManifests(t *testing.T) {
	const head = "# Rendered from deploy/chart with its default values, in the namespace isthmus: see docs/kubernetes.md.\n"
	file, want := top(t, "deploy", "manifests", "isthmus.yaml"), head+render(t, nil)
	if os.Getenv("ISTHMUS_WRITE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "the manifests are not those of the chart: ISTHMUS_WRITE=1 go test ./conformance/kubernetes -run TestManifests")
	require.GreaterOrEqual(t, len(documents(t, want)), 10)
	for _, object := range documents(t, render(t, map[string]any{"runtimeClass": "gvisor", "isolation": "gvisor", "reach": "exec"})) {
		require.NotEmpty(t, object["kind"], "%v", object)
	}
}

// role is the role of the chart for some values.
func role(t *testing.T, set map[string]any) []rbacv1.PolicyRule {
	t.Helper()
	for _, object := range documents(t, render(t, set)) {
		if object["kind"] != "Role" {
			continue
		}
		text, err := yaml.Marshal(object["rules"])
		require.NoError(t, err)
		var rules []struct {
			APIGroups []string `yaml:"apiGroups"`
			Resources []string `yaml:"resources"`
			Verbs     []string `yaml:"verbs"`
		}
		require.NoError(t, yaml.Unmarshal(text, &rules))
		var found []rbacv1.PolicyRule
		for _, r := range rules {
			found = append(found, rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs})
		}
		return found
	}
	t.Fatal("the chart has no role")
	return nil
}
