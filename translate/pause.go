package translate

import (
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate/placement"
)

// Pause turns the body of a pause into ours. sdk is the version of the SDK that sent it; nil: not known.
func Pause(body openapi.SandboxPauseRequest, sdk *string) placement.Pause {
	memory := body.Memory
	if given(memory) && before(sdk, asksAtPause) {
		memory = nil
	}
	return placement.Pause{Memory: memory, Healthy: given(body.RequireHealthyGuest)}
}
