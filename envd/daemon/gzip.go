package daemon

import (
	"compress/gzip"
	"fmt"
	"io"

	"connectrpc.com/connect"
)

// withGzip is Connect's own compression, with a bound of ours on what comes out.
func withGzip() connect.HandlerOption {
	return connect.WithCompression("gzip",
		func() connect.Decompressor { return &unzip{Reader: new(gzip.Reader)} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) })
}

// unzip refuses a message that would be too large.
type unzip struct {
	*gzip.Reader
	left int64
}

// Reset begins another message.
func (u *unzip) Reset(r io.Reader) error {
	u.left = maxMessage
	return u.Reader.Reset(r)
}

// Read reads decompressed bytes.
func (u *unzip) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, fmt.Errorf("the message is larger than the %d bytes that one may have: write large data as files, or in pieces", maxMessage)
	}
	return n, err
}
