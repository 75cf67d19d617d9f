package structure

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/isthmus/isthmus/"

// mayImport is the import table of the design: the folder on the left may import the ones on the right, and
// itself. The longest matching folder decides.
var mayImport = map[string][]string{
	"openapi":                {},
	"envd":                   {},
	"store":                  {},
	"adapters":               {"envd"},
	"adapters/bootstrap":     {"adapters", "envd"},
	"adapters/daytona":       {"adapters", "adapters/bootstrap", "envd"},
	"adapters/local":         {"adapters", "adapters/bootstrap", "envd"},
	"adapters/kubernetes":    {"adapters", "adapters/bootstrap", "envd"},
	"adapters/vercel":        {"adapters", "adapters/bootstrap", "envd"},
	"adapters/modal":         {"adapters", "adapters/bootstrap", "envd"},
	"translate":              {"openapi", "adapters", "store"},
	"translate/placement":    {"adapters", "store"},
	"server":                 {"openapi", "translate", "adapters", "store", "envd"},
	"server/fleet":           {"translate/placement", "adapters", "store", "envd"}, // a Spec carries envd.Config
	"conformance":            {"adapters", "envd", "openapi"},
	"conformance/boxes":      {"adapters", "adapters/local", "envd"},
	"conformance/simulators": {"adapters", "adapters/local", "envd"},
	"cmd":                    {"openapi", "envd", "server", "translate", "adapters", "store", "conformance"},
	"cmd/envd":               {"envd", "adapters/local/inside"},
	"cmd/sudo":               {},
	"adapters/local/inside":  {"adapters/local/egress/inside", "envd"},
}

// contractOnly are the folders of which a rule means the package itself, not what lies below it: a sibling
// provider is not the contract.
var contractOnly = map[string]bool{"adapters": true}

type goPackage struct {
	ImportPath   string
	Doc          string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		rule := ruleOf(from)
		allowed, known := mayImport[rule]
		require.True(t, known, "%s lies in no folder of the design", p.ImportPath)
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if ours && !permitted(rule, allowed, to) {
				t.Errorf("%s imports %s: the folder %s may import %v only", from, to, rule, allowed)
			}
		}
	}
}

func TestNothingImportsCmd(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range append(append(p.Imports, p.TestImports...), p.XTestImports...) {
			require.False(t, strings.HasPrefix(imp, module+"cmd/"), "%s imports %s", p.ImportPath, imp)
		}
	}
}

func TestEveryPackageHasADoc(t *testing.T) {
	for _, p := range packages(t) {
		require.NotEmpty(t, p.Doc, "%s has no package comment", p.ImportPath)
	}
}

// ruleOf returns the longest folder of the table that holds the package.
func ruleOf(pkg string) string {
	for dir := pkg; dir != "."; dir = filepath.Dir(dir) {
		if _, ok := mayImport[dir]; ok {
			return dir
		}
	}
	return ""
}

func permitted(rule string, allowed []string, to string) bool {
	if to == rule || strings.HasPrefix(to, rule+"/") && !contractOnly[rule] {
		return true
	}
	for _, a := range allowed {
		// cmd and a provider's own parts may go below a folder; a contract is one package.
		if to == a || strings.HasPrefix(to, a+"/") && (!contractOnly[a] || rule == "cmd") {
			return true
		}
	}
	return false
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Dir,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		require.NoError(t, dec.Decode(&p))
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

func root(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	return filepath.Dir(strings.TrimSpace(string(out)))
}
