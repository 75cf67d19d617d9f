package modal

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/adapters"
)

// control makes calls of the control plane.
type control struct {
	stub pb.ModalClientClient
	host string
	key  func() (string, error)

	mu    sync.Mutex
	token authToken
}

// authToken is what calls carry beside the credential.
type authToken struct {
	text    string
	of      string // the credential that it was given for
	refresh time.Time
}

func newControl(conn *grpc.ClientConn, address string, key func() (string, error)) *control {
	c := &control{stub: pb.NewModalClientClient(conn), key: key}
	if u, err := url.Parse(address); err == nil {
		c.host = u.Hostname()
	}
	return c
}

// clientVersions is what the stubs are of: the server speaks to us as to the SDK that has them.
const clientVersions = "modal-go/0.11.1"

// Times that bound one try of a call, when the caller's own are longer.
const (
	callTime = 30 * time.Second
	// createTime is the longest that a create may take: Modal answers when the sandbox is placed.
	createTime = 5 * time.Minute
)

// How often and when a call is tried again that may be.
const (
	tries     = 4
	firstWait = 100 * time.Millisecond
	lastWait  = time.Second
	// patience is the longest that a call waits where the cloud says that it should come back later.
	patience = 5 * time.Second
)

// do makes a call that does no harm when it is made twice. It is tried again while that makes sense.
func (c *control) do(ctx context.Context, call func(ctx context.Context) error) error {
	idempotency, wait, waited := uuid.NewString(), firstWait, time.Duration(0)
	for try := 0; ; try++ {
		err := c.once(ctx, callTime, idempotency, try, call)
		if err == nil || ctx.Err() != nil {
			return classify(ctx, err, false)
		}
		pause := wait
		if after, throttled := retryAfter(err); throttled {
			pause, waited = after, waited+after
			if waited > patience {
				return classify(ctx, err, false)
			}
		} else if try+1 >= tries || !transient(err) {
			return classify(ctx, err, false)
		} else {
			wait = min(2*wait, lastWait)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// make makes a call that makes something, once. An error that is KindUnknownOutcome says that it may have happened.
func (c *control) make(ctx context.Context, call func(ctx context.Context) error) error {
	sent := &sentMark{}
	err := c.once(sent.in(ctx), createTime, uuid.NewString(), 0, call)
	return classify(ctx, err, sent.was())
}

// once makes one try. A token that is refused is asked for anew.
func (c *control) once(ctx context.Context, limit time.Duration, idempotency string, try int, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for again := false; ; again = true {
		carried, err := c.carry(ctx, again)
		if err != nil {
			return err
		}
		carried = metadata.AppendToOutgoingContext(carried, "x-idempotency-key", idempotency, "x-retry-attempt", strconv.Itoa(try))
		if err = call(carried); status.Code(err) != codes.Unauthenticated || again {
			return err
		}
	}
}

// carry adds what every call carries.
func (c *control) carry(ctx context.Context, fresh bool) (context.Context, error) {
	key, err := c.key()
	if err != nil {
		return nil, adapters.Wrap(adapters.KindCredentials, err, "the credential of the pool cannot be read where the configuration says that it is")
	}
	id, secret, ok := strings.Cut(key, ":")
	if !ok || id == "" || secret == "" {
		return nil, adapters.Errorf(adapters.KindCredentials, "the credential of a modal pool has the form TOKEN_ID:TOKEN_SECRET")
	}
	ctx = metadata.AppendToOutgoingContext(ctx,
		"x-modal-client-type", strconv.Itoa(int(pb.ClientType_CLIENT_TYPE_LIBMODAL_GO)), "x-modal-client-version", "1.0.0",
		"x-modal-libmodal-version", clientVersions, "x-modal-host", c.host, "x-modal-token-id", id, "x-modal-token-secret", secret)
	token, err := c.auth(ctx, key, fresh)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, "x-modal-auth-token", token), nil
}

// auth is the token for a credential. It is asked for when half of its life is over.
func (c *control) auth(ctx context.Context, key string, fresh bool) (string, error) {
	c.mu.Lock()
	held := c.token
	c.mu.Unlock()
	if !fresh && held.of == key && time.Now().Before(held.refresh) {
		return held.text, nil
	}
	answer, err := c.stub.AuthTokenGet(ctx, &pb.AuthTokenGetRequest{})
	if err != nil {
		return "", err
	}
	if answer.GetToken() == "" {
		return "", vendor.Unread(adapters.KindUnavailable, nil, "it has no auth token")
	}
	expiry, known := expiryOf(answer.GetToken())
	if !known {
		expiry = time.Now().Add(tokenLife)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = authToken{answer.GetToken(), key, time.Now().Add(time.Until(expiry) / 2)}
	return c.token.text, nil
}

// sleep waits; false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
