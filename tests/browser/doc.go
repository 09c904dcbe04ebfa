// Package browser looks at the service's page with a real Chromium. It is a module of its own: what drives the browser
// must not weigh on who uses stile.
//
// It shows what a reader of the page sees while two agents work. It does not judge how it looks: it keeps pictures of
// both themes and widths for people to look at.
package browser
