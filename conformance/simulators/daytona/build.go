package daytona

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// imageOf is the image that a Dockerfile begins with.
func imageOf(dockerfile string) string {
	for line := range strings.Lines(dockerfile) {
		if words := strings.Fields(line); len(words) > 1 && strings.EqualFold(words[0], "FROM") {
			return words[1]
		}
	}
	return ""
}

// build passes through the states of an image that was never used: it takes its time. Only Dockerfiles of one line
// are built here.
func (s *Simulator) build(ctx context.Context, sb *sandbox, info *buildInfo) error {
	image := imageOf(info.DockerfileContent)
	if image == "" {
		return errors.New("dockerfile parse error: no build stage in current context")
	}
	if extra := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(info.DockerfileContent), "FROM "+image)); extra != "" {
		return fmt.Errorf("the simulator builds no image: it only uses one, by FROM; it cannot %q", extra)
	}
	if err := s.pullable(image); err != nil {
		return err
	}
	s.mu.Lock()
	known := s.images[image]
	s.mu.Unlock()
	if known {
		s.pass(ctx, sb, statePulling)
		return nil
	}
	s.pass(ctx, sb, statePendingBuild)
	sb.setState(stateBuilding)
	pause(ctx, s.config.Build)
	s.pass(ctx, sb, statePulling)
	s.mu.Lock()
	s.images[image] = true
	s.mu.Unlock()
	return ctx.Err()
}

// pullable refuses images of a private registry that the organization has no credentials for.
func (s *Simulator) pullable(image string) error {
	host, _, named := strings.Cut(image, "/")
	if !named || !strings.ContainsAny(host, ".:") || host == "docker.io" || host == "ghcr.io" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.registries {
		if strings.Contains(one.URL, host) {
			return nil
		}
	}
	return fmt.Errorf("failed to pull image %s: pull access denied, repository does not exist or may require authorization", image)
}

// prepare gives a new box the account of its user.
func prepare(ctx context.Context, box *machine.Box, user string) error {
	if user == "root" {
		return nil
	}
	code, out, err := run(ctx, box, machine.Command{Argv: []string{"/bin/sh", "-c",
		`id "$0" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$0" 2>&1`, user}})
	if err == nil && code != 0 {
		err = fmt.Errorf("the user %s cannot be made: %s", user, out)
	}
	return err
}

// run runs one program to its end; out is what it wrote on its standard output.
func run(ctx context.Context, box *machine.Box, c machine.Command) (code int, out []byte, err error) {
	out, _, exit, err := box.Run(ctx, c)
	return exit.Code, out, err
}
