# `make` lists what there is. GO may name another Go command.
GO ?= go

# No cgo in what ships: it starts faster, and one file runs on every libc.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -o bin/

# Tests of locks and processes tell of today's kernel: a cached result would not. The packages that take longest begin
# first; otherwise they would run alone at the end.
TESTFLAGS = -count=1 -timeout=8m
FIRST = -first ./tests/robustness -first ./cmd/stile

.PHONY: help demo build test race lint fmt bench bench-quick nightly ci clean clean-cache bin/testsum

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: build ## build stile and watch what a grant does (bin/stile demo locks: the locks)
	bin/stile demo

build: ## bin/stile and bin/stiled
	$(BUILD) ./cmd/stile ./cmd/stiled

test: bin/testsum ## set up what the tests need, and run them
	@scripts/setup-tests
	@bin/testsum $(FIRST) -also bench -also tests/browser -- $(TESTFLAGS) ./...

# Short: the detector sees this process only, and the long tests spend their time in others. Without the
# setting each of the many processes that the tests start would wait a second at its end.
race: bin/testsum ## the tests under the race detector, the long ones left out
	@CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 bin/testsum $(FIRST) -- -race -short $(TESTFLAGS) ./...

lint: ## formatting, vet for every system, the linters
	@scripts/lint

fmt: ## format the Go code
	gofmt -w $$(git ls-files '*.go')

bench: ## compare with other locks, and write bench/RESULTS.md, results.json and the plots: 25 minutes
	cd bench && $(GO) run . -out RESULTS.md -json results.json -plots plots

bench-quick: ## the same with few rounds: shows that it runs
	cd bench && $(GO) run . -quick

nightly: bin/testsum ## the tests with their long variants: an hour or so
	@scripts/setup-tests
	@STILE_NIGHTLY=1 bin/testsum -also bench -also tests/browser -- -count=1 -timeout=2h ./...

ci: ## all that a change must pass
	@.ci/run

clean: ## remove what make built
	rm -rf bin .cache

clean-cache: ## remove the Wine prefix that the tests keep in the user's cache
	rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}/stile-wine"

bin/testsum:
	@$(BUILD) ./internal/testsum
