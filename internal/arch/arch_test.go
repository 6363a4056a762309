package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of the module whose packages are checked.
const module = "railhead"

// allowed lists, for each package or tree of packages (with a trailing
// slash), which packages of ours it may import. What has no row may not exist:
// a new package gets its place here and in docs/architecture.md first.
var allowed = map[string][]string{
	// 1 facts
	"internal/cnicall":        {},
	"internal/kernel/archive": {},
	"internal/kernel/devlink": {},
	"internal/kernel/ethtool": {},
	"internal/kernel/netns":   {},
	"internal/kernel/nft":     {},
	"internal/kernel/rdmanl":  {},
	"internal/kernel/rtnl":    {},
	"internal/kernel/sysfs":   {},
	"internal/kernel/uevent":  {},
	"internal/listwatch":      {},
	// the kernel of a node as one thing, running or simulated
	"internal/kernel/node":       {"internal/kernel/"},
	"internal/kernel/fakekernel": {"internal/kernel/"},
	"internal/simulation":        {"internal/kernel/"},
	// what users write
	"api":                    {},
	"api/cni/v1":             {},
	"api/railhead/v1alpha1":  {},
	"api/spiderpool/v2beta1": {},
	"api/sriovnetwork/v1":    {},
	// for tests of all levels
	"internal/devicemanagertest": {},
	"internal/golden":            {},
	"internal/loopback":          {},
	"internal/kubetest":          {},
	"internal/kernel/kerneltest": {"internal/kernel/"},
	// 2 models
	"internal/inventory":    {"internal/kernel/"},
	"internal/ipam":         {"api/"},
	"internal/ipam/journal": {},
	// 3 answers
	"internal/attach":                   {"internal/attach/routing", "internal/inventory", "internal/kernel/", "internal/policy"},
	"internal/attach/plugin":            {"api/", "internal/attach", "internal/attach/routing", "internal/npwg", "internal/policy"},
	"internal/attach/probe":             {"internal/kernel/"},
	"internal/attach/record":            {"internal/attach", "internal/ipam/journal", "internal/kernel/"},
	"internal/attach/routing":           {"api/", "internal/policy"},
	"internal/check":                    {"internal/inventory", "internal/kernel/"},
	"internal/counters":                 {"internal/inventory", "internal/kernel/"},
	"internal/attribution":              {"internal/inventory", "internal/kernel/"},
	"internal/attribution/kube":         {"internal/attribution", "internal/listwatch"},
	"internal/attribution/podresources": {},
	"internal/policy":                   {"api/"},
	"internal/policy/annotation":        {"api/", "internal/policy"},
	"internal/policy/manifest":          {"api/"},
	"internal/policy/injection":         {"api/", "internal/policy", "internal/policy/annotation"},
	"internal/npwg":                     {"api/", "internal/policy", "internal/policy/annotation"},
	"internal/policy/nad":               {"api/", "internal/policy"},
	"internal/ipam/granter":             {"api/", "internal/ipam"},
	"internal/ipam/holder":              {"api/", "internal/ipam", "internal/ipam/journal"},
	"internal/ipam/selection":           {"api/", "internal/ipam", "internal/ipam/holder", "internal/policy", "internal/policy/annotation"},
	"internal/ipam/modeltest":           {"api/", "internal/ipam", "internal/ipam/"},
	// 4 consumers
	"internal/cniinstall":             {},
	"internal/exporter":               {"internal/inventory", "internal/counters", "internal/attribution", "internal/kernel/"},
	"internal/top":                    {},
	"internal/agent/cluster":          {"api/", "internal/listwatch", "internal/policy", "internal/policy/"},
	"internal/cniserver":              {"api/", "internal/agent/address", "internal/agent/cluster", "internal/attach", "internal/attach/", "internal/cnicall", "internal/cniserver/", "internal/ipam", "internal/ipam/", "internal/kernel/", "internal/npwg", "internal/policy", "internal/policy/"},
	"internal/cniserver/delegate":     {},
	"internal/agent/address":          {"api/", "internal/ipam", "internal/ipam/", "internal/policy", "internal/attribution", "internal/kernel/"},
	"internal/controller/address":     {"api/", "internal/ipam", "internal/ipam/", "internal/policy"},
	"internal/controller/coordinator": {"api/", "internal/policy"},
	"internal/controller/network":     {"api/", "internal/policy", "internal/policy/nad"},
	"internal/controller/pool":        {"api/", "internal/policy"},
	"internal/controller/subnet":      {"api/", "internal/policy"},
	"internal/overview":               {"api/", "internal/ipam", "internal/ipam/", "internal/policy", "internal/policy/"},
	"internal/validation":             {"api/", "internal/policy", "internal/policy/"},
	"internal/webhook":                {"api/", "internal/policy", "internal/policy/"},
	"internal/webhook/certificates":   {},
	"internal/webhook/registration":   {"api/", "internal/policy"},
	// 5 agent and controller, put together, and binaries
	"internal/agent":          {"internal/"},
	"internal/controller":     {"api/", "internal/"},
	"cmd/railhead":            {"api/", "internal/"},
	"cmd/railhead-cni":        {"internal/cnicall"},
	"cmd/railhead-controller": {"internal/"},
	// around it
	"internal/arch":   {},
	"internal/versus": {},
}

