module github.com/stile-lock/stile/bench

go 1.26.0

require (
	github.com/gofrs/flock v0.13.2
	github.com/rogpeppe/go-internal v1.16.0
	github.com/stile-lock/stile v0.0.0
	golang.org/x/sys v0.50.0
)

require github.com/mattn/go-sqlite3 v1.14.53

require golang.org/x/text v0.44.0 // indirect

replace github.com/stile-lock/stile => ../
