package repo

import (
	"fmt"
	"html"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// A document's links are read as GitHub reads them, as far as the project's documents go: inline links and
// images, reference definitions, and href and src of HTML. What stands in code is no link.
var (
	inlineLink = regexp.MustCompile(`\]\(\s*(?:<([^>]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*\)`)
	definition = regexp.MustCompile(`^ {0,3}\[([^\]^][^\]]*)\]:\s*(?:<([^>]*)>|(\S+))`)
	usedRef    = regexp.MustCompile(`\[[^\]]+\]\[([^\]]+)\]`)
	htmlLink   = regexp.MustCompile(`(?i)<(?:a|img)\s[^>]*?\b(?:href|src)\s*=\s*["']([^"']*)["']`)
	htmlAnchor = regexp.MustCompile(`(?i)<[a-z0-9]+\s[^>]*?\b(?:id|name)\s*=\s*["']([^"']*)["']`)
	fence      = regexp.MustCompile("^[ >]*(?:[-*+] +|[0-9]+[.)] +)?(```+|~~~+)")
	atxHeading = regexp.MustCompile(`^ {0,3}#{1,6}(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$`)
	setextLine = regexp.MustCompile(`^ {0,3}(?:=+|-+)[ \t]*$`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
)

type link struct {
	line   int
	target string
}

// document is what a Markdown file links to and what can be linked to in it.
type document struct {
	links   []link
	anchors map[string]bool
	broken  []string // references without a definition
}

func parseMarkdown(text string) document {
	d := document{anchors: map[string]bool{}}
	text = comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	defined, used := map[string]bool{}, map[string]int{}
	seen := map[string]int{}
	open, before := "", ""
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if m := fence.FindStringSubmatch(line); m != nil && (open == "" || strings.HasPrefix(m[1], open)) {
			if open == "" {
				open = m[1]
			} else {
				open = ""
			}
			before = ""
			continue
		}
		if open != "" {
			continue
		}
		if m := atxHeading.FindStringSubmatch(line); m != nil {
			d.anchors[numbered(seen, slug(m[1]))] = true
		} else if setextLine.MatchString(line) && strings.TrimSpace(before) != "" && !strings.HasPrefix(before, "|") {
			d.anchors[numbered(seen, slug(before))] = true
		}
		before = line
		plain := withoutCode(line)
		for _, m := range htmlAnchor.FindAllStringSubmatch(plain, -1) {
			d.anchors[m[1]] = true
		}
		if m := definition.FindStringSubmatch(plain); m != nil {
			defined[strings.ToLower(m[1])] = true
			d.links = append(d.links, link{n + 1, m[2] + m[3]})
			continue
		}
		for _, m := range inlineLink.FindAllStringSubmatch(plain, -1) {
			d.links = append(d.links, link{n + 1, m[1] + m[2]})
		}
		for _, m := range htmlLink.FindAllStringSubmatch(plain, -1) {
			d.links = append(d.links, link{n + 1, html.UnescapeString(m[1])})
		}
		for _, m := range usedRef.FindAllStringSubmatch(plain, -1) {
			used[strings.ToLower(m[1])] = n + 1
		}
	}
	for _, name := range sortedKeys(used) {
		if !defined[name] {
			d.broken = append(d.broken, fmt.Sprintf("%d: [%s] is not defined", used[name], name))
		}
	}
	return d
}

// withoutCode drops the code spans of a line: each ends at the next run of as many backquotes as began it.
func withoutCode(line string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(line, '`')
		if start < 0 {
			return b.String() + line
		}
		rest := strings.TrimLeft(line[start:], "`")
		ticks := line[start : len(line)-len(rest)]
		end := closingTicks(rest, len(ticks))
		b.WriteString(line[:start])
		if end < 0 {
			b.WriteString(ticks)
			line = rest
			continue
		}
		b.WriteString("code")
		line = rest[end:]
	}
}

// closingTicks returns where the first run of exactly n backquotes ends, or -1.
func closingTicks(text string, n int) int {
	run := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] == '`' {
			run++
			continue
		}
		if run == n {
			return i
		}
		run = 0
	}
	return -1
}

// slug is the anchor that GitHub gives a heading: its text in lower case, letters, digits, marks, hyphens
// and underscores kept, spaces turned into hyphens, all else dropped.
func slug(heading string) string {
	heading = html.UnescapeString(linkText.ReplaceAllString(heading, "$1"))
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Pc):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// numbered tells equal headings apart: the second "x" is "x-1".
func numbered(seen map[string]int, slug string) string {
	n := seen[slug]
	seen[slug]++
	if n == 0 {
		return slug
	}
	unique := slug + "-" + strconv.Itoa(n)
	seen[unique]++
	return unique
}

var lineAnchor = regexp.MustCompile(`^L([0-9]+)(?:C[0-9]+)?(?:-L([0-9]+)(?:C[0-9]+)?)?$`)

