package repo

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// layers orders the packages. A package imports only from layers with a smaller number, and from the
// folders of its own tree. The deepest entry that a package lies in or under decides.
var layers = []struct {
	path  string
	layer int
	why   string
}{
	{"internal/display", 0, "text made safe to show: knows nothing of locks"},
	{"internal/proc", 1, "process identity and proof of death: every lock stands on it"},
	{"internal/vfs", 1, "the few file operations, and the only place that knows fsync"},
	{"internal/format", 2, "the lock file's bytes and the names beside a guarded file"},
	{"internal/seam", 2, "where tests take hold of files, clock and process"},
	{"internal/sweep", 3, "leftovers of dead writers, by their names"},
	{"internal/commit", 4, "one file replaced behind a fence: both families commit through it"},
	{"internal/jsontext", 0, "where the parts of a JSON text lie: knows nothing of what they mean"},
	{"internal/follow", 0, "wakes a reader when a folder changes: knows nothing of what is in it"},
	{"internal/estate", 5, "where an estate is, and its folders: the locks in it are for those above"},
	{"kernlock", 5, "kernel locks"},
	{"lockfile", 5, "the crash-safe lock file"},
	{"grant", 5, "the pure state machine of a container"},
	{"record", 6, "a file changed under a hold of either lock"},
	{"grant/local", 6, "the embedded store"},
	{"grant/session", 8, "an agent's commands, from one process to the next"},
	{"dispatch", 7, "an estate, its log and board"},
	{"register", 7, "what has landed"},
	{"grant/http", 7, "the store over HTTP: comes with the service, and nothing below may link HTTP"},
	{"internal/service", 9, "handlers and dashboard"},
	{"cmd", 10, "the programs: nothing imports them"},

	// Only tests import these, so they may see all that is below the programs.
	{"internal/vfs/vfstest", 2, "tests only: the crashable file system"},
	{"grant/granttest", 6, "tests only: what every store must pass"},
	{"internal/explore", 8, "tests only: the schedule explorer"},
	{"internal/repo", 11, "tests only"},
	{"internal/testsum", 11, "the test runner"},
	{"tests", 11, "tests only"},
}

// testsOnly may be imported by tests and by each other, by nothing that ships.
var testsOnly = []string{"internal/vfs/vfstest", "grant/granttest", "internal/explore", "internal/repo", "internal/testsum", "tests"}

// bans are what the layers alone do not say. They hold through any number of packages in between.
var bans = []struct{ from, to, why string }{
	{"grant", "", "grant is pure: no I/O, no clock of its own, so it imports nothing of ours"},
	{"kernlock", "lockfile", "the two families never meet: each only recognises and refuses the other's file"},
	{"lockfile", "kernlock", "the two families never meet: each only recognises and refuses the other's file"},
	{"kernlock", "internal/vfs", "kernlock calls the system directly: a lock through a file layer would be a layer's promise, not the kernel's"},
	{"record", "grant/local", "a record under a hold and a grant's store are two ways over the fence"},
	{"grant/local", "record", "a record under a hold and a grant's store are two ways over the fence"},
}

// in tells whether the package path lies in or under folder.
func in(path, folder string) bool {
	return path == folder || folder == "" || strings.HasPrefix(path, folder+"/")
}

// place returns the deepest entry of layers for path.
func place(path string) (entry string, layer int, ok bool) {
	for _, l := range layers {
		if in(path, l.path) && (!ok || len(l.path) > len(entry)) {
			entry, layer, ok = l.path, l.layer, true
		}
	}
	return entry, layer, ok
}

// checkImports holds a graph of our packages (paths below the module; the module's own root is ".")
// against layers, testsOnly and bans.
func checkImports(graph map[string][]string) []string {
	var problems []string
	for _, from := range sortedKeys(graph) {
		entry, layer, ok := place(from)
		if !ok {
			problemf(&problems, "%s has no layer: give it one in internal/repo, with its reason", from)
			continue
		}
		for _, to := range graph[from] {
			toEntry, toLayer, ok := place(to)
			if ok && toEntry != entry && toLayer >= layer {
				problemf(&problems, "%s imports %s: imports go downward only, and %s (layer %d) is not below %s (layer %d)", from, to, toEntry, toLayer, entry, layer)
			}
			if test := testsOnlyEntry(to); test != "" && testsOnlyEntry(from) == "" {
				problemf(&problems, "%s imports %s, which is for tests only", from, to)
			}
		}
		reached := reach(graph, from)
		for _, ban := range bans {
			// A ban on a package is one on its own folder; grant's other folders are other packages.
			if e, _, _ := place(from); e != ban.from {
				continue
			}
			for _, to := range reached {
				if toEntry, _, _ := place(to); toEntry != ban.from && in(to, ban.to) {
					problemf(&problems, "%s reaches %s: %s", from, to, ban.why)
				}
			}
		}
	}
	return problems
}

func testsOnlyEntry(path string) string {
	for _, t := range testsOnly {
		if in(path, t) {
			return t
		}
	}
	return ""
}

