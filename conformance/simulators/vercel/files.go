//go:build linux

package vercel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// place is a path with the folder that it is in.
type place struct {
	Path      string `json:"path"`
	CWD       string `json:"cwd"`
	Recursive *bool  `json:"recursive"`
}

func (p place) absolute() string {
	if path.IsAbs(p.Path) {
		return path.Clean(p.Path)
	}
	folder := p.CWD
	if folder == "" {
		folder = workdir
	}
	return path.Join("/", folder, p.Path)
}

// writeFiles unpacks a tar.gz as the sandbox's user. Names are below the header x-cwd.
func (s *Server) writeFiles(r *http.Request) (any, error) {
	one, err := s.running(r)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Type") != "application/gzip" {
		return nil, badRequest("The content type must be application/gzip.")
	}
	folder := r.Header.Get("X-Cwd")
	if folder == "" {
		folder = workdir
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, badRequest("The body is no gzip.")
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return map[string]any{}, nil
		}
		if err != nil {
			return nil, badRequest("The body is no tar: " + err.Error())
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := s.unpack(one, path.Join("/", folder, header.Name), header.FileInfo().Mode().Perm(), archive); err != nil {
			return nil, err
		}
	}
}

// unpack writes one file, with the rights of the user and no more.
func (s *Server) unpack(one *session, name string, mode fs.FileMode, content io.Reader) error {
	script := `mkdir -p "$(dirname "$0")" && rm -f "$0" && cat > "$0" && chmod "$1" "$0"`
	process, err := one.box.Start(s.life, machine.Command{
		Argv: []string{"/bin/sh", "-c", script, name, octal(mode)}, User: s.config.User, Dir: "/", Stdin: true,
	})
	if err != nil {
		return err
	}
	defer process.Close()
	go func() { _, _ = io.Copy(io.Discard, process.Stdout()) }()
	_, copyErr := io.Copy(process.Stdin(), content)
	closeErr := process.Stdin().Close()
	said, _ := io.ReadAll(io.LimitReader(process.Stderr(), 4<<10))
	exit, err := process.Wait(s.life)
	if err = errors.Join(err, copyErr, closeErr); err == nil && exit.Code == 0 {
		return nil
	}
	return badRequest("The file could not be written: " + strings.TrimSpace(string(said)))
}

func octal(mode fs.FileMode) string {
	const digits = "01234567"
	return string([]byte{digits[mode>>6&7], digits[mode>>3&7], digits[mode&7]})
}

// readFile answers the content of a file.
func (s *Server) readFile(w http.ResponseWriter, r *http.Request) error {
	var at place
	if err := read(r, &at); err != nil {
		return err
	}
	one, err := s.running(r)
	if err != nil {
		return err
	}
	process, err := one.box.Start(s.life, machine.Command{Argv: []string{"cat", "--", at.absolute()}, User: s.config.User, Dir: "/"})
	if err != nil {
		return err
	}
	defer process.Close()
	var said bytes.Buffer
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(&said, io.LimitReader(process.Stderr(), 4<<10))
		close(done)
	}()
	// The first piece decides whether there is a file.
	first := make([]byte, 64<<10)
	n, readErr := io.ReadFull(process.Stdout(), first)
	if n == 0 {
		<-done
		if exit, err := process.Wait(r.Context()); err == nil && exit.Code != 0 {
			return notFound("The file")
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(first[:n])
	if readErr == nil {
		_, _ = io.Copy(w, process.Stdout())
	}
	return nil
}

// makeFolder makes a folder as the sandbox's user. One that is there is an error unless recursive.
func (s *Server) makeFolder(r *http.Request) (any, error) {
	var at place
	if err := read(r, &at); err != nil {
		return nil, err
	}
	one, err := s.running(r)
	if err != nil {
		return nil, err
	}
	argv := []string{"mkdir", "--", at.absolute()}
	if at.Recursive != nil && *at.Recursive {
		argv = []string{"mkdir", "-p", "--", at.absolute()}
	}
	code, err := runToEnd(s.life, one.box, machine.Command{Argv: argv, User: s.config.User, Dir: "/"})
	if err == nil && code != 0 {
		err = badRequest("The folder is there already, or its parent is not.")
	}
	return map[string]any{}, err
}
