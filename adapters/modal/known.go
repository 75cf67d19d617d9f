package modal

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// known is what is remembered of a box; all of it can be asked for again.
type known struct {
	id, task            string // Modal's ids of the sandbox and its task
	attempt, deployment string
	created             time.Time
	ended               string // why it has ended; empty: it had not
	tunnel              string // HOST:PORT of the tunnel; empty: not asked for, or there is none
	blocked             bool   // there is none
	paused              bool
	ruled               bool // it was made with an outbound policy, which alone can be changed

	mu     sync.Mutex
	access *routerAccess // how to reach the router; nil: not asked for yet
	router *router       // nil: not needed yet
}

// box is the box as the contract has it.
func (k *known) box(id string) adapters.Box {
	return adapters.Box{ID: id, Attempt: k.attempt, Deployment: k.deployment, SandboxID: id, CreatedAt: k.created, Alive: k.ended == "", Paused: k.paused}
}

// learnTunnels takes the address of the one port.
func (k *known) learnTunnels(tunnels []*pb.TunnelData) {
	for _, t := range tunnels {
		if t.GetHost() != "" {
			k.tunnel = hostPort(t.GetHost(), t.GetPort())
		}
	}
}

func (k *known) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.router != nil {
		k.router.close()
		k.router = nil
	}
}

func (p *Provider) remember(boxID string, one *known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes[boxID] = one
}

func (p *Provider) forget(boxID string) {
	p.mu.Lock()
	one := p.boxes[boxID]
	delete(p.boxes, boxID)
	p.mu.Unlock()
	if one != nil {
		one.close()
	}
}

// lookUp is what is known of a box that lives: remembered, or asked for.
func (p *Provider) lookUp(ctx context.Context, boxID string) (*known, error) {
	p.mu.Lock()
	one := p.boxes[boxID]
	p.mu.Unlock()
	if one != nil {
		return one, nil
	}
	one, err := p.find(ctx, boxID, true)
	if err != nil {
		return nil, err
	}
	if one.ended != "" {
		return nil, gone(boxID, one.ended)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.boxes[boxID]; other != nil {
		return other, nil
	}
	p.boxes[boxID] = one
	return one, nil
}

// find asks Modal for a sandbox: by its tag, which tells all of it, and when there is none by its name. One that has
// ended is found, too, if it is asked for; the newest then.
func (p *Provider) find(ctx context.Context, boxID string, alsoEnded bool) (*known, error) {
	if !boxIDs.MatchString(boxID) {
		return nil, gone(boxID, "")
	}
	found, err := p.list(ctx, map[string]string{tagID: boxID}, alsoEnded)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found[0].known, nil
	}
	return p.findByName(ctx, boxID, alsoEnded)
}

// findByName asks for the name, of both versions where the pool has GPUs.
func (p *Provider) findByName(ctx context.Context, boxID string, alsoEnded bool) (*known, error) {
	request := pb.SandboxGetFromNameRequest_builder{
		SandboxName: boxID, AppName: p.config.App, EnvironmentName: p.config.Environment, IncludeTerminated: alsoEnded,
	}.Build()
	var answer *pb.SandboxGetFromNameResponse
	err := p.control.do(ctx, func(ctx context.Context) (err error) {
		answer, err = p.control.stub.SandboxGetFromNameV2(ctx, request)
		return err
	})
	if adapters.KindOf(err) == adapters.KindNotFound && len(p.config.GPUs) > 0 {
		err = p.control.do(ctx, func(ctx context.Context) (err error) {
			answer, err = p.control.stub.SandboxGetFromName(ctx, request)
			return err
		})
	}
	switch {
	case adapters.KindOf(err) == adapters.KindNotFound:
		return nil, gone(boxID, "")
	case err != nil:
		return nil, err
	case answer.GetSandboxId() == "":
		return nil, vendor.Unread(adapters.KindUnavailable, nil, "it is of a sandbox without an id")
	}
	one := &known{id: answer.GetSandboxId(), ended: ending(answer.GetMetadata().GetResult())}
	return one, p.learnTags(ctx, one, boxID)
}

