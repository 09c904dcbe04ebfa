package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/go-rod/rod/lib/proto"
)

// patience is how long the page may take to show what it must.
const patience = 30 * time.Second

// place is an estate that is served, and a browser that looks at it.
type place struct {
	t        *testing.T
	url      string
	dir      string // the estate
	stile    string // the tool
	tokens   map[string]string
	browser  *rod.Browser
	pictures string
}

// newPlace builds and starts the service, and a browser.
func newPlace(t *testing.T) *place {
	t.Helper()
	chromium, ok := launcher.LookPath()
	if !ok {
		t.Skip("no Chromium is installed (scripts/setup-tests)")
	}
	bin, dir := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", bin+"/", "./cmd/stiled", "./cmd/stile")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stiled := filepath.Join(bin, "stiled")
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	if err := os.WriteFile(filepath.Join(dir, "estate.json"), []byte(`{"v":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir, stile: filepath.Join(bin, "stile"), tokens: map[string]string{}, pictures: os.Getenv("STILE_PICTURES")}
	if p.pictures == "" {
		p.pictures = filepath.Join("..", "..", ".cache", "pictures") // kept, and not the repository's
	}
	if err := os.MkdirAll(p.pictures, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"--agent=ada", "--agent=bob", "--operator=olga"} {
		cmd := exec.Command(stiled, "token", "add", "--estate", dir, who)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(who, "=")
		p.tokens[name] = strings.TrimSpace(string(out))
	}
	server := exec.Command(stiled, "serve", "--estate", dir, "--listen", "127.0.0.1:0")
	server.Env = env
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, p.url, _ = strings.Cut(strings.TrimSpace(line), " at ")

	l := launcher.New().Bin(chromium).NoSandbox(true).Leakless(false).Headless(true)
	control, err := l.Launch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Kill(); l.Cleanup() })
	p.browser = rod.New().ControlURL(control)
	if err := p.browser.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.browser.Close() })
	return p
}

// do gives a command, and wants a status.
func (p *place) do(who, path, body string, status int) []byte {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), "POST", p.url+"/v1/containers/"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.tokens[who])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		p.t.Fatalf("%s %s: %s %v\n%s", who, path, resp.Status, err, data)
	}
	return data
}

func (p *place) grant(data []byte) int {
	p.t.Helper()
	var page struct{ Grant int }
	if err := json.Unmarshal(data, &page); err != nil {
		p.t.Fatal(err)
	}
	return page.Grant
}

func (p *place) open(path string) *rod.Page {
	p.t.Helper()
	page, err := p.browser.Page(proto.TargetCreateTarget{URL: p.url + path})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := page.Timeout(patience).WaitLoad(); err != nil {
		p.t.Fatal(err)
	}
	return page
}

// shows waits until a page has a text, without being loaded again.
func (p *place) shows(page *rod.Page, selector, text string) {
	p.t.Helper()
	if _, err := page.Timeout(patience).ElementR(selector, text); err != nil {
		body, _ := page.Timeout(time.Second).Element("main")
		shown := ""
		if body != nil {
			shown, _ = body.Text()
		}
		p.t.Fatalf("%s never showed %q: %v\n%s", selector, text, err, shown)
	}
}

// picture keeps what the page looks like, in both themes and widths, and wants nothing to stick out on the right.
func (p *place) picture(page *rod.Page, name string) {
	p.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{375, 1440} {
			if name == "thousand" && (theme == "light") != (width == 1440) {
				continue // it takes seconds, and "narrowed" shows the same in the other two
			}
			err := proto.EmulationSetEmulatedMedia{Features: []*proto.EmulationMediaFeature{{Name: "prefers-color-scheme", Value: theme}}}.Call(page)
			if err == nil {
				err = page.SetViewport(&proto.EmulationSetDeviceMetricsOverride{Width: width, Height: 900, DeviceScaleFactor: 1})
			}
			if err != nil {
				p.t.Fatal(err)
			}
			wide, err := page.Eval(`() => document.documentElement.scrollWidth + window.innerWidth - document.documentElement.clientWidth`)
			if err != nil {
				p.t.Fatal(err)
			}
			if wide.Value.Int() > width {
				p.t.Errorf("%s at %d px is %d px wide", name, width, wide.Value.Int())
			}
			p.looks(page, fmt.Sprintf("%s, %s, %d px", name, theme, width))
			if _, err := page.Activate(); err != nil { // a page behind another one is not always drawn
				p.t.Fatal(err)
			}
			data, err := page.Timeout(patience).Screenshot(true, nil)
			if err == nil {
				err = os.WriteFile(filepath.Join(p.pictures, fmt.Sprintf("%s-%s-%d.png", name, theme, width)), data, 0o600)
			}
			if err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) {
				p.t.Fatal(err)
			}
		}
	}
}

// asked are the addresses that a page asked for.
type asked struct {
	mu  sync.Mutex
	all []string
}

func (a *asked) add(url string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, url)
}

func (a *asked) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func secret(c string) string { return strings.Repeat(c, 64) }

// The spec's worked example, with two agents and a browser that watches: each badge comes by itself.
func TestWorkedExample(t *testing.T) {
	p := newPlace(t)
	p.do("olga", "atlas/create", `{"params":{"cap":60,"extension":3,"window":30,"petition_idle":3600}}`, 201)
	page, list := p.open("/c/atlas"), p.open("/")
	var requests asked
	go page.EachEvent(func(e *proto.NetworkRequestWillBeSent) { requests.add(e.Request.URL) })()
	p.shows(page, ".badge", "FREE")

	first := p.grant(p.do("ada", "atlas/acquire", `{"secret":"`+secret("a")+`"}`, 200))
	p.do("bob", "atlas/petition", `{}`, 200)
	p.shows(page, ".badge", "HELD")
	p.shows(page, "time", "in \\d+s") // the countdown
	p.shows(page, "td", "bob")
	p.shows(list, "td", "ada")
	p.picture(page, "held")

	p.shows(page, ".badge", "HOLDER SILENT") // ada has died
	p.shows(list, "tbody .badge", "HOLDER SILENT")
	p.shows(page, "button", "Clear grant 1 of ada")
	p.picture(page, "silent")

	second := p.grant(p.do("bob", "atlas/acquire", `{"secret":"`+secret("b")+`"}`, 200))
	p.shows(page, ".badge", "CAUTION")
	p.do("bob", "atlas/heartbeat", fmt.Sprintf(`{"grant":%d,"secret":"%s"}`, second, secret("b")), 200)
	p.do("ada", "atlas/land", fmt.Sprintf(`{"grant":%d,"secret":"%s","empty":"it comes late"}`, first, secret("a")), 409)
	p.do("bob", "atlas/land", fmt.Sprintf(`{"grant":%d,"secret":"%s","empty":"nothing found"}`, second, secret("b")), 200)
	p.shows(page, "td", "FENCED")
	p.shows(page, "td", "nothing found")
	p.picture(page, "caution")
	p.do("bob", "atlas/release", fmt.Sprintf(`{"grant":%d,"secret":"%s"}`, second, secret("b")), 200)
	p.shows(page, ".badge", "FREE")
	p.shows(list, "tbody .badge", "FREE")
	p.picture(page, "free")
	p.picture(list, "list")
	p.picture(p.open("/estate"), "estate")
	for _, url := range requests.list() {
		if !strings.HasPrefix(url, p.url+"/") {
			t.Errorf("the page asked for %s", url)
		}
	}
	t.Logf("pictures: %s", p.pictures)
}

// The operator clears a silent holder, with the keyboard alone; names with markup are text.
func TestClear(t *testing.T) {
	p := newPlace(t)
	name := `<img src=x onerror=document.title='owned'>`
	path := "%3Cimg%20src=x%20onerror=document.title='owned'%3E"
	p.do("olga", path+"/create", `{"params":{"cap":60,"extension":1,"window":30,"petition_idle":3600}}`, 201)
	p.do("ada", path+"/acquire", `{"secret":"`+secret("a")+`"}`, 200)
	page := p.open("/c/" + path)
	p.shows(page, "button", "Clear grant 1 of ada") // once it is silent, by itself
	p.shows(page, "section.clear", "revision 2")
	p.picture(page, "clear")
	p.tabTo(page, "#reason")
	if err := page.InsertText("silent since noon <b>"); err != nil {
		t.Fatal(err)
	}
	if err := page.Keyboard.Type(input.Tab); err != nil {
		t.Fatal(err)
	}
	if err := page.InsertText(p.tokens["olga"]); err != nil {
		t.Fatal(err)
	}
	if err := page.Keyboard.Type(input.Enter); err != nil {
		t.Fatal(err)
	}
	p.shows(page, "td", "silent since noon <b>")
	p.shows(page, "td", "olga")
	for _, at := range []*rod.Page{page, p.open("/")} {
		p.shows(at, "h1, a", "onerror")
		got, err := at.Eval(`() => document.title + document.images.length`)
		if err != nil {
			t.Fatal(err)
		}
		if s := got.Value.Str(); strings.HasPrefix(s, "owned") || !strings.HasSuffix(s, "0") {
			t.Errorf("the name %s is no text: %s", name, s)
		}
	}
	p.picture(page, "cleared")
}

// A thousand containers are still a page that can be read.
func TestThousand(t *testing.T) {
	p := newPlace(t)
	many := 1000
	if testing.Short() {
		many = 100
	}
	for i := range many {
		p.do("olga", fmt.Sprintf("container-%04d/create", i), `{}`, 201)
	}
	page := p.open("/")
	p.shows(page, "th a", fmt.Sprintf("container-%04d", many-1))
	p.do("ada", "container-0000/acquire", `{"secret":"`+secret("a")+`"}`, 200)
	p.shows(page, "td", "ada")
	p.picture(page, "thousand")
	few := p.open("/?badge=held")
	p.shows(few, "td", "ada")
	p.do("bob", "container-0002/acquire", `{"secret":"`+secret("b")+`"}`, 200)
	p.shows(few, "td", "bob") // it is narrowed still when it has followed
	if rows, err := few.Eval(`() => document.querySelectorAll("tbody tr").length`); err != nil || rows.Value.Int() != 2 {
		t.Errorf("%v rows, %v", rows, err)
	}
	p.picture(few, "narrowed")
}
