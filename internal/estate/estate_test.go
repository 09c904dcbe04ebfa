package estate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "ada", "Ada Lovelace", "größe", "a.b", "a..b", "com", "COM10", "console", "nullify", "-x", strings.Repeat("a", MaxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, reason := range map[string]string{
		"": "empty", ".": "on the way", "..": "on the way", "a/b": "separator", `a\b`: "separator", "/a": "separator",
		"a\x00": "U+0000", "a\nb": "U+000A", "\x1b[31m": "U+001B", "a\u202eb": "U+202E", "a\u00a0b": "U+00A0", "\xff": "UTF-8",
		".a": "begins", " a": "begins", "a.": "ends", "a ": "ends", "a:b": "not every system", "a*": "not every system", `a"`: "not every system",
		"CON": "device", "nul": "device", "nul.txt": "device", "com1": "device", "LPT¹.x": "device", "aux .b": "device",
		strings.Repeat("a", MaxName+1): "241 bytes", strings.Repeat("ä", 121): "242 bytes",
	} {
		err := CheckName(name)
		var ne *NameError
		if !errors.Is(err, ErrName) || !errors.As(err, &ne) || ne.Name != name || !strings.Contains(ne.Reason, reason) {
			t.Errorf("%q: %v, want one about %q", name, err, reason)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b\u202e") {
			t.Errorf("%q is shown raw: %q", name, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree makes files and folders below a new folder: a name that ends with a slash is a folder, "->" makes a
// link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, text := range files {
		path := filepath.Join(top, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch to, link := strings.CutPrefix(text, "-> "); {
		case link:
			must(t, os.Symlink(to, path))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		default:
			must(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "TOP", top)), 0o644))
		}
	}
	return top
}

const mark = `{"v":1}` + "\n"

func TestFind(t *testing.T) {
	repo := func(more map[string]string) map[string]string {
		all := map[string]string{"repo/.git/HEAD": "ref", "repo/.git/objects/": "", "repo/sub/": ""}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	worktree := map[string]string{
		"wt/.git":                           "gitdir: TOP/repo/.git/worktrees/wt\n",
		"repo/.git/worktrees/wt/commondir":  "../..\n",
		"repo/.git/worktrees/wt/HEAD":       "ref",
		"repo/.git/stile/estate.json":       mark,
		"wt2/.git":                          "gitdir: ../repo/.git/worktrees/wt2\r\n",
		"repo/.git/worktrees/wt2/HEAD":      "ref",
		"repo/.git/worktrees/wt2/commondir": "TOP/repo/.git",
	}
	for name, c := range map[string]struct {
		files   map[string]string
		from    string
		o       Options
		want    string
		how     How
		wantErr error
		say     string
	}{
		"nothing":              {files: repo(nil), from: "repo/sub", wantErr: ErrNone},
		"a folder here":        {files: map[string]string{".stile/estate.json": mark}, want: ".stile", how: ByFolder},
		"a folder above":       {files: map[string]string{".stile/estate.json": mark, "a/b/c/": ""}, from: "a/b/c", want: ".stile", how: ByFolder},
		"the nearest":          {files: map[string]string{".stile/estate.json": mark, "a/.stile/estate.json": mark, "a/b/": ""}, from: "a/b", want: "a/.stile", how: ByFolder},
		"a file of that name":  {files: map[string]string{".stile/estate.json": mark, "a/.stile": "x"}, from: "a", want: ".stile", how: ByFolder},
		"git":                  {files: repo(map[string]string{"repo/.git/stile/estate.json": mark}), from: "repo/sub", want: "repo/.git/stile", how: ByGit},
		"inside a git folder":  {files: repo(map[string]string{"repo/.git/stile/estate.json": mark, "repo/.git/hooks/": ""}), from: "repo/.git/hooks", want: "repo/.git/stile", how: ByGit},
		"a worktree":           {files: repo(worktree), from: "wt", want: "repo/.git/stile", how: ByGit},
		"another worktree":     {files: repo(worktree), from: "wt2", want: "repo/.git/stile", how: ByGit},
		"a submodule":          {files: map[string]string{"s/.git": "gitdir: ../mod\n", "mod/HEAD": "", "mod/objects/": "", "mod/stile/estate.json": mark}, from: "s", want: "mod/stile", how: ByGit},
		"a bare repository":    {files: map[string]string{"r.git/HEAD": "", "r.git/objects/": "", "r.git/stile/estate.json": mark, "r.git/x/": ""}, from: "r.git/x", want: "r.git/stile", how: ByGit},
		"a folder before git":  {files: repo(map[string]string{"repo/.stile/estate.json": mark}), from: "repo/sub", want: "repo/.stile", how: ByFolder},
		"two":                  {files: repo(map[string]string{"repo/.git/stile/estate.json": mark, "repo/.stile/estate.json": mark}), from: "repo/sub", wantErr: ErrTwo},
		"two, one above":       {files: repo(map[string]string{"repo/.git/stile/estate.json": mark, ".stile/estate.json": mark}), from: "repo/sub", wantErr: ErrTwo},
		"two, one named":       {files: repo(map[string]string{"repo/.git/stile/estate.json": mark, "repo/.stile/estate.json": mark}), from: "repo", o: Options{Environment: "repo/.stile"}, want: "repo/.stile", how: ByEnvironment},
		"the flag first":       {files: map[string]string{"a/estate.json": mark, "b/estate.json": mark}, o: Options{Flag: "a", Environment: "b"}, want: "a", how: ByFlag},
		"named by a link":      {files: map[string]string{"a/estate.json": mark, "l": "-> a"}, o: Options{Flag: "l"}, want: "a", how: ByFlag},
		"not an estate":        {files: map[string]string{".stile/": ""}, wantErr: ErrNotEstate},
		"named, not an estate": {files: map[string]string{"a/": ""}, o: Options{Flag: "a"}, wantErr: ErrNotEstate},
		"named, not there":     {files: map[string]string{}, o: Options{Flag: "a"}, wantErr: ErrMissing},
		"a link":               {files: map[string]string{"a/estate.json": mark, ".stile": "-> a"}, wantErr: ErrLink},
		"a link in git":        {files: repo(map[string]string{"a/estate.json": mark, "repo/.git/stile": "-> ../../a"}), from: "repo", wantErr: ErrLink},
		"a linked mark":        {files: map[string]string{"mark": mark, ".stile/estate.json": "-> ../mark"}, wantErr: ErrLink},
		"newer":                {files: map[string]string{".stile/estate.json": `{"v":2}`}, wantErr: ErrNewer},
		"damaged":              {files: map[string]string{".stile/estate.json": `{"v":`}, wantErr: ErrDamaged},
		"without a form":       {files: map[string]string{".stile/estate.json": `{}`}, wantErr: ErrDamaged},
		"huge":                 {files: map[string]string{".stile/estate.json": `{"v":1,"x":"` + strings.Repeat("x", maxMark) + `"}`}, wantErr: ErrDamaged},
		"a broken .git":        {files: map[string]string{"r/.git": "elsewhere"}, from: "r", say: "does not say where"},
		"a lost git folder":    {files: map[string]string{"r/.git": "gitdir: gone"}, from: "r", wantErr: fs.ErrNotExist},
		"a .git of two lines":  {files: map[string]string{"r/.git": "gitdir: a\nb"}, from: "r", say: "not one line"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "link") && !canLink(t) {
				return // not for this system
			}
			top := tree(t, c.files)
			t.Chdir(top)
			o := c.o
			o.Dir = filepath.FromSlash(c.from)
			e, err := Open(o)
			if c.wantErr != nil || c.say != "" {
				if err == nil || c.wantErr != nil && !errors.Is(err, c.wantErr) || !strings.Contains(fmt.Sprint(err), c.say) {
					t.Fatalf("got %v, %v", e, err)
				}
				return
			}
			must(t, err)
			defer e.Close()
			if want := filepath.Join(top, filepath.FromSlash(c.want)); e.Path != want || e.How != c.how {
				t.Errorf("found %s by %s, want %s by %s", e.Path, e.How, want, c.how)
			}
		})
	}
}

