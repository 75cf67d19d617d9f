package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// programMode is for root alone to write, and for everybody to run.
const programMode = 0o755

// maxOutput bounds what is read of a program's output.
const maxOutput = 4 << 10

// The waits between two looks whether envd answers.
const (
	firstWait = 2 * time.Millisecond
	lastWait  = 250 * time.Millisecond
)

// boot brings envd to life in a box: put there unless it is there in this version, started, awaited.
func (p *Provider) boot(ctx context.Context, spec adapters.Spec) error {
	if p.config.Started {
		return p.await(ctx, spec)
	}
	if p.config.Waits {
		born := spec.BoxID
		if p.config.Born != nil {
			born = p.config.Born(spec)
		}
		return p.configure(ctx, spec, born)
	}
	if place, can := p.Bare.(Furnished); can && place.Furnished(spec.BoxID) {
		err := p.start(ctx, spec)
		if err == nil {
			return p.await(ctx, spec)
		}
		if adapters.KindOf(err) != adapters.KindPrecondition {
			return err
		}
		// It is not there after all.
	}
	if err := p.furnish(ctx, spec.BoxID); err != nil {
		return err
	}
	if err := p.start(ctx, spec); err != nil {
		return err
	}
	return p.await(ctx, spec)
}

// furnish puts envd into a box unless it is there in this version.
func (p *Provider) furnish(ctx context.Context, boxID string) error {
	version, err := p.version(ctx, boxID)
	if err != nil || version == envd.Version {
		return err
	}
	return p.put(ctx, boxID)
}

// version asks the program in the box for its version; empty when there is none that runs.
func (p *Provider) version(ctx context.Context, boxID string) (string, error) {
	out, code, err := p.run(ctx, boxID, nil, p.config.Path, "version")
	if adapters.KindOf(err) == adapters.KindPrecondition {
		return "", nil
	}
	if err != nil || code != 0 {
		return "", err
	}
	return strings.TrimSpace(out), nil
}

// put uploads the program and looks that it is the right one and runs.
func (p *Provider) put(ctx context.Context, boxID string) error {
	program, err := p.config.Envd()
	if err != nil {
		return adapters.Wrap(adapters.KindInvalid, err, "there is no envd for "+p.config.Arch+" to put into sandboxes: run `make build`")
	}
	defer func() { _ = program.Close() }()
	if err := p.Put(ctx, boxID, p.config.Path, programMode, program); err != nil {
		return adapters.Touching(adapters.FeatureFiles, err)
	}
	switch version, err := p.version(ctx, boxID); {
	case err != nil:
		return err
	case version != envd.Version:
		return adapters.Errorf(adapters.KindUnavailable, "envd for %s does not run in the sandbox, or is of another version: got %q, want %q",
			p.config.Arch, version, envd.Version)
	}
	return nil
}

// start leaves the daemon running. Its configuration holds secrets and goes over the program's input.
func (p *Provider) start(ctx context.Context, spec adapters.Spec) error {
	config, err := json.Marshal(spec.Envd)
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "the configuration of envd cannot be written")
	}
	listen := net.JoinHostPort("0.0.0.0", strconv.Itoa(p.config.Port))
	switch _, err := p.address(ctx, spec.BoxID); {
	case errors.Is(err, ErrNoAddress):
		listen = p.config.Socket
	case err != nil:
		return err
	}
	args := []string{p.config.Path, "start", "--listen", listen, "--loopback", net.JoinHostPort("127.0.0.1", strconv.Itoa(envd.Port))}
	if p.config.End != "" {
		args = append(args, "--end", p.config.End)
	}
	out, code, err := p.run(ctx, spec.BoxID, config, args...)
	if err != nil {
		return err
	}
	if code != 0 {
		return adapters.Errorf(adapters.KindUnavailable, "envd could not be started in the sandbox: %s", strings.TrimSpace(out))
	}
	return nil
}

// run runs one program to its end and returns what it said.
func (p *Provider) run(ctx context.Context, boxID string, input []byte, argv ...string) (out string, code int, err error) {
	program, err := p.Exec(ctx, boxID, argv)
	if err != nil {
		return "", 0, adapters.Touching(adapters.FeatureExec, err)
	}
	defer func() { _ = program.Close() }()
	defer context.AfterFunc(ctx, func() { _ = program.Close() })()
	if _, err = io.Copy(program, bytes.NewReader(input)); err == nil {
		err = program.CloseWrite()
	}
	text, readErr := io.ReadAll(io.LimitReader(program, maxOutput))
	if err = errors.Join(err, readErr); err == nil {
		code, err = program.Wait(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return "", 0, ctx.Err()
	case err != nil:
		failed := adapters.Wrap(adapters.KindUnavailable, err, fmt.Sprintf("the program %s could not be run in the sandbox", argv[0]))
		return "", 0, adapters.Touching(adapters.FeatureExec, failed)
	}
	return string(text), code, nil
}

// await returns when envd has answered one call.
func (p *Provider) await(ctx context.Context, spec adapters.Spec) error {
	return p.until(ctx, func(ctx context.Context) error { return p.health(ctx, spec.BoxID) })
}

// until calls envd until it has answered as it should.
func (p *Provider) until(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.Ready)
	defer cancel()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := call(ctx)
		if err == nil {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return adapters.Wrap(adapters.KindUnavailable, errors.Join(err, ctx.Err()), "envd was started in the sandbox and does not answer")
		}
	}
}
