package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// socketName is the socket in the data folder.
const socketName = "isthmus.sock"

// ErrNoServer is returned when no server has the data folder open.
var ErrNoServer = errors.New("no Isthmus is running on this data folder")

// ListenSocket opens the socket of a data folder, mode 0600 from the first moment on. The caller has the store
// open, so a socket that is there is that of a server that died.
func ListenSocket(dataDir string) (net.Listener, error) {
	folder, done, err := short(dataDir)
	if err != nil {
		return nil, err
	}
	defer done()
	// Bound where nobody else can reach it, then moved to its place.
	private, err := os.MkdirTemp(folder, ".socket-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(private) }()
	bound := filepath.Join(private, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: bound, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket of the data folder: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(bound, 0o600)
	if err == nil {
		err = os.Rename(bound, filepath.Join(folder, socketName))
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), os.Remove(bound))
	}
	return listener, nil
}

// RemoveSocket takes the socket of a data folder away.
func RemoveSocket(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, socketName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// dialSocket connects to the server of a data folder.
func dialSocket(ctx context.Context, dataDir string) (net.Conn, error) {
	folder, done, err := short(dataDir)
	if err != nil {
		return nil, err
	}
	defer done()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", filepath.Join(folder, socketName))
}

// short names a folder by its descriptor, because the path of a unix socket has at most 108 bytes.
func short(folder string) (string, func(), error) {
	f, err := os.Open(folder)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd()), func() { _ = f.Close() }, nil
}
