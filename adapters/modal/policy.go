package modal

import (
	"context"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// maxHeaders bounds the headers of an outbound policy.
const maxHeaders = 25

// outboundPolicy has Modal put headers into requests, of HTTPS alone; nil: there are none to put.
func outboundPolicy(n adapters.Network, access *pb.NetworkAccess) (*pb.ExperimentalOutboundPolicy, error) {
	switch {
	case len(n.Rules) == 0, access.GetNetworkAccessType() == pb.NetworkAccess_BLOCKED: // no request comes out
		return nil, nil
	case len(access.GetAllowedDomains()) > 0:
		return nil, adapters.Errorf(adapters.KindUnsupported,
			"Modal adds no headers where only some names may be reached: allow addresses, leave network.rules out, or use another pool")
	}
	var made []*pb.ExperimentalOutboundPolicy_HeaderReplacement
	total := 0
	for _, rule := range n.Rules {
		if !strings.Contains(rule.Host, ".") || strings.Contains(rule.Host, "*") {
			return nil, adapters.Errorf(adapters.KindUnsupported, "Modal takes whole names of hosts in network.rules, which %q is not: name a host", rule.Host)
		}
		headers := map[string]string{}
		for name, value := range rule.Headers {
			headers[name] = strings.ReplaceAll(value, "$", "$$") // one alone begins the name of a secret
		}
		total += len(headers)
		made = append(made, pb.ExperimentalOutboundPolicy_HeaderReplacement_builder{Domain: rule.Host, Headers: headers}.Build())
	}
	if total > maxHeaders {
		return nil, adapters.Errorf(adapters.KindUnsupported, "Modal adds at most %d headers for a sandbox, and network.rules has %d: leave some out", maxHeaders, total)
	}
	return pb.ExperimentalOutboundPolicy_builder{HeaderReplacements: made}.Build(), nil
}

// setPolicy replaces the headers of a running box. Modal can do so where the box was made with some.
func (r *router) setPolicy(ctx context.Context, policy *pb.ExperimentalOutboundPolicy) error {
	switch {
	case !r.known.ruled && policy == nil:
		return nil
	case !r.known.ruled:
		return adapters.Errorf(adapters.KindUnsupported, "Modal adds headers only for sandboxes that were made with network.rules: create it with them")
	case policy == nil:
		policy = pb.ExperimentalOutboundPolicy_builder{}.Build()
	}
	return r.do(ctx, callTime, func(ctx context.Context) error {
		_, err := r.stub.TaskSetOutboundPolicy(ctx, pb.TaskSetExperimentalOutboundPolicyRequest_builder{
			TaskId: r.known.task, ExperimentalOutboundPolicy: policy,
		}.Build())
		return err
	})
}
