//go:build linux

package handover

import (
	"encoding/binary"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

type message struct{ Text string }

func TestValuesAndDescriptorsCross(t *testing.T) {
	ours, theirs, err := Pair()
	require.NoError(t, err)
	defer ours.Close()
	fd, err := unix.Dup(int(theirs.Fd()))
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	other, err := Conn(fd)
	require.NoError(t, err)
	defer other.Close()

	r, w, err := os.Pipe()
	require.NoError(t, err)
	long := strings.Repeat("long ", 200_000)
	sent := make(chan error, 1)
	go func() { sent <- Send(ours, message{long}, int(w.Fd())) }()
	var got message
	fds, err := Receive(other, &got)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, long, got.Text)
	require.Len(t, fds, 1)
	require.NoError(t, w.Close())
	_, err = unix.Write(fds[0], []byte("through it"))
	require.NoError(t, err)
	CloseAll(fds)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "through it", string(text))
	require.NoError(t, r.Close())

	require.NoError(t, ours.Close())
	_, err = Receive(other, &got)
	require.ErrorIs(t, err, io.EOF)
}

func TestMessagesThatAreRefused(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"too large": binary.BigEndian.AppendUint32(nil, MaxBytes+1),
		"cut head":  {0, 0},
		"cut body":  {0, 0, 0, 9, '{'},
		"no JSON":   {0, 0, 0, 1, '{'},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs, err := Pair()
			require.NoError(t, err)
			_, err = theirs.Write(bytes)
			require.NoError(t, err)
			require.NoError(t, theirs.Close())
			var got message
			fds, err := Receive(ours, &got)
			require.Error(t, err)
			require.Empty(t, fds)
			require.NoError(t, ours.Close())
		})
	}
	require.ErrorContains(t, Send(nil, message{strings.Repeat("x", MaxBytes)}), "too large")
}
