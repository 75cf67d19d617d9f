package kubernetes

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	//lint:ignore SA1019 client-go itself still speaks in these types
	"k8s.io/apimachinery/pkg/util/httpstream"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap/agent"
)

// Exec starts a program in a box by pods/exec. That there is no such program shows at its end: Wait says so.
func (c *Cluster) Exec(ctx context.Context, boxID string, argv []string) (adapters.Execution, error) {
	pod, err := c.running(ctx, boxID)
	if err != nil {
		return nil, err
	}
	executor, err := c.executor(pod.Name, argv)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the program cannot be asked for")
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &program{stop: stop, ended: make(chan struct{})}
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	p.in, p.out = inWrite, outRead
	go func() { // ends with the program, or with Close
		p.err = executor.StreamWithContext(running, remotecommand.StreamOptions{Stdin: inRead, Stdout: outWrite})
		_ = outWrite.CloseWithError(io.EOF)
		_ = inWrite.Close() // the client's copy of the input ends in good order
		close(p.ended)
		stop()
	}()
	return p, nil
}

// executor speaks over a WebSocket, or as older servers have it.
func (c *Cluster) executor(pod string, argv []string) (remotecommand.Executor, error) {
	request := c.core.RESTClient().Post().Resource("pods").Namespace(c.config.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: argv, Stdin: true, Stdout: true}, scheme.ParameterCodec)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(c.config.Client, http.MethodGet, request.URL().String())
	if err != nil {
		return nil, err
	}
	older, err := remotecommand.NewSPDYExecutor(c.config.Client, http.MethodPost, request.URL())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(overWebSocket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// program is one program that was started by pods/exec.
type program struct {
	in    *io.PipeWriter
	out   *io.PipeReader
	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended is closed
	once  sync.Once
}

// Read reads the program's output.
func (p *program) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write writes to the program's input.
func (p *program) Write(b []byte) (int, error) { return p.in.Write(b) }

// CloseWrite ends the program's input.
func (p *program) CloseWrite() error { return p.in.Close() }

// Wait returns the exit code.
func (p *program) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	var code exec.CodeExitError
	switch {
	case p.err == nil:
		return 0, nil
	case errors.As(p.err, &code):
		return code.Code, nil
	case strings.Contains(p.err.Error(), "no such file"), strings.Contains(p.err.Error(), "not found"):
		return 0, adapters.Wrap(adapters.KindPrecondition, p.err, "there is no such program in the sandbox")
	}
	return 0, adapters.Wrap(adapters.KindUnavailable, p.err, "the program could not be run in the sandbox")
}

// Close lets go of the program.
func (p *program) Close() error {
	p.once.Do(func() {
		p.stop()
		_ = p.in.Close()
		_ = p.out.CloseWithError(io.ErrClosedPipe)
	})
	return nil
}

// write is what puts a file in its place, in one step, in any image that has a shell.
const write = `set -e; mkdir -p "${0%/*}"; cat >"$0.part"; chmod "$1" "$0.part"; mv -f "$0.part" "$0"`

// Put writes a file in a box, which needs a shell there.
func (c *Cluster) Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	p, err := c.Exec(ctx, boxID, []string{"/bin/sh", "-c", write, path, strconv.FormatUint(uint64(mode.Perm()), 8)})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	defer context.AfterFunc(ctx, func() { _ = p.Close() })()
	_, copied := io.Copy(p, content)
	if copied == nil {
		copied = p.CloseWrite()
	}
	code, err := p.Wait(ctx)
	switch {
	case err != nil:
		return err
	case copied != nil || code != 0:
		return adapters.Wrap(adapters.KindUnavailable, copied, "the file could not be written in the sandbox: its image needs /bin/sh, cat, chmod and mv")
	}
	return nil
}

// carry sends envd into a pod that waits for it.
func (c *Cluster) carry(ctx context.Context, boxID string) error {
	program, err := agent.Open(agent.Envd, runtime.GOARCH) // nodes of other kinds need an envd_image
	if err != nil {
		return adapters.Wrap(adapters.KindInvalid, err, "there is no envd to put into sandboxes: run `make build`, or name an envd_image")
	}
	defer func() { _ = program.Close() }()
	return c.Put(ctx, boxID, envdPath, 0o755, program)
}
