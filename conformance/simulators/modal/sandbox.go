//go:build linux

package modal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"slices"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// sandbox is one sandbox, also after its end.
type sandbox struct {
	id, task, app string
	first         bool // made by the first version of the API
	definition    *pb.Sandbox
	env           map[string]string
	created       time.Time
	placed        chan struct{} // closed when it is known whether there is a box
	finished      chan struct{} // closed when it has ended and its box is gone
	stop          chan *pb.GenericResult

	mu      sync.Mutex
	name    string
	tags    []*pb.SandboxTag
	box     *machine.Box // nil: not placed, or gone
	started time.Time
	ended   time.Time
	used    time.Time
	result  *pb.GenericResult
	entry   *execution
	execs   map[string]*execution
	tunnels []*tunnel

	leading sync.Mutex // guards rules, and is held while they change; never taken under mu or the server's
	rules   rules

	copying   sync.Mutex        // guards the one field below; never taken under mu or the server's
	snapshots map[string]string // image by the id that the client gave
}

// alphabets of identifiers.
const (
	base62  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base32  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	lengthV = 22 // of identifiers, and of sandboxes of the first version
	lengthU = 26 // of sandboxes of the second version
)

func newID(kind string) string { return kind + "-" + random(base62, lengthV) }

func random(alphabet string, length int) string {
	text := make([]byte, length)
	for i := range text {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			panic(err) // it never fails
		}
		text[i] = alphabet[n.Int64()]
	}
	return string(text)
}

// running is how many sandboxes there are. The caller holds the lock.
func (s *Server) running() int {
	n := 0
	for _, sb := range s.sandboxes {
		if !sb.over() {
			n++
		}
	}
	return n
}

// over reports whether the sandbox has ended.
func (sb *sandbox) over() bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.result != nil
}

func (sb *sandbox) outcome() *pb.GenericResult {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.result
}

// find is a sandbox by its id. One of the other version is not known by these calls.
func (s *Server) find(id string, first bool) (*sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sb := s.sandboxes[id]
	if sb == nil || sb.first != first {
		return nil, status.Errorf(codes.NotFound, "Sandbox '%s' not found", id)
	}
	return sb, nil
}

// defaultDiskMB is what boxes get whose disk was left open. The cloud has more for them than this machine.
const defaultDiskMB = 10 << 10

// placeTime bounds the making of a box.
const placeTime = 2 * time.Minute

// place makes the box and then watches over it until its end. It does not depend on the call that asked for it.
func (s *Server) place(sb *sandbox, from *image) {
	defer close(sb.finished)
	err := s.furnish(sb, from)
	sb.mu.Lock()
	if err != nil {
		sb.result, sb.ended = result(pb.GenericResult_GENERIC_STATUS_INIT_FAILURE, 1, err.Error()), time.Now()
	} else {
		sb.started, sb.used = time.Now(), time.Now()
	}
	sb.mu.Unlock()
	close(sb.placed)
	if err != nil {
		s.config.Logger.Error("modal simulator: a sandbox could not be made", "sandbox", sb.id, "err", err)
		s.clear(sb)
		return
	}
	outcome := s.watch(sb)
	sb.mu.Lock()
	sb.result, sb.ended = outcome, time.Now()
	sb.mu.Unlock()
	s.clear(sb)
}

// furnish makes the box, its tunnels and its main process.
func (s *Server) furnish(sb *sandbox, from *image) error {
	ctx, cancel := context.WithTimeout(s.ctx, placeTime)
	defer cancel()
	r := sb.definition.GetResources()
	n, err := sb.rules.network()
	if err != nil {
		return err
	}
	box, err := s.config.Cloud.Create(ctx, machine.Spec{
		Name: sb.id, CPU: processors(r), MemoryMB: int(max(r.GetMemoryMb(), r.GetMemoryMbMax())), DiskMB: cmp.Or(int(r.GetEphemeralDiskMb()), defaultDiskMB),
		Network: n, From: from.snapshot, Image: from.machine, Env: sb.env,
	})
	if err != nil {
		return err
	}
	sb.mu.Lock()
	sb.box = box
	sb.mu.Unlock()
	if err := s.openTunnels(sb, box); err != nil {
		return err
	}
	if args := sb.definition.GetEntrypointArgs(); len(args) > 0 {
		entry, err := s.begin(ctx, box, machine.Command{Argv: args, Env: sb.env, Dir: sb.definition.GetWorkdir(), Stdin: true})
		if err != nil {
			return err
		}
		sb.mu.Lock()
		sb.entry = entry
		sb.mu.Unlock()
	}
	return nil
}

