package modal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// receive is how a file comes into a box: beside its place, and then into it in one step. Modal has no call for it.
const receive = `d=${1%/*}; mkdir -p "${d:-/}" && t=$(mktemp "${d:-}/.put-XXXXXX") && cat >"$t" && chmod "$2" "$t" && mv -f "$t" "$1"`

// putTime is after what time Modal ends the program that takes a file: it is left alone when the file breaks off,
// because the end of its input would make half a file a whole one.
const putTime = 10 * time.Minute

// maxMessageText bounds what is read of what a program says about its failure, in bytes.
const maxMessageText = 4 << 10

// Put writes a file in a box.
func (p *Provider) Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	program, err := p.exec(ctx, boxID, []string{"/bin/sh", "-c", receive, "put", path, fmt.Sprintf("%o", mode.Perm())}, putTime)
	if err != nil {
		return err
	}
	if err := program.take(ctx, content); err != nil {
		program.letGo()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.forgetGone(boxID, err)
	}
	defer func() { _ = program.Close() }()
	said, readErr := io.ReadAll(io.LimitReader(program, maxMessageText))
	code, err := program.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || readErr != nil:
		return p.forgetGone(boxID, errors.Join(err, readErr))
	case code != 0:
		return adapters.Errorf(adapters.KindUnavailable, "the file %s could not be written in the sandbox: %s", path, strings.TrimSpace(string(said)))
	}
	return nil
}

// take tells the program all of the content, and that it is all.
func (e *execution) take(ctx context.Context, content io.Reader) error {
	defer context.AfterFunc(ctx, e.letGo)()
	buffered := bufio.NewReaderSize(content, longestWrite)
	for {
		block, err := buffered.Peek(longestWrite)
		if len(block) > 0 {
			if _, err := e.Write(block); err != nil {
				return err
			}
			_, _ = buffered.Discard(len(block))
		}
		if errors.Is(err, io.EOF) {
			return e.CloseWrite()
		}
		if err != nil {
			return adapters.Wrap(adapters.KindInternal, err, "what should be written cannot be read")
		}
	}
}
