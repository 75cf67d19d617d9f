//go:build linux

package modal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// image is something that sandboxes are made of: an image of the machine, or a snapshot.
type image struct {
	id       string
	machine  string
	snapshot *machine.Snapshot
	expires  time.Time // zero: never
	result   *pb.GenericResult
}

func (i *image) remove() error {
	if i.snapshot == nil {
		return nil
	}
	return i.snapshot.Delete()
}

// tag is an image under a name.
type tag struct {
	image   string
	created time.Time
}

// machineImage is the machine's image for a registry reference.
func machineImage(reference string) string {
	name, _, _ := strings.Cut(path.Base(reference), "@")
	name, _, _ = strings.Cut(name, ":")
	switch name {
	case "debian", "ubuntu", "base":
		return "base"
	case "python", "node":
		return name
	}
	return ""
}

// ImageGetOrCreate builds an image: the same content is the same image.
func (c *control) ImageGetOrCreate(_ context.Context, r *pb.ImageGetOrCreateRequest) (*pb.ImageGetOrCreateResponse, error) {
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.GetImage())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "the image cannot be read")
	}
	sum := sha256.Sum256(content)
	id := "im-" + hex.EncodeToString(sum[:])[:22]
	c.mu.Lock()
	defer c.mu.Unlock()
	one, there := c.images[id]
	if !there || r.GetForceBuild() {
		one = c.build(id, r.GetImage())
		c.images[id] = one
	}
	return pb.ImageGetOrCreateResponse_builder{ImageId: id, Result: one.result, Metadata: imageMetadata()}.Build(), nil
}

func imageMetadata() *pb.ImageMetadata {
	version := builderVersion
	return pb.ImageMetadata_builder{ImageBuilderVersion: &version}.Build()
}

// build takes the base that the first command names. Other commands are taken for done: what they would install is
// in the images of the machine. The caller holds the lock.
func (s *Server) build(id string, definition *pb.Image) *image {
	failed := func(format string, args ...any) *image {
		return &image{id: id, result: result(pb.GenericResult_GENERIC_STATUS_FAILURE, 1, fmt.Sprintf(format, args...))}
	}
	built := &image{id: id, result: result(pb.GenericResult_GENERIC_STATUS_SUCCESS, 0, "")}
	commands := definition.GetDockerfileCommands()
	if len(commands) == 0 {
		return failed("the Dockerfile is empty")
	}
	reference, is := strings.CutPrefix(commands[0], "FROM ")
	if !is {
		return failed("the Dockerfile does not begin with FROM")
	}
	reference = strings.Fields(strings.TrimPrefix(reference, "--platform=linux/amd64 "))[0]
	for _, base := range definition.GetBaseImages() {
		if base.GetDockerTag() != reference {
			continue
		}
		below := s.images[base.GetImageId()]
		if below == nil {
			return failed("Image '%s' not found", base.GetImageId())
		}
		built.machine = below.machine // a snapshot below stays that image's own
		return built
	}
	if built.machine = s.config.Image(reference); built.machine == "" {
		return failed("failed to pull %s: manifest unknown", reference)
	}
	return built
}

func result(code pb.GenericResult_GenericStatus, exit int32, exception string) *pb.GenericResult {
	return pb.GenericResult_builder{Status: code, Exitcode: exit, Exception: exception}.Build()
}

// ImageJoinStreaming waits for the end of a build. Builds here have always ended.
func (c *control) ImageJoinStreaming(r *pb.ImageJoinStreamingRequest, stream grpc.ServerStreamingServer[pb.ImageJoinStreamingResponse]) error {
	c.mu.Lock()
	one := c.images[r.GetImageId()]
	c.mu.Unlock()
	if one == nil {
		return imageMissing(r.GetImageId())
	}
	return stream.Send(pb.ImageJoinStreamingResponse_builder{Result: one.result, EntryId: "1", Eof: true, Metadata: imageMetadata()}.Build())
}

func imageMissing(id string) error { return status.Errorf(codes.NotFound, "Image '%s' not found", id) }

