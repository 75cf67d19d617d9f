package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"

	"github.com/isthmus/isthmus/adapters"
)

// classify makes an answer of the API server one of ours. changed says that the call changes something, so that an
// answer that did not come leaves its outcome open.
func classify(ctx context.Context, err error, what string, changed bool) error {
	if err == nil {
		return nil
	}
	var typed *adapters.Error
	if errors.As(err, &typed) {
		return err
	}
	kind, advice := kindOf(err, changed)
	if ctx.Err() != nil && kind == adapters.KindUnavailable && !changed {
		return ctx.Err()
	}
	failure := adapters.Wrap(kind, err, "the cluster "+what+": "+advice)
	if kind == adapters.KindRateLimited {
		seconds, _ := kerrors.SuggestsClientDelay(err)
		failure.RetryAfter = time.Duration(max(seconds, 1)) * time.Second
	}
	return failure
}

// kindOf reads the reason of an API status, as the API conventions of Kubernetes define them. A quota of the
// namespace is a Forbidden of its own wording (admission plugin ResourceQuota).
func kindOf(err error, changed bool) (kind adapters.Kind, advice string) {
	switch {
	case absent(err):
		return adapters.KindNotFound, "it is not there"
	case kerrors.IsAlreadyExists(err):
		return adapters.KindExists, "it is there already"
	case kerrors.IsConflict(err):
		return adapters.KindPrecondition, "it changed meanwhile"
	case kerrors.IsTooManyRequests(err):
		return adapters.KindRateLimited, "too many calls, try again later"
	case kerrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return adapters.KindQuota, "the quota of the namespace is used up: raise it, or wait until sandboxes have ended"
	case kerrors.IsUnauthorized(err):
		return adapters.KindCredentials, "it does not know our credentials: the operator must renew them"
	case kerrors.IsForbidden(err):
		return adapters.KindCredentials, "our service account may not do this: the operator must compare its role with docs/kubernetes.md"
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return adapters.KindInvalid, "it refuses the pod as it is configured"
	case kerrors.IsNotFound(err):
		return adapters.KindUnavailable, "something else than its API server answers in its place, try again" // it was not asked
	case kerrors.IsServiceUnavailable(err):
		return adapters.KindUnavailable, "it cannot do this now, try again"
	case net.IsConnectionRefused(err):
		return adapters.KindUnavailable, "its API server is away, try again" // it was asked nothing
	case changed:
		return adapters.KindUnknownOutcome, "it did not answer, so the outcome is not known yet"
	}
	return adapters.KindUnavailable, "it does not answer, try again"
}

// absent reports whether the API server itself says that an object is not there. Whatever stands before it may answer
// 404 to anything while it cannot reach it, and that proves nothing: client-go gives such an answer the same reason, but
// notes that it is no API status.
func absent(err error) bool {
	var status kerrors.APIStatus
	if !kerrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// listed is the error of a list, which is never that something is not there.
func listed(ctx context.Context, err error, what string) error {
	failure := classify(ctx, err, what, false)
	if adapters.KindOf(failure) == adapters.KindNotFound {
		return adapters.Wrap(adapters.KindUnavailable, err, "the cluster "+what+": it knows no list of pods")
	}
	return failure
}

func notFound(boxID string) error {
	return adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s", boxID)
}
