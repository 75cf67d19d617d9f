package modal

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/adapters"
)

// routerAccess is where the router of a task is, and the token for it.
type routerAccess struct{ url, token string }

// router is the way to the programs of one box.
type router struct {
	provider *Provider
	boxID    string
	known    *known
	conn     *grpc.ClientConn
	stub     pb.TaskCommandRouterClient

	mu    sync.Mutex
	token string
}

// routerOf returns the router of a box, connecting to it when that was not done.
func (p *Provider) routerOf(ctx context.Context, boxID string) (*router, error) {
	one, err := p.lookUp(ctx, boxID)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.router != nil {
		return one.router, nil
	}
	if one.task == "" {
		if err := p.learnTask(ctx, one); err != nil {
			return nil, p.lost(ctx, boxID, one, err)
		}
		if one.task == "" {
			return nil, adapters.Errorf(adapters.KindUnavailable, "Modal has not placed the sandbox yet: try again")
		}
	}
	access := one.access
	one.access = nil // it serves once: what does not work is asked for anew
	if access == nil {
		if access, err = p.askAccess(ctx, one); err != nil {
			return nil, p.lost(ctx, boxID, one, err)
		}
	}
	address, err := p.routerURL(access.url)
	if err != nil {
		return nil, err
	}
	conn, err := dial(address)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "Modal gave an address of the sandbox's router that is none")
	}
	one.router = &router{provider: p, boxID: boxID, known: one, conn: conn, stub: pb.NewTaskCommandRouterClient(conn), token: access.token}
	return one.router, nil
}

func (r *router) close() { _ = r.conn.Close() }

// routerURL is where the router is spoken to: as the control plane is, with TLS or without. Its token is never sent
// unencrypted where the control plane is not.
func (p *Provider) routerURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", vendor.Unread(adapters.KindUnavailable, err, "the address of the sandbox's router is none")
	}
	if strings.HasPrefix(p.config.URL, "http://") {
		return "http://" + u.Host, nil
	}
	if u.Scheme != "https" {
		return "", adapters.Errorf(adapters.KindUnavailable, "Modal gave an address of the sandbox's router without TLS, which is not used")
	}
	return "https://" + u.Host, nil
}

// learnTask asks for the task of a sandbox. It stays empty while the sandbox is not placed.
func (p *Provider) learnTask(ctx context.Context, one *known) error {
	request := pb.SandboxGetTaskIdRequest_builder{SandboxId: one.id}.Build()
	var answer *pb.SandboxGetTaskIdResponse
	err := p.control.do(ctx, func(ctx context.Context) (err error) {
		if isFirst(one.id) {
			answer, err = p.control.stub.SandboxGetTaskId(ctx, request)
		} else {
			answer, err = p.control.stub.SandboxGetTaskIdV2(ctx, request)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := strangeResult(answer.GetTaskResult()); err != nil {
		return err
	}
	if cause := ending(answer.GetTaskResult()); cause != "" {
		return adapters.Errorf(adapters.KindUnavailable, "the sandbox has ended: %s", cause)
	}
	one.task = answer.GetTaskId()
	return nil
}

// askAccess asks for the way to the router.
func (p *Provider) askAccess(ctx context.Context, one *known) (*routerAccess, error) {
	access := &routerAccess{}
	err := p.control.do(ctx, func(ctx context.Context) error {
		if isFirst(one.id) {
			answer, err := p.control.stub.TaskGetCommandRouterAccess(ctx, pb.TaskGetCommandRouterAccessRequest_builder{TaskId: one.task}.Build())
			access.url, access.token = answer.GetUrl(), answer.GetJwt()
			return err
		}
		answer, err := p.control.stub.SandboxGetCommandRouterAccess(ctx, pb.SandboxGetCommandRouterAccessRequest_builder{SandboxId: &one.id}.Build())
		access.url, access.token = answer.GetUrl(), answer.GetJwt()
		return err
	})
	return access, err
}

// lost makes of a failure the news that the box is gone, if it is. Who gets it forgets the box.
func (p *Provider) lost(ctx context.Context, boxID string, one *known, err error) error {
	kind := adapters.KindOf(err)
	if err == nil || kind != adapters.KindNotFound && kind != adapters.KindPrecondition && adapters.MisreadOf(err) == nil {
		return err
	}
	cause, askErr := p.endOf(ctx, one.id, 0)
	cause, askErr = p.whetherEnded(ctx, boxID, cause, askErr)
	if cause != "" || askErr != nil && adapters.KindOf(askErr) == adapters.KindNotFound {
		return gone(boxID, cause)
	}
	return err
}

// routerTries and routerWait are how often and when a call of the router is tried again.
const (
	routerTries = 8
	routerWait  = 10 * time.Millisecond
)

// do makes a call of the router that does no harm when it is made twice.
func (r *router) do(ctx context.Context, limit time.Duration, call func(ctx context.Context) error) error {
	wait := routerWait
	for try := 1; ; try++ {
		bounded, cancel := context.WithTimeout(ctx, limit)
		err := r.once(bounded, call)
		cancel()
		if err == nil || ctx.Err() != nil || try >= routerTries || !transient(err) {
			return r.provider.lost(ctx, r.boxID, r.known, classify(ctx, err, false))
		}
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
		wait *= 2
	}
}

// once makes a call with the token, and with a new one when it is refused.
func (r *router) once(ctx context.Context, call func(ctx context.Context) error) error {
	err := call(r.carry(ctx))
	if status.Code(err) != codes.Unauthenticated {
		return err
	}
	if err := r.renew(ctx); err != nil {
		return err
	}
	return call(r.carry(ctx))
}

func (r *router) carry(ctx context.Context) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.token)
}

func (r *router) renew(ctx context.Context) error {
	access, err := r.provider.askAccess(ctx, r.known)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = access.token
	return nil
}
