package gateway

import (
	"crypto/subtle"
	"net/http"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/server/fleet"
)

// headerTraffic carries the token that guards the ports of a sandbox whose traffic is not public. It does not
// reach the application.
const headerTraffic = "E2b-Traffic-Access-Token"

// The texts of upstream, which write the header in lower case.
const (
	messageTokenMissing = "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing"
	messageTokenInvalid = "Sandbox is secured with traffic access token. Provided token in header 'e2b-traffic-access-token' is invalid"
)

// trafficRefusal returns why a request may not reach a port, or nothing. The daemon guards its own port.
func trafficRefusal(route *fleet.Route, port uint16, h http.Header) string {
	if route.TrafficToken == "" || port == envd.Port {
		return ""
	}
	sent := h.Get(headerTraffic)
	switch {
	case sent == "":
		return messageTokenMissing
	case subtle.ConstantTimeCompare([]byte(sent), []byte(route.TrafficToken)) != 1:
		return messageTokenInvalid
	}
	return ""
}
