package structure

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The budgets of the house. Tables, suites and flag lists are data, not logic: a function that is one is
// named in longByNature with the reason.
const (
	maxFunctionLines = 60
	maxFileLines     = 400
)

// longByNature lists functions over the budget, each with why that is right.
var longByNature = map[string]string{}

func TestFunctionsAndFilesStaySmall(t *testing.T) {
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "data") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			checkFile(t, top, path)
		}
		return nil
	})
	require.NoError(t, err)
}

func checkFile(t *testing.T, top, path string) {
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	if bytes.Contains(src, []byte("DO NOT EDIT")) {
		return
	}
	name, err := filepath.Rel(top, path)
	require.NoError(t, err)
	if lines := bytes.Count(src, []byte("\n")); lines > maxFileLines {
		t.Errorf("%s has %d lines, at most %d", name, lines, maxFileLines)
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range tree.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || longByNature[name+":"+fn.Name.Name] != "" {
			continue
		}
		if lines := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1; lines > maxFunctionLines {
			t.Errorf("%s: %s has %d lines, at most %d", name, fn.Name.Name, lines, maxFunctionLines)
		}
	}
}
