//go:build linux

package modal

import (
	"context"
	"regexp"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// maxReplacements bounds the headers of an outbound policy.
const maxReplacements = 25

var (
	policyDomain = regexp.MustCompile(`^(\*|(\*\.)?([a-zA-Z0-9-]{1,63}\.)+[a-zA-Z0-9-]{1,63})$`)
	// reference is a key of a secret in a header's value, behind an even number of dollars.
	reference = regexp.MustCompile(`(^|[^$])(\$\$)*\$[A-Za-z_]`)
)

// checkPolicy refuses an outbound policy that is none, or that the network does not allow.
func checkPolicy(policy *pb.ExperimentalOutboundPolicy, access *pb.NetworkAccess) error {
	if policy == nil {
		return nil
	}
	invalid := func(format string, args ...any) error { return status.Errorf(codes.InvalidArgument, format, args...) }
	switch {
	case access.GetNetworkAccessType() == pb.NetworkAccess_BLOCKED:
		return invalid("an outbound policy cannot be used when the network is blocked")
	case len(access.GetAllowedDomains()) > 0:
		return invalid("an outbound policy cannot be used with an allowlist of domains")
	}
	total := 0
	for _, one := range policy.GetHeaderReplacements() {
		if !policyDomain.MatchString(one.GetDomain()) {
			return invalid("invalid domain: '%s'", one.GetDomain())
		}
		if len(one.GetHeaders()) == 0 {
			return invalid("a header replacement needs headers")
		}
		for name, value := range one.GetHeaders() {
			if one.GetSecretId() != "" || reference.MatchString(value) {
				return invalid("the header %s refers to a secret: the simulator has none for policies", name)
			}
		}
		total += len(one.GetHeaders())
	}
	if total > maxReplacements {
		return invalid("an outbound policy has at most %d header replacements", maxReplacements)
	}
	return nil
}

// injected are the headers of a policy, by host. *.example.com stands for example.com too, and $$ for a dollar.
func injected(policy *pb.ExperimentalOutboundPolicy) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, one := range policy.GetHeaderReplacements() {
		domains := []string{one.GetDomain()}
		if apex, wide := strings.CutPrefix(one.GetDomain(), "*."); wide {
			domains = append(domains, apex)
		}
		for _, domain := range domains {
			if all[domain] == nil {
				all[domain] = map[string]string{}
			}
			for name, value := range one.GetHeaders() {
				all[domain][name] = strings.ReplaceAll(value, "$$", "$")
			}
		}
	}
	return all
}

// TaskSetOutboundPolicy replaces the headers of a task's requests. Only a sandbox that was made with a policy has one.
func (r *router) TaskSetOutboundPolicy(ctx context.Context, q *pb.TaskSetExperimentalOutboundPolicyRequest) (*pb.TaskSetExperimentalOutboundPolicyResponse, error) {
	sb, err := r.task(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	if !sb.definition.HasExperimentalOutboundPolicy() {
		return nil, status.Error(codes.FailedPrecondition, "this Sandbox was made without an outbound policy")
	}
	policy := q.GetExperimentalOutboundPolicy()
	if err := r.lead(ctx, sb, func(next *rules) { next.policy = policy }); err != nil {
		return nil, err
	}
	return &pb.TaskSetExperimentalOutboundPolicyResponse{}, nil
}

// rules are what a sandbox may reach, and what is put into its requests.
type rules struct {
	access *pb.NetworkAccess
	policy *pb.ExperimentalOutboundPolicy
}

// network is the same for the machine. The cloud puts headers into HTTPS alone.
func (r rules) network() (machine.Network, error) {
	if err := checkPolicy(r.policy, r.access); err != nil {
		return machine.Network{}, err
	}
	n := network(r.access)
	n.SecureOnly, n.Headers = true, injected(r.policy)
	return n, nil
}

// lead makes a task that runs follow other rules.
func (s *Server) lead(ctx context.Context, sb *sandbox, change func(*rules)) error {
	sb.leading.Lock()
	defer sb.leading.Unlock()
	next := sb.rules
	change(&next)
	n, err := next.network()
	if err != nil {
		return err
	}
	sb.mu.Lock()
	box := sb.box
	sb.mu.Unlock()
	if box == nil {
		return status.Error(codes.NotFound, "the Task has finished")
	}
	if err := box.SetNetwork(ctx, n); err != nil {
		return status.Errorf(codes.Internal, "the network could not be changed: %v", err)
	}
	sb.rules = next
	return nil
}