// checkLinks resolves every relative link of every Markdown file among files, all by slash path.
func checkLinks(files map[string]string) []string {
	folders := map[string]bool{".": true}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	docs := map[string]document{}
	for name, text := range files {
		if path.Ext(name) == ".md" {
			docs[name] = parseMarkdown(text)
		}
	}
	var problems []string
	for _, name := range sortedKeys(docs) {
		for _, b := range docs[name].broken {
			problemf(&problems, "%s:%s", name, b)
		}
		for _, l := range docs[name].links {
			if why := resolve(files, folders, docs, name, l.target); why != "" {
				problemf(&problems, "%s:%d: %s: %s", name, l.line, l.target, why)
			}
		}
	}
	return problems
}

// resolve says why a link leads nowhere, or nothing.
func resolve(files map[string]string, folders map[string]bool, docs map[string]document, from, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return "" // what lies outside is not ours to check
	}
	to := from
	switch {
	case strings.HasPrefix(u.Path, "/"):
		to = path.Clean(strings.TrimPrefix(u.Path, "/")) // from the root of the repository
	case u.Path != "":
		to = path.Join(path.Dir(from), u.Path)
	case u.Fragment == "":
		return "links to nothing"
	}
	text, isFile := files[to]
	if !isFile && !folders[to] {
		return "no such file"
	}
	if u.Fragment == "" {
		return ""
	}
	doc, isDoc := docs[to]
	if isDoc {
		if !doc.anchors[u.Fragment] {
			return "no such heading in " + to
		}
		return ""
	}
	m := lineAnchor.FindStringSubmatch(u.Fragment)
	if !isFile || m == nil {
		return "only documents have headings"
	}
	for _, n := range m[1:] {
		if line, err := strconv.Atoi(n); n != "" && (err != nil || line < 1 || line > strings.Count(text, "\n")) {
			return "no such line"
		}
	}
	return ""
}

func TestDocumentsLinkToWhatExists(t *testing.T) {
	files, docs := map[string]string{}, 0
	eachFile(t, root(t), func(name string, text []byte) {
		files[name] = string(text)
		if path.Ext(name) == ".md" {
			docs++
		}
	})
	if docs == 0 {
		t.Error("no document was read")
	}
	report(t, checkLinks(files))
}

func TestLinkCheckSeesPlantedProblems(t *testing.T) {
	target := strings.Join([]string{
		"# The `stile run` command, in full", "## Exit codes", "## Exit codes", "### Exit codes-1", "Set *ext*", "=====",
		"## [Linked](x.md) & more!", "## snake_case — dash", "## Größe", "```", "# not a heading", "```", `<a id="old-name"></a>`,
		"## Closed ##", "",
	}, "\n")
	for _, anchor := range []string{
		"the-stile-run-command-in-full", "exit-codes", "exit-codes-1", "exit-codes-1-1", "set-ext", "linked--more",
		"snake_case--dash", "größe", "old-name", "closed",
	} {
		files := map[string]string{"docs/t.md": strings.ReplaceAll(target, "[Linked](x.md)", "[Linked](t.md)"), "README.md": "[x](docs/t.md#" + anchor + ")"}
		wantProblems(t, checkLinks(files))
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"good links of each kind", "[a](docs/t.md) ![i](p.svg \"title\") [d](docs/) [r](/docs/t.md#one) [s](#here)\n\n# Here\n\n[ref][R] <a href='docs/t.md'>x</a>\n\n[r]: docs/t.md#one\n[out](https://example.com/none) <mailto:a@example.com> [m](mailto:a@example.com) [src](a.go#L2) [sp](<sp ace.md>) [e](sp%20ace.md)", nil},
		{"no file", "\n[a](docs/none.md)", []string{"README.md:2: docs/none.md: no such file"}},
		{"no heading", "[a](docs/t.md#two)", []string{"no such heading in docs/t.md"}},
		{"no heading of its own", "[a](#none)", []string{"no such heading in README.md"}},
		{"a heading in code", "[a](#x)\n```\n# x\n```\n", []string{"no such heading"}},
		{"an image", "![a](none.svg)", []string{"none.svg: no such file"}},
		{"HTML", `<img width="3" src="none.svg">`, []string{"none.svg: no such file"}},
		{"a definition", "[a][x]\n\n[x]: none.md", []string{"none.md: no such file"}},
		{"no definition", "[a][x]", []string{"[x] is not defined"}},
		{"above the root", "[a](../x.md)", []string{"no such file"}},
		{"no line", "[a](a.go#L9)", []string{"no such line"}},
		{"an anchor in a folder", "[a](docs#x)", []string{"only documents"}},
		{"nothing", "[a]()", []string{"links to nothing"}},
		{"two on a line", "[a](n1.md) and [b](n2.md)", []string{"n1.md", "n2.md"}},
		{"case", "[a](docs/T.md)", []string{"no such file"}},
		{"code is no link", "`[a](none.md)` and ``[b`](none.md)``\n\n~~~\n[c](none.md)\n~~~\n<!-- [d](none.md)\n[e](none.md) -->", nil},
		{"after code", "```\n```\n[c](none.md)", []string{"README.md:3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantProblems(t, checkLinks(map[string]string{
				"README.md": c.text, "docs/t.md": "# One\n", "p.svg": "", "a.go": "package a\n\n", "sp ace.md": "",
			}), c.want...)
		})
	}
}
