package service

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/service/token"
)

// Options are what a Server is made of. Estate and Store are required.
type Options struct {
	Estate string // the folder
	Store  *local.Store
	// TrustLoopback lets agents without a token act when they come from this host.
	TrustLoopback bool
	// Hosts are the names, besides those of loopback, by which the service may be called.
	Hosts []string
	// MaxUpload bounds one object, in bytes; 1 GiB when 0.
	MaxUpload int64
	// Log is told of each request and of what fails. May be nil.
	Log *slog.Logger
	// Version stands in the metrics.
	Version string

	// poll is how often changes that others make are looked for, and stall how long a client may take for
	// nothing. Tests only.
	poll, stall time.Duration
}

// Server answers requests. Its Handler may be used by any number of goroutines.
type Server struct {
	o       Options
	store   *local.Store
	tokens  token.Dir
	log     *slog.Logger
	hub     *hub
	metrics *metrics
	mux     *http.ServeMux
	// patterns are the routes'.
	patterns []string
	stop     context.CancelFunc
	ended    context.Context // when the server stops
}

const (
	defaultUpload = 1 << 30
	defaultPoll   = 250 * time.Millisecond
	defaultStall  = 30 * time.Second
)

// New makes a server. Close ends what it runs.
func New(o Options) *Server {
	if o.MaxUpload == 0 {
		o.MaxUpload = defaultUpload
	}
	if o.poll == 0 {
		o.poll = defaultPoll
	}
	if o.stall == 0 {
		o.stall = defaultStall
	}
	s := &Server{o: o, store: o.Store, tokens: token.In(o.Estate), log: o.Log, metrics: newMetrics()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ended, s.stop = context.WithCancel(context.Background())
	s.hub = newHub(s.ended, s.store, o.poll)
	s.routes()
	return s
}

// Close ends the streams and the waits of clients.
func (s *Server) Close() {
	s.stop()
	s.hub.wait()
}

// route is one path of the service. Its pattern is what logs and metrics call it.
type route struct {
	pattern string
	handle  func(w http.ResponseWriter, r *http.Request) error
}

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	for _, r := range []route{
		{"GET /v1/now", s.getNow},
		{"GET /v1/containers", s.getContainers},
		{"GET /v1/events", s.getEvents},
		{"GET /v1/containers/{container}", s.getContainer},
		{"GET /v1/containers/{container}/status", s.getStatus},
		{"GET /v1/containers/{container}/turn", s.getTurn},
		{"GET /v1/containers/{container}/events", s.getEvents},
		{"GET /v1/containers/{container}/history", s.getHistory},
		{"GET /v1/containers/{container}/revisions/{place}", s.getRevision},
		{"PUT /v1/containers/{container}/revisions/{place}", s.putRevision},
		{"GET /v1/containers/{container}/register", s.getRegister},
		{"GET /v1/containers/{container}/register/{landing}", s.getLanding},
		{"GET /v1/containers/{container}/refused", s.getRefused},
		{"GET /v1/containers/{container}/refused/{name}", s.getRefusedOne},
		{"POST /v1/containers/{container}/refused/{name}/discard", s.discard},
		{"GET /v1/containers/{container}/reproductions", s.getReproductions},
		{"POST /v1/containers/{container}/reproductions/{block}/result", s.submit},
		{"GET /v1/containers/{container}/objects/{kind}", s.getObjects},
		{"POST /v1/containers/{container}/objects/{kind}", s.putObject},
		{"GET /v1/containers/{container}/objects/{kind}/{sha256}", s.getObject},
		{"PUT /v1/containers/{container}/objects/{kind}/{sha256}", s.putObject},
		{"GET /v1/containers/{container}/badge.svg", s.badgeSVG},
		{"GET /v1/containers/{container}/badge.json", s.badgeJSON},
		{"POST /v1/containers/{container}/{op}", s.command},
		{"GET /metrics", s.getMetrics},
		{"GET /healthz", s.getHealth},
		{"GET /{$}", s.pageList},
		{"GET /c/{container}", s.pageContainer},
		{"POST /c/{container}/clear", s.pageClear},
		{"GET /estate", s.pageEstate},
		{"GET /assets/{file}", s.asset},
	} {
		s.mux.Handle(r.pattern, s.answer(r))
		s.patterns = append(s.patterns, r.pattern)
	}
	s.mux.Handle("/", s.answer(route{"/", s.none}))
}

// Handler is the service.
func (s *Server) Handler() http.Handler { return s.guard(s.mux) }

// errGone says that the estate is not where it was.
var errGone = errors.New("the estate is not there")

// there tells whether the estate can be reached.
func (s *Server) there() error {
	info, err := os.Stat(filepath.Join(s.o.Estate, "estate.json"))
	switch {
	case err != nil:
		return errors.Join(errGone, err)
	case !info.Mode().IsRegular():
		return errGone
	}
	return nil
}
