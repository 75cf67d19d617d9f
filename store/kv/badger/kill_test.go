package badger_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store/kv"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// writerFolder tells this test binary, started again, to be the process that is killed.
const writerFolder = "ISTHMUS_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerFolder); dir != "" {
		fmt.Fprintln(os.Stderr, write(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// write commits one number after the other, and says each once it is committed.
func write(dir string) error {
	engine, err := badger.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	first, err := last(engine)
	if err != nil {
		return err
	}
	for n := first + 1; ; n++ {
		if err := engine.Update(context.Background(), func(tx kv.Tx) error {
			// Two keys that must always agree.
			if err := tx.Set("a", []byte(strconv.Itoa(n)), 0); err != nil {
				return err
			}
			return tx.Set("b", []byte(strconv.Itoa(n)), 0)
		}); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// last reads the two keys, which must agree.
func last(engine kv.Engine) (int, error) {
	var a, b []byte
	err := engine.View(context.Background(), func(r kv.Reader) (err error) {
		if a, err = r.Get("a"); err != nil {
			return err
		}
		b, err = r.Get("b")
		return err
	})
	if err == kv.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if string(a) != string(b) {
		return 0, fmt.Errorf("half a transaction: a is %s and b is %s", a, b)
	}
	return strconv.Atoi(string(a))
}

// Whatever was committed before a kill -9 is there after it, and nothing is there by half.
func TestKilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), writerFolder+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		said := 0
		lines := bufio.NewScanner(out)
		for count := 0; lines.Scan(); count++ {
			said, err = strconv.Atoi(lines.Text())
			require.NoError(t, err)
			if count == 100*(round+1) {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait())
		engine, err := badger.Open(dir, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		kept, err := last(engine)
		require.NoError(t, err)
		require.GreaterOrEqual(t, kept, said)
		require.NoError(t, engine.Close())
	}
}

func TestConflictsAreRetried(t *testing.T) {
	engine, err := badger.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const writers, each = 8, 25
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for range each {
				if err := increment(t.Context(), engine); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		require.NoError(t, <-errs)
	}
	sum := 0
	require.NoError(t, engine.View(t.Context(), func(r kv.Reader) error {
		value, err := r.Get("sum")
		sum, _ = strconv.Atoi(string(value))
		return err
	}))
	require.Equal(t, writers*each, sum)
	require.NoError(t, engine.Close())
}

func increment(ctx context.Context, engine kv.Engine) error {
	return engine.Update(ctx, func(tx kv.Tx) error {
		sum := 0
		value, err := tx.Get("sum")
		if err == nil {
			sum, err = strconv.Atoi(string(value))
		}
		if err != nil && err != kv.ErrNotFound {
			return err
		}
		return tx.Set("sum", []byte(strconv.Itoa(sum+1)), 0)
	})
}

func TestScan(t *testing.T) {
	engine, err := badger.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, engine.Update(t.Context(), func(tx kv.Tx) error {
		for _, key := range []string{"a", "p/1", "p/2", "p/3", "q"} {
			if err := tx.Set(key, []byte("v"+key), 0); err != nil {
				return err
			}
		}
		return nil
	}))
	cases := []struct {
		name string
		r    kv.Range
		want []string
	}{
		{"forward", kv.Range{Prefix: "p/"}, []string{"p/1", "p/2", "p/3"}},
		{"from", kv.Range{Prefix: "p/", From: "p/2"}, []string{"p/2", "p/3"}},
		{"reverse", kv.Range{Prefix: "p/", Reverse: true}, []string{"p/3", "p/2", "p/1"}},
		{"reverse from", kv.Range{Prefix: "p/", From: "p/2", Reverse: true}, []string{"p/2", "p/1"}},
		{"reverse from between", kv.Range{Prefix: "p/", From: "p/29", Reverse: true}, []string{"p/2", "p/1"}},
		{"none", kv.Range{Prefix: "x/"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var keys []string
			require.NoError(t, engine.View(t.Context(), func(r kv.Reader) error {
				for entry, err := range r.Scan(c.r) {
					if err != nil {
						return err
					}
					keys = append(keys, entry.Key)
					require.Equal(t, "v"+entry.Key, string(entry.Value))
				}
				return nil
			}))
			require.Equal(t, c.want, keys)
		})
	}
	require.NoError(t, engine.Close())
}
