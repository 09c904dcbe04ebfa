// Package browser looks at the service's page with a real Chromium. It is a module of its own: what drives the browser
// must not weigh on who uses stile.
//
// It shows what a reader of the page sees while two agents work. Of how it looks it judges what can be
// calculated (contrast, what lies on what, what is outside of the window); the rest is for people, for whom it keeps pictures
// of both themes and widths.
package browser
