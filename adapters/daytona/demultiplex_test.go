package daytona

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMarksAreCutAnywhere reads one stream in frames of every size.
func TestMarksAreCutAnywhere(t *testing.T) {
	const stream = "before\n\x01\x01\x01out 1\n\x02\x02\x02err 1\n\x01\x01\x01out 2\n\x01\x01\x01out 3\n\x02\x02\x02err 2"
	for size := 1; size <= len(stream); size++ {
		for label, want := range map[byte]string{markOut: "before\nout 1\nout 2\nout 3\n", markErr: "err 1\nerr 2"} {
			rest := []byte(stream)
			got, err := io.ReadAll(&demultiplexer{label: label, next: func() ([]byte, error) {
				if len(rest) == 0 {
					return nil, io.EOF
				}
				frame := rest[:min(size, len(rest))]
				rest = rest[len(frame):]
				return frame, nil
			}})
			require.NoError(t, err)
			require.Equal(t, want, string(got), "in frames of %d", size)
		}
	}
}
