package adapters

import "context"

// Native is the power of a provider whose boxes speak envd themselves, as E2B-compatible servers do. Nothing
// of ours is in such a box: it knows neither our secrets nor our tunnel, and its own tokens are the ones that
// clients present. Reach of such a provider is the way to the box's envd port.
type Native interface {
	// Native returns what is known of the box on its own server. It is asked for once when the sandbox is
	// opened, and after a restart again. KindNotFound when the box is gone.
	Native(ctx context.Context, boxID string) (Inner, error)
}

// Inner is a box as its own server knows it. Its tokens are secrets: they are stored and logged nowhere.
type Inner struct {
	// ID is the box's id on its server, which is not our sandbox id.
	ID string
	// EnvdVersion is what its envd reports.
	EnvdVersion string
	// EnvdToken and TrafficToken are what clients must present; empty: nothing.
	EnvdToken, TrafficToken string
	// Port returns the way to a TCP port of the box, envd's or any other. It does no I/O.
	Port func(port uint16) Endpoint
}
