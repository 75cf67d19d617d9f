//go:build linux

package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/provider"
)

// twister stands before a server and spoils answers.
type twister struct {
	mu   sync.Mutex
	each func(w http.ResponseWriter, r *http.Request, next http.Handler) // nil: nothing is spoilt
}

// around spoils what a handler answers.
func (t *twister) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		each := t.each
		t.mu.Unlock()
		if each == nil {
			next.ServeHTTP(w, r)
			return
		}
		each(w, r, next)
	})
}

func (t *twister) set(each func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each = each
}

// spoil does the twist to the answers to one method whose paths end so.
func (t *twister) spoil(method, ending string, twist func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(context.CancelFunc) func() {
	return func(context.CancelFunc) func() {
		t.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == method && strings.HasSuffix(r.URL.Path, ending) {
				twist(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
		return func() { t.set(nil) }
	}
}

// page answers a page for people, and does nothing.
func page(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<html><body>We have moved</body></html>")
}

// cut ends the answer after so many bytes, and the connection or the stream with it.
func cut(after int) func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:min(after, answer.Body.Len())])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// change alters the JSON of the answer.
func change(alter func(answer any)) func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		var body any
		if json.Unmarshal(answer.Body.Bytes(), &body) == nil {
			alter(body)
			text, _ := json.Marshal(body)
			answer.Body = bytes.NewBuffer(text)
		}
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

// field sets a field of an object, or takes it away.
func field(answer any, value any, path ...string) {
	object, is := answer.(map[string]any)
	for ; is && len(path) > 1; path = path[1:] {
		object, is = object[path[0]].(map[string]any)
	}
	if !is {
		return
	}
	if value == nil {
		delete(object, path[0])
		return
	}
	object[path[0]] = value
}

// getting looks a box up. Those below are the other calls of the cases.
func getting(id string) func(context.Context, *adapters.Watched) error {
	return func(ctx context.Context, p *adapters.Watched) error { _, err := p.Get(ctx, id); return err }
}

func listing(ctx context.Context, p *adapters.Watched) error {
	_, err := p.List(ctx, "drift")
	return err
}

func copies(ctx context.Context, p *adapters.Watched) error {
	_, err := p.Powers().Snapshotter.Snapshots(ctx, "drift")
	return err
}

func pausing(id string) func(context.Context, *adapters.Watched) error {
	return func(ctx context.Context, p *adapters.Watched) error {
		return p.Powers().Pauser.Pause(ctx, id, adapters.LevelFilesystem)
	}
}

func making(spec adapters.Spec) func(context.Context, *adapters.Watched) error {
	return func(ctx context.Context, p *adapters.Watched) error { _, err := p.Create(ctx, spec); return err }
}

func extending(spec adapters.Spec) func(context.Context, *adapters.Watched) error {
	return func(ctx context.Context, p *adapters.Watched) error {
		return p.Powers().Extender.Extend(ctx, spec.BoxID, spec.Envd.Deadline.Add(time.Hour))
	}
}

func starting(id string) func(context.Context, *adapters.Watched) error {
	return func(ctx context.Context, p *adapters.Watched) error {
		program, err := p.Powers().Bootable.Exec(ctx, id, []string{"/bin/true"})
		if err == nil {
			err = program.Close()
		}
		return err
	}
}

// drifting runs an adapter's work and the cases, of which the first makes the one box, and looks that nothing is left.
func drifting(t *testing.T, inner adapters.Provider, all []provider.Strange) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- inner.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()
	p := adapters.Watch(inner, func(d adapters.Drift) { t.Logf("%+v", d) })
	provider.Drift(t, p, all)
	boxes, err := p.List(t.Context(), "drift")
	require.NoError(t, err)
	require.Len(t, boxes, 1, "nothing was made twice, and no box was given up for an answer that was not understood")
	for _, box := range boxes {
		require.NoError(t, p.Destroy(t.Context(), box.ID))
	}
}
