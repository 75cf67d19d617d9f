package gateway

import (
	"context"
	"crypto/subtle"
	"net/http"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/server/fleet"
)

// headerEnvdToken carries the token that guards envd.
const headerEnvdToken = "X-Access-Token"

const messageNoWake = "The sandbox is paused, and this request may not resume it: send the token that guards the port"

// mayNotWake reports whether a request lacks the token of the port that it is for. Whoever could not get in must not
// wake the sandbox either: it would run at its owner's cost.
func mayNotWake(asleep *fleet.Asleep, port uint16, h http.Header) bool {
	token, sent := asleep.TrafficToken, h.Get(headerTraffic)
	if port == envd.Port {
		token, sent = asleep.EnvdToken, h.Get(headerEnvdToken)
	}
	return token != "" && subtle.ConstantTimeCompare([]byte(sent), []byte(token)) != 1
}

// awaken resumes a sandbox and finds the way to it. The request waits for that.
func (g *Gateway) awaken(ctx context.Context, sandboxID string) (*fleet.Route, error) {
	if err := g.sandboxes.Wake(ctx, sandboxID); err != nil {
		return nil, err
	}
	return g.sandboxes.Route(ctx, sandboxID)
}