// canLink says whether there are symbolic links here. Wine reports success and makes none.
func canLink(t *testing.T) bool {
	t.Helper()
	name := filepath.Join(t.TempDir(), "l")
	if os.Symlink("x", name) != nil {
		return false
	}
	is, err := os.Lstat(name)
	return err == nil && is.Mode()&fs.ModeSymlink != 0
}

func TestInit(t *testing.T) {
	top := tree(t, map[string]string{"repo/.git/HEAD": "", "repo/.git/objects/": "", "repo/sub/": "", "plain/": "", "other/": "", "half/.stile/agents/": ""})
	for _, c := range []struct {
		from, flag, want string
		how              How
	}{
		{"plain", "", "plain/.stile", ByFolder},
		{"repo/sub", "", "repo/.git/stile", ByGit},
		{"plain", "other/e", "other/e", ByFlag},
		{"half", "", "half/.stile", ByFolder},
	} {
		o := Options{Dir: filepath.Join(top, c.from)}
		if c.flag != "" {
			o.Flag = filepath.Join(top, c.flag)
		}
		for _, first := range []bool{true, false} {
			p, made, err := Init(o)
			must(t, err)
			if want := filepath.Join(top, filepath.FromSlash(c.want)); p.Path != want || p.How != c.how || made != first {
				t.Errorf("%s: %+v, made %v", c.want, p, made)
			}
		}
		e, err := Open(o)
		must(t, err)
		text, err := os.ReadFile(filepath.Join(e.Path, markName))
		must(t, err)
		names, err := os.ReadDir(e.Path)
		must(t, err)
		if string(text) != mark || len(names) != 3 {
			t.Errorf("%s holds %v, its mark is %q", c.want, names, text)
		}
		must(t, e.Close())
	}
	if _, _, err := Init(Options{Dir: top, Flag: filepath.Join(top, "no", "e")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
}

// What Init refuses it leaves as it was.
func TestInitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  error
	}{
		"a second estate": {map[string]string{".git/HEAD": "", ".git/objects/": "", ".stile/estate.json": mark}, ErrTwo},
		"newer":           {map[string]string{".stile/estate.json": `{"v":9}`}, ErrNewer},
		"damaged":         {map[string]string{".stile/estate.json": ``}, ErrDamaged},
		"a link":          {map[string]string{".stile": "-> away", "away/": ""}, ErrLink},
		"linked agents":   {map[string]string{".stile/agents": "-> ../away", "away/": ""}, ErrLink},
		"a file":          {map[string]string{".stile/agents": "x"}, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "link") && !canLink(t) {
				return // not for this system
			}
			top := tree(t, c.files)
			before := listing(t, top)
			if _, _, err := Init(Options{Dir: top}); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if after := listing(t, top); !slices.Equal(before, after) {
				t.Errorf("was %q, is %q", before, after)
			}
		})
	}
}