// source is a Go file with the package it belongs to, relative to the module.
type source struct {
	pkg  string
	path string
	file *ast.File
}

// TestImports holds every file that is no test against the table. It parses
// the files itself, so that the test's cache sees which files it depends on.
func TestImports(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		row, ok := rowOf(s.pkg)
		if !ok {
			t.Errorf("%s: package %s has no row in the table of this test", s.path, s.pkg)
			continue
		}
		for _, imported := range ours(t, s.file) {
			if !matches(allowed[row], imported) {
				t.Errorf("%s: %s may not import %s, only %q", s.path, s.pkg, imported, allowed[row])
			}
		}
	}
}

// TestRows finds rows of packages that are gone.
func TestRows(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if row, ok := rowOf(s.pkg); ok {
			used[row] = true
		}
	}
	for row := range allowed {
		if !used[row] {
			t.Errorf("row %q matches no package", row)
		}
	}
}

// TestPackageComments wants one package comment a package, which says what it
// answers.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	comments := map[string]int{}
	for _, s := range sources(t) {
		comments[s.pkg] += 0
		if s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != "" {
			comments[s.pkg]++
		}
	}
	for pkg, n := range comments {
		if n != 1 {
			t.Errorf("package %s has %d package comments, wanted is 1", pkg, n)
		}
	}
}

// sources parses all Go files of the module but tests.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var list []source
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if isOtherModule(root, name) || strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") && path.Dir(name) != "internal/arch" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		list = append(list, source{pkg: path.Dir(name), path: name, file: file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no Go files found")
	}
	return list
}

// isOtherModule tells whether a folder below the root has a go.mod of its own.
func isOtherModule(root, name string) bool {
	if name == "." {
		return false
	}
	_, err := os.Stat(filepath.Join(root, name, "go.mod"))
	return err == nil
}

// ours returns the packages of the module that a file imports.
func ours(t *testing.T, file *ast.File) []string {
	t.Helper()
	var list []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
			list = append(list, rest)
		}
	}
	return list
}

// rowOf finds the row of a package: its own, or that of a tree it is in.
func rowOf(pkg string) (string, bool) {
	if _, ok := allowed[pkg]; ok {
		return pkg, true
	}
	for row := range allowed {
		if strings.HasSuffix(row, "/") && strings.HasPrefix(pkg, row) {
			return row, true
		}
	}
	return "", false
}

func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(allowed string) bool {
		return pkg == allowed || strings.HasSuffix(allowed, "/") && strings.HasPrefix(pkg, allowed)
	})
}
