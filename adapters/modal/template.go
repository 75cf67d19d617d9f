package modal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// Template is a name of this pool.
type Template struct {
	Name string
	// Image is a reference in a public registry, for example python:3.12, or the id of an image at Modal, im-…;
	// empty: Debian with what E2B's base template has.
	Image string
	// Resources are the default sizes; zero fields: 2 CPUs, 1024 MiB of memory, 10 GiB of disk.
	Resources adapters.Resources
}

// The commands by which Modal builds images. Programs run as the user of this name unless they are told otherwise.
const (
	baseImage   = "debian:12"
	baseCommand = "RUN apt-get update && apt-get install -y --no-install-recommends bash ca-certificates curl git nodejs npm procps python3 python3-pip python3-venv && rm -rf /var/lib/apt/lists/*"
	userCommand = "RUN id -u user >/dev/null 2>&1 || useradd --create-home --shell /bin/bash user || adduser -D -s /bin/sh user"
)

// Resolve finds a template by its name or id.
func (p *Provider) Resolve(_ context.Context, name string) (adapters.Template, error) {
	t, err := p.template(name)
	if err != nil {
		return adapters.Template{}, err
	}
	r := t.Resources
	return adapters.Template{
		ID: templateID(t.Name), Name: t.Name, Version: templateID(t.Image + " " + t.Name),
		Resources: adapters.Resources{CPU: cmp.Or(r.CPU, 2), MemoryMB: cmp.Or(r.MemoryMB, 1024), DiskMB: cmp.Or(r.DiskMB, 10*1024)},
	}, nil
}

func (p *Provider) template(name string) (Template, error) {
	var names []string
	for _, t := range p.config.Templates {
		if name == t.Name || name == templateID(t.Name) {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Template{}, adapters.Errorf(adapters.KindNotFound, "there is no template %s in this pool: there is %s", name, strings.Join(names, ", "))
}

// templateID is the id of a name; it stays the same.
func templateID(name string) string {
	sum := sha256.Sum256([]byte("modal template " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}

// image is the id of what a box is made of: a snapshot, the template with envd baked in, or the template.
func (p *Provider) image(ctx context.Context, t adapters.Template) (string, error) {
	if t.Snapshot != "" {
		return t.Snapshot, nil
	}
	one, err := p.template(cmp.Or(t.Name, t.ID))
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	id := p.baked[one.Name]
	p.mu.Unlock()
	if id != "" {
		return id, nil
	}
	return p.plainImage(ctx, one)
}

// plainImage is the template's image as Modal builds it. Building the same twice costs nothing there.
func (p *Provider) plainImage(ctx context.Context, t Template) (string, error) {
	if strings.HasPrefix(t.Image, "im-") {
		return t.Image, nil
	}
	p.mu.Lock()
	id := p.images[t.Name]
	p.mu.Unlock()
	if id != "" {
		return id, nil
	}
	app, err := p.appID(ctx)
	if err != nil {
		return "", err
	}
	commands := []string{"FROM " + t.Image, userCommand}
	if t.Image == "" {
		commands = []string{"FROM " + baseImage, baseCommand, userCommand}
	}
	if id, err = p.control.build(ctx, app, commands); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.images[t.Name] = id
	return id, nil
}

// app finds the app, or makes it.
func (c *control) app(ctx context.Context, name, environment string) (id string, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		answer, err := c.stub.AppGetOrCreate(ctx, pb.AppGetOrCreateRequest_builder{
			AppName: name, EnvironmentName: environment, ObjectCreationType: pb.ObjectCreationType_OBJECT_CREATION_TYPE_CREATE_IF_MISSING,
		}.Build())
		id = answer.GetAppId()
		return err
	})
	if err == nil && id == "" {
		err = adapters.Errorf(adapters.KindUnavailable, "Modal does not say which app it has")
	}
	return id, err
}

const (
	// builderVersion is that of Modal's image builder.
	builderVersion = "2025.06"
	// buildWait is how long one call waits for a build, buildTime how long all of them do.
	buildWait = 25 * time.Second
	buildTime = 15 * time.Minute
)

// build builds an image and returns when it is there.
func (c *control) build(ctx context.Context, app string, commands []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	var answer *pb.ImageGetOrCreateResponse
	err := c.do(ctx, func(ctx context.Context) (err error) {
		answer, err = c.stub.ImageGetOrCreate(ctx, pb.ImageGetOrCreateRequest_builder{
			AppId: app, BuilderVersion: builderVersion, Image: pb.Image_builder{DockerfileCommands: commands}.Build(),
		}.Build())
		return err
	})
	if err != nil {
		return "", err
	}
	id, result, entry := answer.GetImageId(), answer.GetResult(), ""
	for result.GetStatus() == pb.GenericResult_GENERIC_STATUS_UNSPECIFIED {
		if result, entry, err = c.join(ctx, id, entry); err != nil {
			return "", err
		}
	}
	if id == "" || result.GetStatus() != pb.GenericResult_GENERIC_STATUS_SUCCESS {
		return "", adapters.Errorf(adapters.KindUnavailable, "Modal could not build the image of the template (%s): %s", commands[0], result.GetException())
	}
	return id, nil
}

// join waits for the end of a build, for a while.
func (c *control) join(ctx context.Context, id, entry string) (result *pb.GenericResult, last string, err error) {
	last = entry
	err = c.do(ctx, func(ctx context.Context) error {
		stream, err := c.stub.ImageJoinStreaming(ctx, pb.ImageJoinStreamingRequest_builder{ImageId: id, Timeout: float32(buildWait.Seconds()), LastEntryId: last}.Build())
		if err != nil {
			return err
		}
		for {
			message, err := stream.Recv()
			if err != nil {
				return endOfStream(err)
			}
			if message.GetEntryId() != "" {
				last = message.GetEntryId()
			}
			if result = message.GetResult(); result.GetStatus() != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED {
				return nil
			}
			if message.GetEof() {
				return nil
			}
		}
	})
	return result, last, err
}
