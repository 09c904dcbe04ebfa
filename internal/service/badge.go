package service

import (
	"fmt"
	"html"
	"net/http"
	"unicode/utf8"

	"github.com/stile-lock/stile/grant"
)

// colours of the badges: those that are readable under white.
var badgeColours = map[grant.Badge]string{
	grant.BadgeFree: "#2e7d32", grant.BadgeHeld: "#1565c0", grant.BadgeHolderSilent: "#b71c1c", grant.BadgeCaution: "#9a5b00",
}

func (s *Server) badge(r *http.Request) (grant.Badge, error) {
	head, now, err := s.headNow(r)
	if err != nil {
		return "", err
	}
	return grant.BadgeOf(head.Page(), now), nil
}

// badgeJSON is what shields.io's endpoint badge reads.
func (s *Server) badgeJSON(w http.ResponseWriter, r *http.Request) error {
	b, err := s.badge(r)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, struct {
		SchemaVersion int    `json:"schemaVersion"`
		Label         string `json:"label"`
		Message       string `json:"message"`
		Color         string `json:"color"`
		IsError       bool   `json:"isError,omitempty"`
	}{1, r.PathValue("container"), badgeWords[b], badgeColours[b][1:], b == grant.BadgeHolderSilent})
}

// badgeSVG is the same as a picture.
func (s *Server) badgeSVG(w http.ResponseWriter, r *http.Request) error {
	b, err := s.badge(r)
	if err != nil {
		return err
	}
	label, word := shorten(r.PathValue("container"), 40), badgeWords[b]
	left, right := 7*utf8.RuneCountInString(label)+12, 8*len(word)+12
	label = html.EscapeString(label)
	w.Header().Set("Content-Type", "image/svg+xml")
	//nolint:gosec // the label is escaped, the words and numbers are ours
	_, _ = fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s: %s"><title>%s: %s</title>`+
		`<rect width="%d" height="20" fill="#444"/><rect x="%d" width="%d" height="20" fill="%s"/>`+
		`<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`+
		`<text x="%d" y="14" textLength="%d">%s</text><text x="%d" y="14" textLength="%d">%s</text></g></svg>`,
		left+right, label, word, label, word, left, left, right, badgeColours[b],
		left/2, left-12, label, left+right/2, right-12, word) // who has gone is not told
	return nil
}

// shorten cuts s to n characters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
