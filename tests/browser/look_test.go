package browser

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
)

// faults is what of a page's text can be seen and not read: its contrast is below WCAG AA (4.5, 3 for large text), or
// it lies on other text, or outside of the window.
const faults = `() => {
  const rgb = (s) => s.match(/[\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [], boxes = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n && boxes.length < 400; n = walk.nextNode()) {
    const e = n.parentElement, text = n.textContent.trim();
    if (!text || e.closest("script, .skip, details:not([open]) > :not(summary)")) continue;
    const head = e.closest("thead");
    if (head && getComputedStyle(head).clipPath !== "none") {
      if (head.getBoundingClientRect().width > 1.5) found.push("a table's head that is meant to be hidden is there");
      continue;
    }
    const range = document.createRange();
    range.selectNodeContents(n);
    const style = getComputedStyle(e), size = parseFloat(style.fontSize), heavy = Number(style.fontWeight) >= 700;
    const [a, b] = [light(rgb(style.color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), least = size >= 24 || heavy && size >= 18.66 ? 3 : 4.5;
    if (ratio < least) found.push(text + ": contrast " + ratio.toFixed(2));
    for (const r of range.getClientRects()) {
      if (r.left < -0.5 || r.right > window.innerWidth + 0.5) found.push(text + ": outside of the window");
      for (const o of boxes) {
        if (Math.min(r.right, o.r.right) - Math.max(r.left, o.r.left) > 1 && Math.min(r.bottom, o.r.bottom) - Math.max(r.top, o.r.top) > 6) {
          found.push(text + ": lies on " + o.text);
        }
      }
      boxes.push({ r, text });
    }
  }
  return found.slice(0, 5).join("; ");
}`

// looks wants nothing that is seen and cannot be read.
func (p *place) looks(page *rod.Page, what string) {
	p.t.Helper()
	got, err := page.Eval(faults)
	if err != nil {
		p.t.Fatal(err)
	}
	if s := got.Value.Str(); s != "" {
		p.t.Errorf("%s: %s", what, s)
	}
}

// tabTo goes to an element with the Tab key alone, from the page's top, and wants to see on the way where it is.
func (p *place) tabTo(page *rod.Page, selector string) {
	p.t.Helper()
	if _, err := page.Eval(`() => { document.activeElement.blur(); window.getSelection().removeAllRanges() }`); err != nil {
		p.t.Fatal(err)
	}
	for range 40 {
		if err := page.Keyboard.Type(input.Tab); err != nil {
			p.t.Fatal(err)
		}
		at, err := page.Eval(`(s) => {
  const e = document.activeElement, style = getComputedStyle(e);
  if (e !== document.body && !e.matches(".skip") && (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2)) return "unseen " + e.outerHTML.slice(0, 80);
  return e.matches(s) ? "there" : "";
}`, selector)
		if err != nil {
			p.t.Fatal(err)
		}
		switch s := at.Value.Str(); {
		case s == "there":
			return
		case s != "":
			p.t.Fatal(s)
		}
	}
	p.t.Fatalf("%s is not reached with Tab", selector)
}

// The pages that are seldom seen: without anything, of what is not there, of long names and texts, of a queue whose turn
// has not come, and of an estate with boards that are damaged and locks.
func TestSeldomSeen(t *testing.T) {
	p := newPlace(t)
	p.picture(p.open("/"), "empty")
	p.picture(p.open("/c/none"), "missing")
	for path, want := range map[string]int{"/c/none": 404, "/c/%2e%2e": 400} {
		resp, err := http.Get(p.url + path) //nolint:noctx // the browser's test is bounded as a whole
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %s, %s", path, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
	long := strings.Repeat("a-very-long-name", 7)
	p.do("olga", long+"/create", `{}`, 201)
	p.do("ada", long+"/acquire", `{"secret":"`+secret("a")+`"}`, 200)
	p.do("bob", long+"/petition", `{}`, 200)
	p.do("ada", long+"/land", `{"grant":1,"secret":"`+secret("a")+`","empty":"`+strings.Repeat("nothing ", 60)+`found"}`, 200)
	p.do("ada", long+"/release", `{"grant":1,"secret":"`+secret("a")+`"}`, 200)
	page := p.open("/c/" + long)
	p.shows(page, "td", "bob")
	if _, err := page.Eval(`() => { document.querySelector("details").open = true }`); err != nil {
		t.Fatal(err)
	}
	p.picture(page, "long")
	p.picture(p.open("/"), "long-list")

	file := filepath.Join(p.dir, strings.Repeat("deep/", 12)+"tally.txt")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(p.stile, "run", "--agent", "ada", file, "--", "true")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	open := exec.Command(p.stile, "dispatch", "open", "--estate", p.dir, "--agent", "ada", "--task", strings.Repeat("a map of the coast ", 12))
	var errs bytes.Buffer
	open.Stderr = &errs
	if err := open.Run(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	at := p.open("/estate")
	p.shows(at, "td", "tally")
	p.shows(at, "td", "a map of the coast")
	p.picture(at, "estate-full")
}