// reach lists what can be reached from a package, itself left out, in order.
func reach(graph map[string][]string, from string) []string {
	seen := map[string]bool{from: true}
	var list []string
	var visit func(string)
	visit = func(at string) {
		for _, to := range graph[at] {
			if !seen[to] {
				seen[to] = true
				list = append(list, to)
				visit(to)
			}
		}
	}
	visit(from)
	sort.Strings(list)
	return list
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func TestImportsGoDownward(t *testing.T) {
	for _, system := range systems {
		graph := map[string][]string{}
		for _, p := range goList(t, root(t), system, "-e", "./...") {
			path := strings.TrimPrefix(p.ImportPath, modulePath+"/")
			graph[path] = nil
			for _, imp := range p.Imports {
				if own, ok := strings.CutPrefix(imp, modulePath+"/"); ok {
					graph[path] = append(graph[path], own)
				}
			}
		}
		if len(graph) == 0 {
			t.Errorf("%s: go list tells of no package", system)
		}
		for _, p := range checkImports(graph) {
			t.Errorf("%s: %s", system, p)
		}
	}
}

func TestImportCheckSeesPlantedViolations(t *testing.T) {
	for _, c := range []struct {
		name  string
		graph map[string][]string
		want  []string
	}{
		{"the design as it is", map[string][]string{
			"cmd/stile": {"dispatch", "kernlock"}, "cmd/stiled": {"internal/service"}, "internal/service": {"register", "grant/local", "grant/http"},
			"dispatch": {"record"}, "record": {"kernlock", "lockfile"}, "grant/local": {"grant", "internal/vfs"},
			"kernlock": {"internal/proc"}, "lockfile": {"internal/proc", "internal/vfs", "lockfile/internal/names"}, "lockfile/internal/names": nil,
			"grant": nil, "internal/vfs/vfstest": {"internal/vfs"}, "internal/explore": {"lockfile", "internal/vfs/vfstest"},
		}, nil},
		{"upward", map[string][]string{"internal/proc": {"kernlock"}}, []string{"imports go downward only"}},
		{"sideways", map[string][]string{"dispatch": {"register"}}, []string{"imports go downward only"}},
		{"a program", map[string][]string{"internal/service": {"cmd/stile/x"}}, []string{"imports go downward only"}},
		{"http below the service", map[string][]string{"grant/local": {"grant/http"}}, []string{"imports go downward only"}},
		{"test code in what ships", map[string][]string{"dispatch": {"grant/granttest"}}, []string{"for tests only"}},
		{"a package nobody placed", map[string][]string{"helpers": nil}, []string{"has no layer"}},
		{"grant with one of ours", map[string][]string{"grant": {"internal/proc"}}, []string{"grant is pure"}},
		{"kernlock with lockfile", map[string][]string{"kernlock": {"lockfile"}}, []string{"downward", "never meet"}},
		{"lockfile with kernlock", map[string][]string{"lockfile": {"kernlock"}}, []string{"downward", "never meet"}},
		{"kernlock with vfs", map[string][]string{"kernlock": {"internal/vfs"}}, []string{"calls the system directly"}},
		{"kernlock with vfs in between", map[string][]string{"kernlock": {"internal/proc"}, "internal/proc": {"internal/vfs"}},
			[]string{"downward only", "kernlock reaches internal/vfs"}},
		{"record with local", map[string][]string{"record": {"grant/local"}}, []string{"downward", "two ways"}},
		{"local with record", map[string][]string{"grant/local": {"record"}}, []string{"downward", "two ways"}},
	} {
		t.Run(c.name, func(t *testing.T) { wantProblems(t, checkImports(c.graph), c.want...) })
	}
}

// heavy is what cmd/stile must not link: it starts like a small C tool, once for each command that a
// script runs, and each of these costs start-up time or brings in code that a lock has no use for.
var heavy = []struct{ path, why string }{
	{"net", "a lock needs no network; the service is stiled's"},
	{"net/http", "milliseconds at start; the service is stiled's"},
	{"net/url", "its start and that of net/netip, with a goroutine of its own, before each command"},
	{"google.golang.org/grpc", "milliseconds at start; later stores attach to the service"},
	{"github.com/prometheus", "metrics are the service's"},
	{"github.com/modelcontextprotocol", "MCP attaches to the service"},
	{"testing", "registers the test flags in a program that ships"},
	{"expvar", "links net/http"},
}

// checkLinked tells which of the packages linked on a system are heavy. On Windows net comes with
// golang.org/x/sys/windows, which takes one type from it: that much is no choice of ours.
func checkLinked(system string, deps []string) []string {
	var problems []string
	for _, dep := range deps {
		if dep == "net" && system == "windows" {
			continue
		}
		for _, h := range heavy {
			if dep == h.path || strings.Contains(h.path, ".") && in(dep, h.path) {
				problemf(&problems, "cmd/stile links %s: %s", dep, h.why)
			}
		}
	}
	return problems
}

func TestToolLinksNothingHeavy(t *testing.T) {
	dir := root(t)
	if _, err := os.Stat(filepath.Join(dir, "cmd", "stile")); os.IsNotExist(err) {
		return // nothing is linked yet
	}
	for _, system := range systems {
		for _, p := range goList(t, dir, system, "./cmd/stile") {
			for _, problem := range checkLinked(system, p.Deps) {
				t.Errorf("%s: %s", system, problem)
			}
		}
	}
}

func TestLinkCheckSeesHeavyPackages(t *testing.T) {
	wantProblems(t, checkLinked("linux", []string{
		"os", "net/netip", "net/url", "testing/fstest", "golang.org/x/sys/unix",
		"net", "net/http", "google.golang.org/grpc/codes", "github.com/prometheus/client_golang/prometheus",
		"github.com/modelcontextprotocol/go-sdk/mcp", "testing", "expvar",
	}), "links net/url", "links net:", "links net/http", "grpc/codes", "prometheus", "mcp", "testing", "expvar")

	wantProblems(t, checkLinked("windows", []string{"net", "net/http"}), "links net/http")

	// And go list must tell of a package linked through others: this test's own imports end in net.
	deps := goList(t, root(t), "linux", "net/http/httptest")[0].Deps
	if problems := checkLinked("linux", deps); len(problems) < 2 {
		t.Errorf("net/http/httptest links net and net/http, the check says: %q", problems)
	}
}
