package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/isthmus/isthmus/conformance/bench"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/server/fleet"
)

// startLimit and stopLimit are long enough for a loaded machine.
const (
	startLimit = time.Minute
	stopLimit  = 2 * time.Minute
)

// program is one that was started for the run.
type program struct {
	command *exec.Cmd
	log     strings.Builder
}

// launch starts a program and waits until the URL is answered, with whatever.
func launch(ctx context.Context, url string, command *exec.Cmd) (*program, error) {
	p := &program{command: command}
	command.Stderr = &p.log
	if err := command.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, errors.Join(err, p.stop())
		}
		if answer, err := client.Do(request); err == nil {
			return p, answer.Body.Close()
		}
		select {
		case <-ctx.Done():
			_ = p.stop()
			return nil, fmt.Errorf("%s does not answer: %s", command.Path, p.log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *program) pid() int { return p.command.Process.Pid }

// stop asks the program to end, and makes it when it does not.
func (p *program) stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	killer := time.AfterFunc(stopLimit, func() { _ = p.command.Process.Kill() })
	defer killer.Stop()
	_ = p.command.Wait()
	return nil
}

// freeAddress is one at which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// facade is an Isthmus with a data folder of its own.
type facade struct {
	*program
	bench.Server
	data string
}

const apiKey = "e2b_00112233445566778899aabbccddeeff00112233"

// newFacade starts one. lines are added to its configuration; the sandboxes end with it.
func (o options) newFacade(ctx context.Context, lines string, flags ...string) (*facade, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		return nil, err
	}
	images, err := filepath.Abs(filepath.Join(o.images, "images"))
	if err == nil {
		err = os.Symlink(images, filepath.Join(data, "images"))
	}
	config := filepath.Join(data, "isthmus.yaml")
	if err == nil {
		err = os.WriteFile(config, []byte("listen: "+address+"\ndata: "+data+"\n"+lines), 0o600)
	}
	if err != nil {
		return nil, err
	}
	command := exec.Command("bin/isthmus", append([]string{"serve", "--config", config, "--no-build", "--kill-on-exit"}, flags...)...)
	command.Env = append(os.Environ(), "ISTHMUS_API_KEY="+apiKey)
	p, err := launch(ctx, "http://"+address+"/health", command)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}}
	return &facade{p, bench.Server{APIURL: "http://" + address, SandboxURL: "http://" + address, APIKey: apiKey, Client: client}, data}, nil
}

// stop ends the facade and its sandboxes, and removes its data.
func (f *facade) stop() error { return errors.Join(f.program.stop(), os.RemoveAll(f.data)) }

// box is where a sandbox of a facade is on this machine.
type box struct {
	socket, transport string
	pid               int
}

// find looks a sandbox of the facade up in its data folder.
func (f *facade) find(id string) (box, error) {
	records, err := filepath.Glob(filepath.Join(f.data, "local", "boxes", "*", "box.json"))
	if err != nil {
		return box{}, err
	}
	secrets, err := fleet.LoadSecrets(filepath.Join(f.data, "key"))
	if err != nil {
		return box{}, err
	}
	for _, path := range records {
		text, err := os.ReadFile(path)
		if err != nil {
			return box{}, err
		}
		var record struct {
			BoxID, SandboxID string
			Process          struct{ PID int }
		}
		if err := json.Unmarshal(text, &record); err != nil {
			return box{}, err
		}
		if record.SandboxID == id {
			return box{filepath.Join(filepath.Dir(path), "e"), secrets.Transport(record.BoxID), record.Process.PID}, nil
		}
	}
	return box{}, fmt.Errorf("there is no sandbox %s below %s", id, f.data)
}

// plainEnvd starts our envd as a plain process, for its own sake.
func plainEnvd(ctx context.Context) (*program, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	config, write, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer config.Close()
	err = json.NewEncoder(write).Encode(envd.Config{SandboxID: "bench", TemplateID: "bench", DefaultUser: "root"})
	if err := errors.Join(err, write.Close()); err != nil {
		return nil, "", err
	}
	command := exec.Command("bin/envd", "serve", "--config-fd", "3", "--listen", address)
	command.ExtraFiles = []*os.File{config}
	p, err := launch(ctx, "http://"+address+"/health", command)
	return p, "http://" + address, err
}

// upstreamEnvd starts upstream's.
func (o options) upstreamEnvd(ctx context.Context) (*program, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	_, port, _ := net.SplitHostPort(address)
	p, err := launch(ctx, "http://"+address+"/health", exec.Command(o.upstream, "-isnotfc", "-no-cgroups", "-port", port))
	return p, "http://" + address, err
}
