package modal

import (
	"context"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

const (
	// bakeLife is that of a sandbox that is only there to be copied: its end comes also when nobody ends it.
	bakeLife = 15 * time.Minute
	// bakeKept is how long Modal keeps a baked image. It is baked again when it is missing.
	bakeKept = 30 * 24 * time.Hour
	// programMode is for root alone to write, and for everybody to run.
	programMode = 0o755
)

// bakedTag is the name of the image of a template with this envd in it.
func bakedTag(t Template) string {
	return "isthmus-baked:" + templateID(strings.Join([]string{t.Name, t.Image, envd.Version, userCommand, baseCommand}, "\n"))
}

// bakeLater has a template baked, unless so many wait that this one does already.
func (p *Provider) bakeLater(t Template) {
	if p.config.Envd == nil {
		return
	}
	select {
	case p.bakes <- t:
	default:
	}
}

// bake puts envd into a template's image, so that the boxes to come need no upload. Until then, and when it does not
// succeed, they get it one by one.
func (p *Provider) bake(ctx context.Context, t Template) {
	image, err := p.bakedImage(ctx, t)
	if err != nil {
		if ctx.Err() == nil {
			p.log.Warn("envd could not be put into the image of a template: every create uploads it", "template", t.Name, "err", err)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.baked[t.Name] = image
}

// bakedImage is the image, which is made when there is none.
func (p *Provider) bakedImage(ctx context.Context, t Template) (string, error) {
	name := bakedTag(t)
	image, err := p.control.published(ctx, name, p.config.Environment)
	if err == nil || adapters.KindOf(err) != adapters.KindNotFound {
		return image, err
	}
	plain, err := p.plainImage(ctx, t)
	if err != nil {
		return "", err
	}
	one, err := p.bakery(ctx, plain)
	if err != nil {
		return "", err
	}
	key := "bake " + one.id // no box has such an id
	p.remember(key, one)
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		p.forget(key)
		if err := p.terminate(clean, one.id); err != nil {
			p.log.Warn("a sandbox that was only there to be copied could not be ended: it ends by itself", "sandbox", one.id, "err", err)
		}
	}()
	if err := p.upload(ctx, key); err != nil {
		return "", err
	}
	if image, err = p.copyFiles(ctx, key, key, int64(bakeKept/time.Second)); err != nil {
		return "", err
	}
	return image, p.control.publish(ctx, image, name)
}

// bakery makes the sandbox that is copied. It carries no deployment: it is nobody's box. Once it is asked for, its
// answer is waited for also when Isthmus stops: it is known by nothing else, and could not be ended.
func (p *Provider) bakery(ctx context.Context, image string) (*known, error) {
	app, err := p.appID(ctx)
	if err != nil {
		return nil, err
	}
	definition := pb.Sandbox_builder{
		EntrypointArgs: []string{"sleep", "infinity"}, ImageId: image, TimeoutSecs: uint32(bakeLife / time.Second),
		NetworkAccess: pb.NetworkAccess_builder{NetworkAccessType: pb.NetworkAccess_BLOCKED}.Build(),
	}.Build()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	return p.placeSecond(whole, app, definition, tagsOf(map[string]string{tagPurpose: "bake"}))
}

func (p *Provider) upload(ctx context.Context, boxID string) error {
	program, err := p.config.Envd()
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	return p.Put(ctx, boxID, p.config.Path, programMode, program)
}

// published finds an image by its name.
func (c *control) published(ctx context.Context, name, environment string) (image string, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		answer, err := c.stub.ImageGetByTag(ctx, pb.ImageGetByTagRequest_builder{Tag: name, EnvironmentName: environment}.Build())
		image = answer.GetImageId()
		return err
	})
	if err == nil && image == "" {
		err = adapters.Errorf(adapters.KindNotFound, "there is no image %s", name)
	}
	return image, err
}
