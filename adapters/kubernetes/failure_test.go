package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus/isthmus/adapters"
)

func TestAnswersOfTheAPIServerHaveAKind(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	proxied := kerrors.NewGenericServerResponse(http.StatusNotFound, "get", pods, "a", "default backend - 404", 0, true)
	for name, c := range map[string]struct {
		err     error
		changed bool
		want    adapters.Kind
	}{
		"not there":                        {kerrors.NewNotFound(pods, "a"), true, adapters.KindNotFound},
		"a proxy's 404":                    {proxied, false, adapters.KindUnavailable},
		"there already":                    {kerrors.NewAlreadyExists(pods, "a"), true, adapters.KindExists},
		"too many":                         {kerrors.NewTooManyRequests("slow down", 3), true, adapters.KindRateLimited},
		"quota":                            {kerrors.NewForbidden(pods, "a", errors.New("exceeded quota: sandboxes")), true, adapters.KindQuota},
		"rights":                           {kerrors.NewForbidden(pods, "a", errors.New("no")), true, adapters.KindCredentials},
		"credentials":                      {kerrors.NewUnauthorized("who"), true, adapters.KindCredentials},
		"refused connection":               {syscall.ECONNREFUSED, true, adapters.KindUnavailable},
		"broken connection while asking":   {syscall.ECONNRESET, false, adapters.KindUnavailable},
		"broken connection while changing": {syscall.ECONNRESET, true, adapters.KindUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			err := classify(context.Background(), c.err, "did not", c.changed)
			require.Equal(t, c.want, adapters.KindOf(err))
			require.NotContains(t, err.Error(), "ECONN")
		})
	}
	require.NoError(t, classify(context.Background(), nil, "", true))
}

func TestAListIsNeverNotThere(t *testing.T) {
	err := listed(context.Background(), kerrors.NewNotFound(schema.GroupResource{Resource: "pods"}, ""), "does not list")
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err))
}
