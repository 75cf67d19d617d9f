//go:build linux

package modal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// fileTool is the program of the cloud's own by which the SDKs work on files. Here it is no program of the box.
const fileTool = "/__modal/.bin/modal-sandbox-fs-tools"

// fileOperation is the argument of the tool: one of its fields is there.
type fileOperation struct {
	ReadFile, WriteFile, ListFiles, Stat *struct{ Path string }
	MakeDirectory                        *struct {
		Path    string
		Parents bool
	}
	Remove *struct {
		Path      string
		Recursive bool
	}
}

// fileError is what the tool says on its second stream.
type fileError struct {
	Kind    string `json:"error_kind"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
}

func (e *fileError) Error() string { return e.Message }

// toolRun is one run of the tool.
type toolRun struct {
	stdin          *io.PipeReader
	input          *io.PipeWriter
	stdout, stderr *io.PipeReader
	cancel         context.CancelFunc
	done           chan struct{}
	code           int
	once           sync.Once
}

func newFileTool(ctx context.Context, box *machine.Box, args []string) *toolRun {
	ctx, cancel := context.WithCancel(ctx)
	t := &toolRun{cancel: cancel, done: make(chan struct{})}
	var out, log *io.PipeWriter
	t.stdin, t.input = io.Pipe()
	t.stdout, out = io.Pipe()
	t.stderr, log = io.Pipe()
	go func() {
		defer close(t.done)
		err := operate(ctx, box, args, t.stdin, out)
		_ = out.Close()
		if err != nil {
			t.code = 1
			_, _ = log.Write(explain(err))
		}
		_ = errors.Join(log.Close(), t.stdin.Close())
	}()
	return t
}

func explain(err error) []byte {
	var typed *fileError
	if !errors.As(err, &typed) {
		typed = &fileError{Kind: "Other", Message: "the operation failed", Detail: err.Error()}
	}
	text, _ := json.Marshal(typed)
	return text
}

// Stdout is the tool's output.
func (t *toolRun) Stdout() io.Reader { return t.stdout }

// Stderr has the error.
func (t *toolRun) Stderr() io.Reader { return t.stderr }

// Stdin is the tool's input.
func (t *toolRun) Stdin() io.WriteCloser { return t.input }

// Wait waits for the end.
func (t *toolRun) Wait(ctx context.Context) (machine.Exit, error) {
	select {
	case <-t.done:
		return machine.Exit{Code: t.code}, nil
	case <-ctx.Done():
		return machine.Exit{}, ctx.Err()
	}
}

// Signal ends it, whatever the signal.
func (t *toolRun) Signal(context.Context, syscall.Signal) error {
	t.Close()
	return nil
}

// Close ends it.
func (t *toolRun) Close() {
	t.once.Do(func() {
		t.cancel()
		_, _, _ = t.stdin.Close(), t.stdout.Close(), t.stderr.Close()
	})
}

func operate(ctx context.Context, box *machine.Box, args []string, in io.Reader, out io.Writer) error {
	var op fileOperation
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &op) != nil {
		return &fileError{Kind: "Other", Message: "the operation cannot be read"}
	}
	switch {
	case op.ReadFile != nil:
		if err := plain(ctx, box, op.ReadFile.Path); err != nil {
			return err
		}
		return copyOut(ctx, box, op.ReadFile.Path, out)
	case op.WriteFile != nil:
		if kind, _ := kindOf(ctx, box, op.WriteFile.Path); kind == "directory" {
			return &fileError{Kind: "IsDirectory", Message: "it is a directory"}
		}
		return box.Write(ctx, op.WriteFile.Path, 0o644, in)
	case op.ListFiles != nil:
		if kind, err := kindOf(ctx, box, op.ListFiles.Path); err != nil || kind != "directory" {
			return errors.Join(err, notDirectory(err))
		}
		return list(ctx, box, out, op.ListFiles.Path, "-mindepth", "1")
	case op.Stat != nil:
		return stat(ctx, box, out, op.Stat.Path)
	case op.MakeDirectory != nil:
		return makeDirectory(ctx, box, op.MakeDirectory.Path, op.MakeDirectory.Parents)
	case op.Remove != nil:
		return remove(ctx, box, op.Remove.Path, op.Remove.Recursive)
	}
	return &fileError{Kind: "NotSupported", Message: "this operation is not simulated"}
}

func notDirectory(err error) error {
	if err != nil {
		return nil
	}
	return &fileError{Kind: "NotDirectory", Message: "it is not a directory"}
}

// plain refuses what cannot be read as a file.
func plain(ctx context.Context, box *machine.Box, name string) error {
	kind, err := kindOf(ctx, box, name)
	if err == nil && kind == "directory" {
		err = &fileError{Kind: "IsDirectory", Message: "it is a directory"}
	}
	return err
}

func copyOut(ctx context.Context, box *machine.Box, name string, out io.Writer) error {
	content, err := box.Read(ctx, name)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(out, content)
	return err
}

// entry is a file as the tool describes it.
type entry struct {
	Name        string  `json:"name"`
	Path        string  `json:"path"`
	Type        string  `json:"type"`
	Size        int64   `json:"size"`
	Mode        uint32  `json:"mode"`
	Permissions string  `json:"permissions"`
	Owner       string  `json:"owner"`
	Group       string  `json:"group"`
	Modified    float64 `json:"modified_time"`
	Target      *string `json:"symlink_target"`
}

// findFormat has nine fields, each ended by a zero byte.
const findFormat = `%f\0%p\0%y\0%s\0%m\0%M\0%u\0%g\0%T@\0%l\0`

const findFields = 10

// entries describes what find finds below a path.
func entries(ctx context.Context, box *machine.Box, name string, args ...string) ([]entry, error) {
	argv := append([]string{"find", name, "-maxdepth", "1"}, args...)
	text, err := say(ctx, box, append(argv, "-printf", findFormat)...)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(text, "\x00")
	found := []entry{}
	for ; len(fields) >= findFields; fields = fields[findFields:] {
		size, _ := strconv.ParseInt(fields[3], 10, 64)
		mode, _ := strconv.ParseUint(fields[4], 8, 32)
		modified, _ := strconv.ParseFloat(fields[8], 64)
		kinds := map[string]string{"f": "file", "d": "directory", "l": "symlink"}
		e := entry{Name: path.Base(fields[1]), Path: fields[1], Type: kinds[fields[2]], Size: size, Mode: uint32(mode), Permissions: fields[5], Owner: fields[6], Group: fields[7], Modified: modified}
		if e.Type == "" {
			e.Type = "file"
		}
		if fields[9] != "" {
			e.Target = &fields[9]
		}
		found = append(found, e)
	}
	return found, nil
}

func list(ctx context.Context, box *machine.Box, out io.Writer, name string, args ...string) error {
	found, err := entries(ctx, box, name, args...)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(found)
}

func stat(ctx context.Context, box *machine.Box, out io.Writer, name string) error {
	found, err := entries(ctx, box, name, "-maxdepth", "0")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return missing()
	}
	return json.NewEncoder(out).Encode(found[0])
}

func missing() error {
	return &fileError{Kind: "NotFound", Message: "there is no such file or directory"}
}

// kindOf is the kind of a file, links followed.
func kindOf(ctx context.Context, box *machine.Box, name string) (string, error) {
	text, err := say(ctx, box, "stat", "-L", "-c", "%F", name)
	return strings.TrimSpace(text), err
}

func makeDirectory(ctx context.Context, box *machine.Box, name string, parents bool) error {
	if parents {
		_, err := say(ctx, box, "mkdir", "-p", name)
		return err
	}
	_, err := say(ctx, box, "mkdir", name)
	return err
}

func remove(ctx context.Context, box *machine.Box, name string, recursive bool) error {
	if recursive {
		if _, err := say(ctx, box, "stat", name); err != nil {
			return err
		}
		_, err := say(ctx, box, "rm", "-rf", name)
		return err
	}
	_, err := say(ctx, box, "rm", "-d", name)
	return err
}

// say runs a program of the box and returns what it said.
func say(ctx context.Context, box *machine.Box, argv ...string) (string, error) {
	process, err := box.Start(ctx, machine.Command{Argv: argv, Env: map[string]string{"LC_ALL": "C"}})
	if err != nil {
		return "", err
	}
	defer process.Close()
	var out, log bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&log, process.Stderr()) })
	_, _ = io.Copy(&out, process.Stdout())
	reading.Wait()
	exit, err := process.Wait(ctx)
	if err != nil || exit.Code == 0 && exit.Signal == "" {
		return out.String(), err
	}
	return "", classify(log.String())
}

// classify is the kind of an error, by what the programs say.
func classify(text string) error {
	for part, kind := range map[string]string{
		"No such file": "NotFound", "File exists": "PathAlreadyExists", "Not a directory": "NotDirectory", "not empty": "DirectoryNotEmpty",
		"Permission denied": "PermissionDenied", "Is a directory": "IsDirectory",
	} {
		if strings.Contains(text, part) {
			return &fileError{Kind: kind, Message: strings.ToLower(part), Detail: text}
		}
	}
	return &fileError{Kind: "Other", Message: "the operation failed", Detail: fmt.Sprintf("%.200s", text)}
}
