package e2b_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestABoxWithoutItsTokensDoesNotStay(t *testing.T) {
	for name, test := range map[string]struct {
		answer, says string
		private      bool
	}{
		"no access token":  {`{"sandboxID":"inner","trafficAccessToken":"traffic"}`, "secure", true},
		"no traffic token": {`{"sandboxID":"inner","envdAccessToken":"theirs"}`, "allow_public_traffic", true},
		"a null":           {`{"sandboxID":"inner","envdAccessToken":null}`, "secure", false},
	} {
		t.Run(name, func(t *testing.T) {
			broken, there := true, false
			p := open(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					there = true
					_, _ = w.Write([]byte(test.answer))
				case r.URL.Path != "/sandboxes/inner" || !there:
					w.WriteHeader(http.StatusNotFound)
				case r.Method == http.MethodGet:
					_, _ = w.Write([]byte(`{"sandboxID":"inner","metadata":{"isthmus-id":"i1","isthmus-attempt":"attempt"}}`))
				case broken:
					w.WriteHeader(http.StatusInternalServerError)
				default:
					there = false
					w.WriteHeader(http.StatusNoContent)
				}
			})
			s := spec()
			s.Network.PrivatePorts = test.private
			_, err := p.Create(t.Context(), s)
			require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err), "%v", err)
			require.ErrorContains(t, err, test.says)
			box, err := p.Get(t.Context(), s.BoxID)
			require.NoError(t, err)
			require.False(t, box.Alive, "nobody takes it for the one that was asked for")
			broken = false
			require.NoError(t, p.Destroy(t.Context(), s.BoxID))
			require.False(t, there)

			_, err = p.Create(t.Context(), s)
			require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), "%v", err)
			require.ErrorContains(t, err, test.says)
			require.False(t, there)
		})
	}
}