// processors is what the machine gives for physical cores: two each.
func processors(r *pb.Resources) int {
	return int(max(r.GetMilliCpu(), r.GetMilliCpuMax())*2+999) / 1000
}

// network is what the machine is told of a network.
func network(access *pb.NetworkAccess) machine.Network {
	switch access.GetNetworkAccessType() {
	case pb.NetworkAccess_BLOCKED:
		return machine.Network{}
	case pb.NetworkAccess_ALLOWLIST:
		n := machine.Network{Allow: slices.Concat(access.GetAllowedCidrs(), access.GetAllowedDomains())}
		if len(access.GetAllowedCidrs()) > 0 { // names are looked up then, and only connections are held to the list
			n.Internet, n.Deny = true, []string{"0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"}
		}
		return n
	}
	return machine.Network{Internet: true}
}

// watch returns how the sandbox ended.
func (s *Server) watch(sb *sandbox) *pb.GenericResult {
	deadline := time.NewTimer(time.Duration(sb.definition.GetTimeoutSecs()) * time.Second)
	defer deadline.Stop()
	look := time.NewTicker(idleLook)
	defer look.Stop()
	var main <-chan struct{}
	if sb.entry != nil {
		main = sb.entry.ended
	}
	for {
		select {
		case outcome := <-sb.stop:
			return outcome
		case <-s.ctx.Done():
			return result(pb.GenericResult_GENERIC_STATUS_TERMINATED, 137, "the workspace was shut down")
		case <-deadline.C:
			return result(pb.GenericResult_GENERIC_STATUS_TIMEOUT, 124, "")
		case <-main:
			return mainResult(sb.entry)
		case <-sb.box.Ended():
			return causeResult(sb.box.Cause())
		case <-look.C:
			if sb.idle() {
				return result(pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT, 124, "")
			}
		}
	}
}

// idleLook is how often it is looked whether a sandbox is idle.
const idleLook = 200 * time.Millisecond

// idle reports whether nobody has used the sandbox for too long. Programs that run use it.
func (sb *sandbox) idle() bool {
	if !sb.definition.HasIdleTimeoutSecs() {
		return false
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	for _, e := range sb.execs {
		if !e.over() {
			return false
		}
	}
	for _, t := range sb.tunnels {
		if t.busy() {
			sb.used = time.Now()
		}
	}
	return time.Since(sb.used) > time.Duration(sb.definition.GetIdleTimeoutSecs())*time.Second
}

// mainResult is the end of a sandbox whose main process has ended.
func mainResult(entry *execution) *pb.GenericResult {
	code := int32(entry.exit.Code)
	if entry.exit.Signal != "" {
		code = 128 + signalNumber(entry.exit.Signal)
	}
	if code == 0 {
		return result(pb.GenericResult_GENERIC_STATUS_SUCCESS, 0, "")
	}
	return result(pb.GenericResult_GENERIC_STATUS_FAILURE, code, "")
}

// causeResult is the end of a sandbox whose box has ended by itself.
func causeResult(cause string) *pb.GenericResult {
	if cause == "memory" {
		return result(pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION, 137, "the sandbox ran out of memory")
	}
	return result(pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE, 1, "the worker was lost: "+cause)
}

// clearTime bounds the removal of a box.
const clearTime = time.Minute

// clear removes everything of a sandbox that has ended but what is known of it.
func (s *Server) clear(sb *sandbox) {
	sb.mu.Lock()
	box, tunnels, execs, entry := sb.box, sb.tunnels, sb.execs, sb.entry
	sb.box, sb.tunnels, sb.execs = nil, nil, nil
	sb.mu.Unlock()
	for _, t := range tunnels {
		t.close()
	}
	if box == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), clearTime)
	defer cancel()
	if err := box.Destroy(ctx); err != nil {
		s.config.Logger.Error("modal simulator: a box could not be removed", "sandbox", sb.id, "err", err)
	}
	for _, e := range execs {
		e.close()
	}
	if entry != nil {
		entry.close()
	}
}

// End ends the running sandbox of a name as the cloud does by itself, for example with
// GENERIC_STATUS_MEMORY_MANAGER_EVICTION. It returns when the sandbox has ended.
func (s *Server) End(name string, how pb.GenericResult_GenericStatus) error {
	s.mu.Lock()
	sb := s.named("", name, false)
	s.mu.Unlock()
	if sb == nil {
		return errors.New("modal simulator: no running sandbox has this name")
	}
	sb.end(result(how, 137, ""))
	<-sb.finished
	return nil
}

// end asks for the end of the sandbox. Only the first one that asks says how.
func (sb *sandbox) end(outcome *pb.GenericResult) {
	select {
	case sb.stop <- outcome:
	default:
	}
}
