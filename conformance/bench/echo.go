package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/filesystem"
	"github.com/isthmus/isthmus/envd/process"
)

// Terminals measures the way of a key to a terminal and back.
func (r *Report) Terminals(ctx context.Context, targets []*Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := map[string]*terminal{}
	for _, t := range targets {
		one, err := t.terminal(ctx)
		if err != nil {
			return fmt.Errorf("%s: a terminal: %w", t.Name, err)
		}
		defer one.stream.Close()
		open[t.Name] = one
	}
	return r.echoes(ctx, "terminal echo", targets, func(ctx context.Context, t *Target) error { return open[t.Name].key(ctx) })
}

// Watches measures the time from a write, by the API, to the event that tells of it.
func (r *Report) Watches(ctx context.Context, targets []*Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := map[string]*watched{}
	for _, t := range targets {
		one, err := t.watch(ctx)
		if err != nil {
			return fmt.Errorf("%s: a watch: %w", t.Name, err)
		}
		defer one.stream.Close()
		open[t.Name] = one
	}
	return r.echoes(ctx, "watch event", targets, func(ctx context.Context, t *Target) error { return open[t.Name].change(ctx) })
}

func (r *Report) echoes(ctx context.Context, name string, targets []*Target, do func(context.Context, *Target) error) error {
	if err := r.Quiet(ctx, name); err != nil {
		return err
	}
	took, err := turns(ctx, targets, max(r.Scale.Calls/4, 5), do)
	if err == nil {
		r.latencies(name, targets, took)
	}
	return err
}

// terminal is a cat with a terminal.
type terminal struct {
	target *Target
	pid    uint32
	stream *connect.ServerStreamForClient[process.StartResponse]
}

func (t *Target) terminal(ctx context.Context) (*terminal, error) {
	request := connect.NewRequest(&process.StartRequest{
		Process: &process.ProcessConfig{Cmd: "/bin/cat"}, Pty: &process.PTY{Size: &process.PTY_Size{Cols: 80, Rows: 24}},
	})
	stream, err := t.process().Start(ctx, request)
	if err != nil {
		return nil, err
	}
	if !stream.Receive() {
		return nil, errors.Join(errors.New("no start"), stream.Err())
	}
	return &terminal{t, stream.Msg().GetEvent().GetStart().GetPid(), stream}, nil
}

// key presses one key and waits until the terminal shows it.
func (o *terminal) key(ctx context.Context) error {
	_, err := o.target.process().SendInput(ctx, connect.NewRequest(&process.SendInputRequest{
		Process: &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: o.pid}},
		Input:   &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte("x")}},
	}))
	if err != nil {
		return err
	}
	for o.stream.Receive() {
		if len(o.stream.Msg().GetEvent().GetData().GetPty()) > 0 {
			return nil
		}
	}
	return errors.Join(errors.New("the terminal ended"), o.stream.Err())
}

// watched is a folder that is watched.
type watched struct {
	target *Target
	stream *connect.ServerStreamForClient[filesystem.WatchDirResponse]
}

func (t *Target) watch(ctx context.Context) (*watched, error) {
	stream, err := t.filesystem().WatchDir(ctx, connect.NewRequest(&filesystem.WatchDirRequest{Path: t.Folder + "/watched"}))
	if err != nil {
		return nil, err
	}
	if !stream.Receive() {
		return nil, errors.Join(errors.New("no start"), stream.Err())
	}
	return &watched{t, stream}, nil
}

// change makes a file of its own name and waits until it is told of it.
func (o *watched) change(ctx context.Context) error {
	name := fmt.Sprintf("f%d", time.Now().UnixNano())
	if err := o.target.upload(ctx, "watched/"+name, 1); err != nil {
		return err
	}
	for o.stream.Receive() {
		if event := o.stream.Msg().GetFilesystem(); event.GetName() == name {
			return nil
		}
	}
	return errors.Join(errors.New("the watch ended"), o.stream.Err())
}
