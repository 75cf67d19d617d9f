package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// frame is a Connect envelope.
func frame(flag byte, text string) []byte {
	return append([]byte{flag, 0, 0, 0, byte(len(text))}, text...)
}

// TestShortStreamsAreWhole is the trap that full duplex is for: without it some of many short answers miss
// their end.
func TestShortStreamsAreWhole(t *testing.T) {
	want := bytes.Join([][]byte{frame(0, `{"start":1}`), frame(0, `{"data":2}`), frame(2, `{}`)}, nil)
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, 7)); err != nil {
			panic(http.ErrAbortHandler)
		}
		for rest := want; len(rest) > 0; {
			n := 5 + int(rest[4])
			_, _ = w.Write(rest[:n])
			_ = http.NewResponseController(w).Flush()
			rest = rest[n:]
		}
	})
	streams, workers := 10_000, 16
	if testing.Short() {
		streams = 1_500
	}
	var begun atomic.Int64
	var all sync.WaitGroup
	for range workers {
		c := l.http1()
		all.Go(func() {
			for n := begun.Add(1); n <= int64(streams); n = begun.Add(1) {
				var body io.Reader = bytes.NewReader(frame(0, `{}`))
				if n%2 == 0 {
					body = io.MultiReader(body) // of unknown length: sent in chunks
				}
				answer, err := c.Do(l.request(c, "POST", "/process.Process/Start", envdPort, body))
				if err != nil {
					t.Errorf("stream %d: %v", n, err)
					return
				}
				got, err := io.ReadAll(answer.Body)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("stream %d: %q, %v", n, got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestDuplex(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			_, _ = fmt.Fprintf(w, "echo %s\n", lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})
	for _, port := range []string{envdPort, "8080"} {
		for _, c := range l.clients() {
			t.Run(c.name+" "+port, func(t *testing.T) {
				body, sent := io.Pipe()
				answer, err := c.Do(l.request(c, "POST", "/", port, body))
				require.NoError(t, err)
				lines := bufio.NewScanner(answer.Body)
				for i := range 20 {
					_, err := fmt.Fprintf(sent, "%d\n", i)
					require.NoError(t, err)
					require.True(t, lines.Scan(), lines.Err())
					require.Equal(t, fmt.Sprintf("echo %d", i), lines.Text())
				}
				require.NoError(t, sent.Close())
				require.False(t, lines.Scan())
				require.NoError(t, lines.Err())
			})
		}
	}
}

// TestDyingStreamEndsBroken: whatever ends a stream that was not complete, the client learns of it.
func TestDyingStreamEndsBroken(t *testing.T) {
	deaths := map[string]func(*lab){
		"backend dies": func(l *lab) { l.envd.die() },
		"sandbox ends": func(l *lab) { close(l.gone) },
	}
	bodies := map[string]string{"of unknown length": "", "of known length": "1000"}
	for death, die := range deaths {
		for body, length := range bodies {
			for i, name := range []string{"h1", "h2c", "h2"} {
				t.Run(death+", answer "+body+", "+name, func(t *testing.T) {
					l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
						if length != "" {
							w.Header().Set("Content-Length", length)
						}
						_, _ = io.WriteString(w, "partial")
						_ = http.NewResponseController(w).Flush()
						<-r.Context().Done()
						panic(http.ErrAbortHandler)
					})
					c := l.clients()[i]
					answer, err := c.Do(l.request(c, "POST", "/process.Process/Start", envdPort, strings.NewReader("{}")))
					require.NoError(t, err)
					_, err = io.ReadFull(answer.Body, make([]byte, 7))
					require.NoError(t, err)
					die(l)
					_, err = io.ReadAll(answer.Body)
					require.Error(t, err, "a clean end")
				})
			}
		}
	}
}

// TestSandboxEndReachesAStalledReader: the client does not read, so that the gateway is stuck in a write.
func TestSandboxEndReachesAStalledReader(t *testing.T) {
	for i, name := range []string{"h1", "h2c", "h2"} {
		t.Run(name, func(t *testing.T) {
			var written atomic.Int64
			l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
				chunk := make([]byte, 64<<10)
				for r.Context().Err() == nil {
					n, _ := w.Write(chunk)
					written.Add(int64(n))
				}
			})
			c := l.clients()[i]
			answer, err := c.Do(l.request(c, "GET", "/files", envdPort, nil))
			require.NoError(t, err)
			defer answer.Body.Close()
			last := int64(-1)
			require.Eventually(t, func() bool { // nothing moves any more
				now := written.Load()
				stuck := now == last && now > 0
				last = now
				return stuck
			}, patience, 200*time.Millisecond)
			close(l.gone)
			require.Eventually(t, func() bool { return l.open.Load() == 0 }, patience, 10*time.Millisecond)
			_, err = io.Copy(io.Discard, answer.Body)
			require.Error(t, err)
		})
	}
}