// usable finds an image from which sandboxes can be made. The caller holds the lock.
func (s *Server) usable(id string) (*image, error) {
	one := s.images[id]
	if one == nil || !one.expires.IsZero() && time.Now().After(one.expires) {
		return nil, imageMissing(id)
	}
	if one.result.GetStatus() != pb.GenericResult_GENERIC_STATUS_SUCCESS {
		return nil, status.Errorf(codes.FailedPrecondition, "Image '%s' is not built", id)
	}
	return one, nil
}

// ImageFromId looks an image up.
func (c *control) ImageFromId(_ context.Context, r *pb.ImageFromIdRequest) (*pb.ImageFromIdResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, err := c.usable(r.GetImageId())
	if err != nil {
		return nil, err
	}
	return pb.ImageFromIdResponse_builder{ImageId: one.id, Metadata: imageMetadata()}.Build(), nil
}

// ImageDelete removes an image and its names. What was made of it runs on.
func (c *control) ImageDelete(_ context.Context, r *pb.ImageDeleteRequest) (*emptypb.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.images[r.GetImageId()]
	if one == nil {
		return nil, imageMissing(r.GetImageId())
	}
	if err := one.remove(); err != nil {
		return nil, status.Error(codes.Internal, "the image could not be removed")
	}
	delete(c.images, one.id)
	for name, t := range c.published {
		if t.image == one.id {
			delete(c.published, name)
		}
	}
	return &emptypb.Empty{}, nil
}

// ImagePublish gives an image a name.
func (c *control) ImagePublish(_ context.Context, r *pb.ImagePublishRequest) (*pb.ImagePublishResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, err := c.usable(r.GetImageId())
	if err != nil {
		return nil, err
	}
	c.published[tagged(r.GetTag())] = tag{one.id, time.Now()}
	return pb.ImagePublishResponse_builder{ImageId: one.id, RevisionId: newID("rv")}.Build(), nil
}

// tagged is a name with its tag.
func tagged(name string) string {
	if !strings.Contains(path.Base(name), ":") {
		name += ":latest"
	}
	return path.Base(name)
}

// ImageGetByTag finds an image by its name.
func (c *control) ImageGetByTag(_ context.Context, r *pb.ImageGetByTagRequest) (*pb.ImageGetByTagResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, err := c.usable(c.published[tagged(r.GetTag())].image)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "Image '%s' not found", r.GetTag())
	}
	return pb.ImageGetByTagResponse_builder{ImageId: one.id}.Build(), nil
}

// ImageNameDelete takes a name away.
func (c *control) ImageNameDelete(_ context.Context, r *pb.ImageNameDeleteRequest) (*emptypb.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.published[tagged(r.GetTag())]; !there {
		return nil, status.Errorf(codes.NotFound, "Image '%s' not found", r.GetTag())
	}
	delete(c.published, tagged(r.GetTag()))
	return &emptypb.Empty{}, nil
}

// ImageListTags lists names by their beginning, a page at a time.
func (c *control) ImageListTags(_ context.Context, r *pb.ImageListTagsRequest) (*pb.ImageListTagsResponse, error) {
	const most = 100
	if r.GetMaxObjects() > most {
		return nil, status.Errorf(codes.InvalidArgument, "max_objects must be at most %d", most)
	}
	limit := int(r.GetMaxObjects())
	if limit == 0 {
		limit = most
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.published {
		if strings.HasPrefix(name, r.GetTagPrefix()) && name > r.GetPageToken() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	next := ""
	if len(names) > limit {
		names, next = names[:limit], names[limit-1]
	}
	var items []*pb.ImageListTagsItem
	for _, name := range names {
		t := c.published[name]
		items = append(items, pb.ImageListTagsItem_builder{Tag: name, ImageId: t.image, CreatedAt: seconds(t.created), UpdatedAt: seconds(t.created)}.Build())
	}
	return pb.ImageListTagsResponse_builder{Items: items, NextPageToken: next, EnvironmentName: environmentName}.Build(), nil
}

// seconds is a time as the protocol writes it.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}
