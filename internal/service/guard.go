package service

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/internal/service/token"
)

// guard looks at what every request must be, before any of it is believed.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser says that its own form comes from nowhere
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		err := s.fromHere(r)
		if err == nil && !s.writes(r) {
			// A peer may be slow, but not still: each chunk that it reads or sends moves the deadline.
			r.Body = http.NoBody
		}
		if err != nil {
			s.metrics.request("guard", s.fail(w, r, err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

// fromHere refuses what another site makes a browser send: a name that was made to point here (DNS rebinding), and
// requests with another origin.
func (s *Server) fromHere(r *http.Request) error {
	host := hostOf(r.Host)
	if !s.isOurs(host) {
		return &statusError{status: http.StatusForbidden, code: granthttp.CodeForbidden, text: "the service is not called by that name",
			hint: "use 127.0.0.1 or localhost, or start the service with --host NAME"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return &statusError{status: http.StatusForbidden, code: granthttp.CodeForbidden, text: "the request comes from another site"}
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && s.writes(r) {
		return &statusError{status: http.StatusForbidden, code: granthttp.CodeForbidden, text: "the request comes from another site"}
	}
	return nil
}

func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func (s *Server) isOurs(host string) bool {
	if host == "localhost" || slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// identity is who a request comes from.
type identity struct {
	actor grant.Actor // the zero Actor: nobody is named
	// trusted: no token, but from loopback, which is trusted to say which agent it is.
	trusted bool
}

// who tells who a request comes from. A token that is not known is an error also where none is needed.
func (s *Server) who(r *http.Request) (identity, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return identity{trusted: s.o.TrustLoopback && fromLoopback(r)}, nil
	}
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return identity{}, errUnauthorized("the Authorization header is not of the form: Bearer TOKEN")
	}
	return s.bearer(strings.TrimSpace(text))
}

func (s *Server) bearer(text string) (identity, error) {
	t, err := s.tokens.Who(text)
	switch {
	case err != nil && s.there() != nil:
		return identity{}, s.there() // without the estate no token is known, and none is wrong
	case errors.Is(err, token.ErrUnknown), errors.Is(err, token.ErrDamaged):
		return identity{}, errUnauthorized(err.Error())
	case err != nil:
		return identity{}, err
	}
	return identity{actor: t.Actor}, nil
}

func fromLoopback(r *http.Request) bool {
	ip := net.ParseIP(hostOf(r.RemoteAddr))
	return ip != nil && ip.IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// acts wants somebody who may write something, and returns who it is.
func (s *Server) acts(r *http.Request) (identity, error) {
	id, err := s.who(r)
	if err == nil && id.actor.Name == "" && !id.trusted {
		err = errUnauthorized("a token is needed")
	}
	return id, err
}

// as is the actor of a request that names one; by may be the zero Actor.
func (id identity) as(by grant.Actor) (grant.Actor, error) {
	switch {
	case id.trusted && by.Name == "":
		return by, &granthttp.FieldError{Field: "by", Why: `without a token, who acts is named: {"name":"ada","role":"agent"}`}
	case id.trusted && by.Role != grant.RoleAgent:
		return by, errForbidden("without a token one acts as an agent, never as an operator")
	case id.trusted || by == grant.Actor{}:
		if id.trusted {
			return by, nil
		}
		return id.actor, nil
	case by != id.actor:
		return by, errForbidden(fmt.Sprintf("the token is %s %s's, and of nobody else", id.actor.Role, id.actor.Name))
	}
	return by, nil
}

// answer runs a route: it reports its error, its panic and its time.
func (s *Server) answer(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		if !isStream(rt.pattern) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * s.o.stall)) // a test's recorder has none
		}
		r.Body = &steady{ReadCloser: r.Body, rc: http.NewResponseController(w), stall: s.o.stall}
		func() {
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p)
				}
				s.log.Error("a request made the service panic", "route", rt.pattern, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if !rec.wrote {
					s.fail(rec, r, errors.New("panic"))
				}
			}()
			if err := rt.handle(rec, r); err != nil {
				if rec.wrote {
					// The answer has begun, and cannot become another: the client must see that it is cut short.
					s.log.Warn("an answer was cut short", "route", rt.pattern, "error", err)
					panic(http.ErrAbortHandler)
				}
				s.fail(rec, r, err)
			}
		}()
		s.metrics.request(rt.pattern, rec.status)
		// Neither headers nor queries: they may hold what is nobody's to read.
		s.log.Info("request", "route", rt.pattern, "container", r.PathValue("container"), "status", rec.status, "ms", time.Since(began).Milliseconds())
	})
}

func isStream(pattern string) bool {
	return strings.HasSuffix(pattern, "/events") || strings.Contains(pattern, "/objects/") || strings.HasSuffix(pattern, "{container}") || strings.HasSuffix(pattern, "/result")
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.wrote = true
	return r.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// steady gives a client that sends nothing for too long up, however long the whole may take.
type steady struct {
	io.ReadCloser
	rc    *http.ResponseController
	stall time.Duration
}

func (b *steady) Read(p []byte) (int, error) {
	_ = b.rc.SetReadDeadline(time.Now().Add(b.stall)) // a test's recorder has none
	return b.ReadCloser.Read(p)
}

// steadyWriter is the same for a client that reads.
type steadyWriter struct {
	w     io.Writer
	rc    *http.ResponseController
	stall time.Duration
}

func (w *steadyWriter) Write(p []byte) (int, error) {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.stall))
	return w.w.Write(p)
}