func TestUploadThatStalls(t *testing.T) {
	tests := []struct {
		name    string
		port    string
		die     func(*lab)
		status  int
		message string
	}{
		{"daemon dies", envdPort, func(l *lab) { l.envd.die() }, 500, "It is kept: try again"},
		{"daemon dies with its sandbox", envdPort, func(l *lab) { l.envd.die(); close(l.gone) }, 502, "The sandbox was not found"},
		{"sandbox ends", envdPort, func(l *lab) { close(l.gone) }, 502, "The sandbox was not found"},
		{"application dies", "8080", func(l *lab) { l.app.die() }, 502, "ended before there was an answer"},
	}
	for _, test := range tests {
		for i, name := range []string{"h1", "h2c", "h2"} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				arrived := make(chan struct{})
				l := newLab(t, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadFull(r.Body, make([]byte, 5))
					close(arrived)
					_, _ = io.Copy(io.Discard, r.Body)
					panic(http.ErrAbortHandler)
				})
				c := l.clients()[i]
				body, sent := io.Pipe()
				defer sent.Close()
				go func() { _, _ = io.WriteString(sent, "hello") }()
				go func() {
					<-arrived
					test.die(l)
				}()
				r := l.request(c, "POST", "/files", test.port, body)
				r.ContentLength = 1 << 20
				begun := time.Now()
				answer, err := c.Do(r)
				require.NoError(t, err)
				defer answer.Body.Close()
				require.Less(t, time.Since(begun), patience)
				require.Equal(t, test.status, answer.StatusCode)
				text := make([]byte, 400)
				n, _ := io.ReadAtLeast(answer.Body, text, 10)
				require.Contains(t, string(text[:n]), test.message)
			})
		}
	}
}

func TestClientAbortReachesTheBackend(t *testing.T) {
	for _, port := range []string{envdPort, "8080"} {
		arrived, ended := make(chan struct{}, 1), make(chan struct{}, 1)
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first")
			_ = http.NewResponseController(w).Flush()
			arrived <- struct{}{}
			<-r.Context().Done()
			ended <- struct{}{}
		})
		for _, c := range l.clients() {
			t.Run(c.name+" "+port, func(t *testing.T) {
				answer, err := c.Do(l.request(c, "GET", "/", port, nil))
				require.NoError(t, err)
				<-arrived
				require.NoError(t, answer.Body.Close())
				select {
				case <-ended:
				case <-time.After(patience):
					t.Fatal("the backend goes on")
				}
			})
		}
	}
}

func TestEventsComeOneByOne(t *testing.T) {
	next := make(chan struct{})
	l := newLab(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for i := range 5 {
			<-next
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
		}
	})
	for _, c := range l.clients() {
		t.Run(c.name, func(t *testing.T) {
			answer, err := c.Do(l.request(c, "GET", "/events", "8080", nil))
			require.NoError(t, err, "the header comes before the first event")
			events := bufio.NewReader(answer.Body)
			for i := range 5 {
				next <- struct{}{}
				line, err := events.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
				_, err = events.ReadString('\n')
				require.NoError(t, err)
			}
			_, err = events.ReadByte()
			require.ErrorIs(t, err, io.EOF)
		})
	}
}
