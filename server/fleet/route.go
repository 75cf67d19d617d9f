package fleet

import "github.com/isthmus/isthmus/adapters"

// Route is where the data plane of one running sandbox is, and what the gateway must know to guard it. It is
// read-only after it was handed out.
type Route struct {
	SandboxID string
	// Endpoint reaches envd in the box.
	Endpoint adapters.Endpoint
	// Inner is set when the sandbox is on a server that speaks envd itself: requests to every port then go there
	// as they are, under the id that it has there, and that server guards them. Transport, Control, TrafficToken
	// and MaskRequestHost are empty.
	Inner *adapters.Inner
	// Transport is added to every request that the gateway forwards; Control opens envd's tunnel. Both are
	// the box's own secrets and never reach a client.
	Transport, Control string
	// EnvdToken is what clients must present to envd; empty when the sandbox is not secure. The daemon
	// checks it; the gateway needs it only for signed URLs.
	EnvdToken string
	// TrafficToken guards every port but envd's; empty when traffic is public.
	TrafficToken string
	// MaskRequestHost replaces the Host towards an application; empty: unchanged. It may hold ${PORT}.
	MaskRequestHost string
	// Gone is closed when the sandbox is killed or ended: open streams are then aborted.
	Gone <-chan struct{}
}
