package modal

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// snapshotTime bounds one try to copy the files of a box.
const snapshotTime = 5 * time.Minute

// snapshotTag is the name under which copies of a deployment are kept: images at Modal have names and no labels.
func snapshotTag(deployment, name string) string {
	return "isthmus-snapshot-" + deployment + ":" + name
}

// Snapshot copies the files of a box. The box runs on untouched.
func (p *Provider) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	image, err := p.copyFiles(ctx, spec.BoxID, name, -1)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	if err := p.control.publish(ctx, image, snapshotTag(spec.Deployment, name)); err != nil {
		return adapters.Snapshot{}, err
	}
	return copied(name, image, spec.Deployment, time.Now().UTC()), nil
}

// copied is a copy, which has a name only since its image was whole.
func copied(name, image, deployment string, at time.Time) adapters.Snapshot {
	return adapters.Snapshot{Name: name, Ref: image, Deployment: deployment, Level: adapters.LevelFilesystem, CreatedAt: at, Ready: true}
}

// copyFiles makes an image of the files of a box. The same name is the same copy; it is kept for so many seconds, -1:
// for ever.
func (p *Provider) copyFiles(ctx context.Context, boxID, name string, keep int64) (image string, err error) {
	r, err := p.routerOf(ctx, boxID)
	if err != nil {
		return "", p.forgetGone(boxID, err)
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("isthmus snapshot "+name)).String()
	err = r.do(ctx, snapshotTime, func(ctx context.Context) error {
		answer, err := r.stub.TaskSnapshotFilesystem(ctx, pb.TaskSnapshotFilesystemRequest_builder{TaskId: r.known.task, SnapshotId: id, TtlSeconds: &keep}.Build())
		image = answer.GetImageId()
		return err
	})
	if err == nil && image == "" {
		err = vendor.Unread(adapters.KindUnavailable, nil, "the files of the sandbox were copied and it does not say where")
	}
	return image, p.forgetGone(boxID, err)
}

// Snapshots lists the copies of a deployment.
func (p *Provider) Snapshots(ctx context.Context, deployment string) ([]adapters.Snapshot, error) {
	prefix := snapshotTag(deployment, "")
	var all []adapters.Snapshot
	for page := ""; ; {
		var answer *pb.ImageListTagsResponse
		err := p.control.do(ctx, func(ctx context.Context) (err error) {
			answer, err = p.control.stub.ImageListTags(ctx, pb.ImageListTagsRequest_builder{
				EnvironmentName: p.config.Environment, TagPrefix: prefix, PageToken: page,
			}.Build())
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, item := range answer.GetItems() {
			name, ours := strings.CutPrefix(item.GetTag(), prefix)
			switch {
			case item.GetTag() == "", ours && item.GetImageId() == "":
				return nil, vendor.Unread(adapters.KindUnavailable, nil, "it lists a copy without its name or its image")
			case ours && boxIDs.MatchString(name):
				all = append(all, copied(name, item.GetImageId(), deployment, timeOf(item.GetCreatedAt())))
			}
		}
		next := answer.GetNextPageToken()
		if next == "" || next == page {
			return all, nil
		}
		page = next
	}
}

// Forget removes a copy. Boxes that were made of it run on.
func (p *Provider) Forget(ctx context.Context, snapshot adapters.Snapshot) error {
	for _, remove := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			_, err := p.control.stub.ImageNameDelete(ctx, pb.ImageNameDeleteRequest_builder{Tag: snapshotTag(snapshot.Deployment, snapshot.Name)}.Build())
			return err
		},
		func(ctx context.Context) error {
			_, err := p.control.stub.ImageDelete(ctx, pb.ImageDeleteRequest_builder{ImageId: snapshot.Ref}.Build())
			return err
		},
	} {
		if err := p.control.do(ctx, remove); err != nil && adapters.KindOf(err) != adapters.KindNotFound {
			return err
		}
	}
	return nil
}

// publish gives an image a name.
func (c *control) publish(ctx context.Context, image, name string) error {
	return c.do(ctx, func(ctx context.Context) error {
		_, err := c.stub.ImagePublish(ctx, pb.ImagePublishRequest_builder{ImageId: image, Tag: name}.Build())
		return err
	})
}
