package files

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
)

// maxComposeBody bounds the JSON of a request to RouteCompose, in bytes.
const maxComposeBody = 1 << 20

// composePiece is how much is copied before it is looked whether the client is still there, in bytes.
const composePiece = 64 << 20

// composeRequest is the body of POST /files/compose.
type composeRequest struct {
	SourcePaths []string `json:"source_paths"`
	Destination string   `json:"destination"`
	Username    *string  `json:"username"`
}

// composition is a request with its paths made absolute.
type composition struct {
	handler     *Handler
	sources     []string
	destination string
	owner       tree.Owner
}

// compose answers POST /files/compose: it puts files together, in order, under another name, and removes them.
func (h *Handler) compose(w http.ResponseWriter, r *http.Request) *fault {
	var request composeRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxComposeBody)).Decode(&request); err != nil {
		return refuse(http.StatusBadRequest, "error parsing request body: %s", err)
	}
	switch {
	case len(request.SourcePaths) == 0:
		return refuse(http.StatusBadRequest, "source_paths must not be empty")
	case request.Destination == "":
		return refuse(http.StatusBadRequest, "destination is required")
	}
	user, refused := h.user(request.Username)
	if refused != nil {
		return refused
	}
	c := composition{handler: h, owner: owner(user)}
	if c.destination, refused = h.expand(user, request.Destination); refused != nil {
		return refused
	}
	for _, sent := range request.SourcePaths {
		source, refused := h.expand(user, sent)
		if refused != nil {
			return refused
		}
		if refused := c.check(source, sent); refused != nil {
			return refused
		}
		c.sources = append(c.sources, source)
	}
	if refused := c.run(r.Context()); refused != nil {
		return refused
	}
	reply(w, http.StatusOK, written{Name: filepath.Base(c.destination), Path: c.destination, Type: "file"})
	return nil
}

// check refuses a source before anything is written.
func (c *composition) check(source, sent string) *fault {
	if filepath.Clean(source) == filepath.Clean(c.destination) {
		return refuse(http.StatusBadRequest, "source path equals destination: %s", sent)
	}
	file, refused := c.open(source, sent)
	if refused == nil {
		file.Close()
	}
	return refused
}

func (c *composition) open(source, sent string) (*os.File, *fault) {
	file, _, refused := c.handler.openRegular(source)
	switch {
	case refused == nil:
		return file, nil
	case refused.status == http.StatusNotFound:
		return nil, refuse(http.StatusNotFound, "source file not found: %s", sent)
	}
	return nil, refused
}

// run writes beside the destination and renames at the end, so that nobody sees a half of it.
func (c *composition) run(ctx context.Context) *fault {
	if _, err := c.handler.tree.MakeFolders(filepath.Dir(c.destination), c.owner); err != nil {
		return c.failed(&folderError{err})
	}
	draft := c.destination + ".e2b-compose." + uuid.NewString() + ".tmp"
	fd, err := c.handler.tree.Open(draft, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, fileMode)
	if err != nil {
		return c.failed(err)
	}
	file := os.NewFile(uintptr(fd), draft)
	err = c.fill(ctx, file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = c.handler.tree.Move(draft, c.destination)
	}
	if err != nil {
		_ = c.handler.tree.Remove(draft)
		return c.failed(err)
	}
	slices.Sort(c.sources)
	for _, source := range slices.Compact(c.sources) {
		if err := c.handler.tree.Remove(source); err != nil {
			return refuse(http.StatusInternalServerError, "error removing source file: %s", err)
		}
	}
	return nil
}

// fill appends the sources; between files of one file system the kernel copies by itself.
func (c *composition) fill(ctx context.Context, draft *os.File) error {
	for _, source := range c.sources {
		if err := c.append(ctx, draft, source); err != nil {
			return err
		}
	}
	return draft.Chown(int(c.owner.UID), int(c.owner.GID))
}

func (c *composition) append(ctx context.Context, draft *os.File, source string) error {
	file, refused := c.open(source, source)
	if refused != nil {
		return refused
	}
	defer file.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := io.CopyN(draft, file, composePiece)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// failed words an error for the client.
func (c *composition) failed(err error) *fault {
	if errors.Is(err, unix.EEXIST) {
		return refuse(http.StatusBadRequest, "path is a directory: %s", c.destination)
	}
	var known *fault
	if !errors.As(err, &known) {
		errors.As(storeFault(err, c.destination, incoming{length: -1}), &known)
	}
	return known
}