func listing(t *testing.T, top string) (names []string) {
	t.Helper()
	must(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(path)
			path += "=" + string(data)
		}
		names = append(names, path)
		return err
	}))
	return names
}

func TestAgents(t *testing.T) {
	dir := t.TempDir()
	_, _, err := Init(Options{Flag: dir})
	must(t, err)
	e, err := Open(Options{Flag: dir})
	must(t, err)
	defer e.Close()
	if _, err := e.Agent("ada", false); !errors.Is(err, ErrNoAgent) {
		t.Errorf("an agent that is not there: %v", err)
	}
	f, err := e.Agent("ada", true)
	must(t, err)
	must(t, f.Close())
	f, err = e.Agent("ada", true)
	must(t, err)
	must(t, f.Close())
	for _, other := range []string{"Ada", "ADA"} {
		var ne *NameError
		if _, err := e.Agent(other, true); !errors.Is(err, ErrTaken) || !errors.As(err, &ne) {
			t.Errorf("%s beside ada: %v", other, err)
		}
	}
	for _, bad := range []string{"..", "a/b", "", "/etc", "a\x00"} {
		if _, err := e.Agent(bad, true); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	must(t, errors.Join(os.Mkdir(filepath.Join(e.Path, "agents", ".hidden"), 0o755),
		os.WriteFile(filepath.Join(e.Path, "agents", "file"), nil, 0o600)))
	f, err = e.Agent("bob", true)
	must(t, err)
	must(t, f.Close())
	names, err := e.Agents()
	must(t, err)
	if want := []string{"ada", "bob"}; !slices.Equal(names, want) {
		t.Errorf("agents %q", names)
	}
	if _, err := e.Agent("file", true); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file: %v", err)
	}
}

// Case 34: what a cloned repository brings along may be links to anywhere.
func TestCase34NoLinkIsFollowed(t *testing.T) {
	if !canLink(t) {
		t.Skip("no symbolic links here")
	}
	top := tree(t, map[string]string{
		"e/estate.json": mark, "e/agents/a": "-> ../../away", "e/agents/near": "-> real", "e/agents/real/": "", "away/": "",
		"e/agents/b/spawn-log.json": "-> ../../../away/log", "away/log": "[]", "e/agents/c/board": "-> ../../../away",
	})
	e, err := Open(Options{Flag: filepath.Join(top, "e")})
	must(t, err)
	defer e.Close()
	for _, name := range []string{"a", "near"} {
		if _, err := e.Agent(name, true); !errors.Is(err, ErrLink) {
			t.Errorf("agent %s: %v", name, err)
		}
	}
	b, err := e.Agent("b", false)
	must(t, err)
	defer b.Close()
	if _, err := b.FS.Open(filepath.Join(b.Path, "spawn-log.json")); !errors.Is(err, ErrLink) {
		t.Errorf("a linked log: %v", err)
	}
	c, err := e.Agent("c", false)
	must(t, err)
	defer c.Close()
	if _, err := c.Sub("board", true); !errors.Is(err, ErrLink) {
		t.Errorf("a linked board folder: %v", err)
	}
	if runtime.GOOS != "windows" {
		must(t, errors.Join(os.RemoveAll(filepath.Join(top, "e", "agents")), os.Symlink("../away", filepath.Join(top, "e", "agents"))))
		if _, err := e.Agent("x", true); !errors.Is(err, ErrLink) {
			t.Errorf("linked agents: %v", err)
		}
		if _, err := e.Agents(); !errors.Is(err, ErrLink) {
			t.Errorf("linked agents, listed: %v", err)
		}
	}
}

func TestOf(t *testing.T) {
	top := tree(t, map[string]string{"e/estate.json": mark, "e/agents/a/x": "", "no/agents/a/x": ""})
	at := func(name string) string { return filepath.Join(top, filepath.FromSlash(name)) }
	for name, want := range map[string]string{
		"e/agents/a/x": "e", "e/agents/x": "e", "e/agents/a/agents/y": "e", "e/x": "", "e/agents": "", "no/agents/a/x": "",
	} {
		if want != "" {
			want = at(want)
		}
		if got := Of(at(name)); got != want {
			t.Errorf("%s is of %q", name, got)
		}
	}
}