// learnTags asks for the tags of a sandbox. One without ours is somebody else's: to us there is none.
func (p *Provider) learnTags(ctx context.Context, one *known, boxID string) error {
	request := pb.SandboxTagsGetRequest_builder{SandboxId: one.id}.Build()
	var answer *pb.SandboxTagsGetResponse
	err := p.control.do(ctx, func(ctx context.Context) (err error) {
		if isFirst(one.id) {
			answer, err = p.control.stub.SandboxTagsGet(ctx, request)
		} else {
			answer, err = p.control.stub.SandboxTagsGetV2(ctx, request)
		}
		return err
	})
	if err != nil {
		return err
	}
	tags := tagMap(answer.GetTags())
	if len(tags) == 0 { // which must not pass for proof that it is not ours
		return vendor.Unread(adapters.KindUnavailable, nil, "a sandbox of our name has no tags")
	}
	if tags[tagID] != boxID {
		return gone(boxID, "")
	}
	one.attempt, one.deployment, one.ruled = tags[tagAttempt], tags[tagDeployment], tags[tagRules] != ""
	one.created = time.Now().UTC()
	return nil
}

// listed is a box of a list, with its id.
type listed struct {
	boxID string
	*known
}

// list returns the boxes with all these tags, the newest first.
func (p *Provider) list(ctx context.Context, tags map[string]string, alsoEnded bool) ([]listed, error) {
	app, err := p.appID(ctx)
	if err != nil {
		return nil, err
	}
	var found []listed
	seen := map[string]bool{}
	for before := 0.0; ; {
		var answer *pb.SandboxListResponse
		err := p.control.do(ctx, func(ctx context.Context) (err error) {
			answer, err = p.control.stub.SandboxListV2(ctx, pb.SandboxListRequest_builder{
				AppId: app, BeforeTimestamp: before, IncludeFinished: alsoEnded, Tags: tagsOf(tags),
			}.Build())
			return err
		})
		if err != nil {
			return nil, err
		}
		older := false
		for _, info := range answer.GetSandboxes() {
			older = older || before == 0 || info.GetCreatedAt() < before
			if info.GetId() == "" || len(info.GetTags()) == 0 {
				return nil, vendor.Unread(adapters.KindUnavailable, nil, "it lists a sandbox without its id or the tags that were asked for")
			}
			if one, ok := knownOf(info); ok && !seen[info.GetId()] && one.carries(tags) && (alsoEnded || one.ended == "") {
				seen[info.GetId()] = true
				found = append(found, one)
			}
		}
		if !older { // also a page that is the same again
			break
		}
		before = answer.GetSandboxes()[len(answer.GetSandboxes())-1].GetCreatedAt()
	}
	slices.SortStableFunc(found, func(a, b listed) int { return b.created.Compare(a.created) })
	return found, nil
}

// carries looks at the tags again: that a server leaves the filter out must not make other boxes ours.
func (l listed) carries(tags map[string]string) bool {
	has := map[string]string{tagID: l.boxID, tagAttempt: l.attempt, tagDeployment: l.deployment}
	for name, value := range tags {
		if has[name] != value {
			return false
		}
	}
	return true
}

// knownOf reads one entry of a list; false when it is no box of ours.
func knownOf(info *pb.SandboxInfo) (listed, bool) {
	tags := tagMap(info.GetTags())
	if !boxIDs.MatchString(tags[tagID]) || info.GetId() == "" {
		return listed{}, false
	}
	one := &known{
		id: info.GetId(), task: info.GetTaskInfo().GetId(), attempt: tags[tagAttempt], deployment: tags[tagDeployment], ruled: tags[tagRules] != "",
		created: timeOf(info.GetCreatedAt()), ended: ending(info.GetTaskInfo().GetResult()),
	}
	if one.ended == "" {
		one.ended = ending(info.GetMetadata().GetResult())
	}
	one.learnTunnels(info.GetTunnels())
	return listed{tags[tagID], one}, true
}

// timeOf reads a time, in seconds since 1970. What makes no sense is now: a box must not look old for it.
func timeOf(seconds float64) time.Time {
	const latest = 1 << 35
	if math.IsNaN(seconds) || seconds <= 0 || seconds > latest {
		return time.Now().UTC()
	}
	return time.UnixMicro(int64(seconds * 1e6)).UTC()
}

func tagMap(tags []*pb.SandboxTag) map[string]string {
	m := make(map[string]string, len(tags))
	for _, t := range tags {
		m[t.GetTagName()] = t.GetTagValue()
	}
	return m
}

func tagsOf(m map[string]string) []*pb.SandboxTag {
	var tags []*pb.SandboxTag
	for name, value := range m {
		tags = append(tags, pb.SandboxTag_builder{TagName: name, TagValue: value}.Build())
	}
	slices.SortFunc(tags, func(a, b *pb.SandboxTag) int { return strings.Compare(a.GetTagName(), b.GetTagName()) })
	return tags
}

func sortCapabilities(all []adapters.Capability) {
	slices.SortFunc(all, func(a, b adapters.Capability) int { return strings.Compare(string(a.Feature), string(b.Feature)) })
}
