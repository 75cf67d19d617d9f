package modal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/adapters"
)

// retryAfter is how long the cloud asks to wait. That it says so at all is how throttling is told from a limit.
func retryAfter(err error) (time.Duration, bool) {
	for _, detail := range status.Convert(err).Details() {
		if policy, ok := detail.(*pb.RPCRetryPolicy); ok {
			return max(time.Duration(float64(policy.GetRetryAfterSecs())*float64(time.Second)), firstWait), true
		}
	}
	return 0, false
}

// transient reports whether the same call may go well the next time.
func transient(err error) bool {
	var ours *adapters.Error
	if errors.As(err, &ours) {
		return false
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.Canceled:
		return true
	}
	return false
}

// classify makes an error one of the contract's, or that of the caller's context. makes says that the call was sent
// and makes something, so that a lost answer is an unknown outcome.
func classify(ctx context.Context, err error, makes bool) error {
	var ours *adapters.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &ours):
		return ours
	}
	if after, throttled := retryAfter(err); throttled {
		limited := adapters.Wrap(adapters.KindRateLimited, err, "Modal asks to come back later: it gets more calls than it allows")
		limited.RetryAfter = after
		return limited
	}
	text := status.Convert(err).Message()
	if what := garbled(err); what != "" {
		kind := adapters.KindUnavailable
		if makes {
			kind = adapters.KindUnknownOutcome
		}
		return vendor.Unread(kind, err, what)
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return adapters.Wrap(adapters.KindCredentials, err, "Modal refuses the credential of the pool: renew it where the configuration says that it is")
	case codes.ResourceExhausted:
		return exhausted(err, text)
	case codes.InvalidArgument, codes.OutOfRange:
		return adapters.Wrap(adapters.KindInvalid, err, "Modal refuses the request: "+text)
	case codes.NotFound:
		return adapters.Wrap(adapters.KindNotFound, err, "Modal has no such thing: "+text)
	case codes.AlreadyExists:
		return adapters.Wrap(adapters.KindExists, err, "Modal has a running sandbox of this name already")
	case codes.FailedPrecondition, codes.Aborted:
		return adapters.Wrap(adapters.KindPrecondition, err, "Modal says that its state does not allow this: "+text)
	case codes.Unimplemented:
		return adapters.Misunderstood(adapters.KindUnsupported, err, "this Modal server does not have the call that this needs")
	}
	if makes {
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "Modal gave no answer that says whether it happened")
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "Modal cannot be reached, or does not answer as it should: try again")
}

// exhausted tells the two limits apart that have no time to wait for: no room at the moment, and the account's own.
func exhausted(err error, text string) error {
	lower := strings.ToLower(text)
	for _, word := range []string{"capacity", "schedul", "no workers", "no worker"} {
		if strings.Contains(lower, word) {
			return adapters.Wrap(adapters.KindCapacity, err, "Modal has no room for the sandbox at the moment")
		}
	}
	return adapters.Wrap(adapters.KindQuota, err, "the limits of the pool's account at Modal are used up: end sandboxes, or raise the limits there")
}

// ending is why a sandbox has ended, for people; empty while it runs. A result that is not known is taken for none: what
// lives must not be lost.
func ending(result *pb.GenericResult) string {
	switch result.GetStatus() {
	case pb.GenericResult_GENERIC_STATUS_TERMINATED:
		return "it was terminated"
	case pb.GenericResult_GENERIC_STATUS_TIMEOUT:
		return "its time was over"
	case pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT:
		return "nobody had used it for too long"
	case pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		return "it used more memory than Modal had"
	case pb.GenericResult_GENERIC_STATUS_SUCCESS, pb.GenericResult_GENERIC_STATUS_FAILURE:
		return "its first program ended"
	case pb.GenericResult_GENERIC_STATUS_INIT_FAILURE:
		return "it could not be started: " + result.GetException()
	case pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE:
		return "Modal lost it: " + result.GetException()
	}
	return ""
}

// strangeResult is the error for a result that is not known, and nil for all others.
func strangeResult(result *pb.GenericResult) error {
	if value := result.GetStatus(); value != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED && ending(result) == "" {
		return vendor.Unread(adapters.KindUnavailable, nil, fmt.Sprintf("the sandbox has the result %s, which is not known here", value))
	}
	return nil
}

// gone is the error for a box that is not there, or not any more.
func gone(boxID, cause string) error {
	if cause == "" {
		return adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s", boxID)
	}
	return adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended: %s", boxID, cause)
}
