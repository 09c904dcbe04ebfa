package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/service"
)

const defaultListen = "127.0.0.1:7421"

func serveVerb() verb {
	return verb{
		name: "serve", brief: "serve an estate over HTTP", synopsis: "[--listen HOST:PORT] [--estate DIR] [flags]",
		detail: `Serves the estate's containers: the API of docs/api.md, badges, metrics, and at / the page
that people look at. The tool goes on to work on the same estate meanwhile. Only one server
serves an estate; the next one is told which. It ends on SIGTERM or an interrupt, when the
requests at work are done; killed, it loses nothing that was acknowledged.

  --listen HOST:PORT  where; 127.0.0.1:7421 by default. Port 0: any that is free
  --estate DIR        the estate; else as 'stile' finds it
  --trust-loopback    agents on this host need no token: each says who it is. Operators do
  --insecure-http     listen elsewhere than on loopback: tokens and work can be read on the way
  --host NAME         a name by which the service may be called, besides localhost; may be repeated
  --max-upload BYTES  of one object; 1 GiB by default
  --log-json          the log as JSON

Exit code: 0 when it was told to end; 1 usage, or it could not be done; 2 another server
serves the estate.`,
		example: "stiled token add --operator olga > olga.token\nstiled serve",
		run:     runServe,
	}
}

// names is a flag that may be repeated.
type names []string

func (n *names) String() string     { return strings.Join(*n, ",") }
func (n *names) Set(v string) error { *n = append(*n, v); return nil }

type serveFlags struct {
	listen, estate           string
	trust, insecure, logJSON bool
	hosts                    names
	maxUpload                int64
}

func runServe(v *verb, args []string) error {
	var o serveFlags
	f := flags(v.name)
	f.StringVar(&o.listen, "listen", defaultListen, "")
	f.StringVar(&o.estate, "estate", "", "")
	f.BoolVar(&o.trust, "trust-loopback", false, "")
	f.BoolVar(&o.insecure, "insecure-http", false, "")
	f.BoolVar(&o.logJSON, "log-json", false, "")
	f.Var(&o.hosts, "host", "")
	f.Int64Var(&o.maxUpload, "max-upload", 0, "")
	if err := v.parse(f, args, 0); err != nil {
		return err
	}
	return serve(&o)
}

func serve(o *serveFlags) (err error) {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return hint(fmt.Errorf("--listen: %w", err), "--listen "+defaultListen)
	}
	if !o.insecure && !isLoopback(host) {
		return hint(fmt.Errorf("%s is not loopback, and the service speaks plain HTTP: whoever is on the way can read the tokens and the work, and use them", display.Text(host)),
			"--listen "+defaultListen+", and a tunnel or a proxy that speaks TLS before it; or --insecure-http, if you know the way")
	}
	path, err := estatePath(o.estate)
	if err != nil {
		return err
	}
	// Before it is known to be the only one: the next one is to be told which port it got.
	ln, lerr := net.Listen("tcp", o.listen)
	at := o.listen
	if lerr == nil {
		at = ln.Addr().String()
	}
	release, err := service.Only(path, at)
	if err != nil {
		if lerr == nil {
			_ = ln.Close() // nobody was served
		}
		var taken *service.TakenError
		if errors.As(err, &taken) {
			return &hinted{err, "use that one, or end it first", exitRefused}
		}
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if lerr != nil {
		return hint(fmt.Errorf("listen: %w", lerr), "--listen 127.0.0.1:0 takes a port that is free")
	}
	log := logger(o.logJSON)
	store, err := local.Open(path, local.Options{Log: log})
	if err != nil {
		_ = ln.Close() // nobody was served
		return err
	}
	s := service.New(service.Options{
		Estate: path, Store: store, TrustLoopback: o.trust, Hosts: o.hosts, MaxUpload: o.maxUpload, Log: log, Version: version(),
	})
	if o.trust {
		log.Warn("loopback is trusted: any process of this host can act as any agent, without a token; operators need theirs")
	}
	if o.insecure {
		log.Warn("plain HTTP, not on loopback alone: whoever is on the way can read tokens and work, and use them")
	}
	fmt.Printf("stiled serves %s at http://%s\n", display.Text(path), ln.Addr())
	return run(ln, s, log)
}

// run serves until it is told to end, and lets what is at work come to its end.
func run(ln net.Listener, s *service.Server, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		s.Close()
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends it at once
	log.Info("ending: waiting for the requests at work")
	s.Close() // the streams first: they never end by themselves
	patience, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		return errors.Join(fmt.Errorf("some requests were cut off: %w", err), server.Close())
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func logger(asJSON bool) *slog.Logger {
	if asJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// version is the module's, as the build knows it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
