package daemon_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

const listPath = "/process.Process/List"

func TestMessagesHaveALimit(t *testing.T) {
	r := run(t, envd.Config{})
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, err := io.WriteString(zip, `{"a":"`+strings.Repeat("x", 65<<20)+`"}`)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	long := `{"a":"` + strings.Repeat("x", 65<<20) + `"}`
	for name, one := range map[string]struct {
		body    string
		headers []string
	}{
		"plain":      {long, nil},
		"compressed": {bomb.String(), []string{"Content-Encoding", "gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, "POST", r.facade+listPath, one.body, append(one.headers, "Content-Type", "application/json")...)
			require.Equal(t, http.StatusBadRequest, got.status, got.body)
			require.Contains(t, got.body, `"invalid_argument"`)
			require.Contains(t, got.body, "is larger than the 67108864 bytes")
			require.Contains(t, got.body, "write large data as files")
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			require.Less(t, after.HeapInuse, uint64(400<<20), "memory is given back")
		})
	}
}

func TestManyBigMessagesAreReadOneByOne(t *testing.T) {
	r := run(t, envd.Config{})
	body := `{"a":"` + strings.Repeat("x", 8<<20) + `"}`
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			resp, err := http.Post(r.facade+listPath, "application/json", strings.NewReader(body))
			if err == nil {
				err = resp.Body.Close()
			}
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v %v", resp, err)
			}
		})
	}
	all.Wait()
}

// A client that stops in the middle of a big message holds up big messages only, and not for long after it left.
func TestABigMessageThatStalls(t *testing.T) {
	r := run(t, envd.Config{})
	body := `{"a":"` + strings.Repeat("x", 2<<20) + `"}`
	reader, writer := io.Pipe()
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", r.facade+listPath, reader)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	_, err = writer.Write([]byte(body)[:3<<19])
	require.NoError(t, err)
	require.Equal(t, 200, ask(t, "POST", r.facade+listPath, "{}", "Content-Type", "application/json").status)
	leave()
	require.NoError(t, writer.Close())
	<-left
	require.Equal(t, 200, ask(t, "POST", r.facade+listPath, body, "Content-Type", "application/json").status)
}

func TestMetricsTellTheBox(t *testing.T) {
	r := run(t, envd.Config{MemoryBytes: 64 << 20})
	var m struct {
		Total uint64 `json:"mem_total"`
		Used  uint64 `json:"mem_used"`
	}
	require.NoError(t, json.Unmarshal([]byte(ask(t, "GET", r.loopback+"/metrics", "").body), &m))
	require.EqualValues(t, 64<<20, m.Total)
	require.NotZero(t, m.Used)
	require.LessOrEqual(t, m.Used, m.Total)
}
