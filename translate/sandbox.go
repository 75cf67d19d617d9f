package translate

import (
	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// clientID is a constant since E2B gave client ids up. SDKs before 1.9 append it to the sandbox id and send
// the two in paths and host names, so it has no dash.
const clientID = "6532622b"

// Access is what a client needs to reach a sandbox, besides its id. Empty strings are left out of answers.
type Access struct {
	EnvdToken, TrafficToken string
	// Domain is where the sandboxes' hosts are.
	Domain string
}

// Sandbox returns the answer of create and connect.
func Sandbox(sb store.Sandbox, access Access) openapi.Sandbox {
	return openapi.Sandbox{
		SandboxID:          sb.ID,
		TemplateID:         sb.Template,
		ClientID:           clientID,
		EnvdVersion:        sb.EnvdVersion,
		Alias:              optional(sb.Alias),
		EnvdAccessToken:    optional(access.EnvdToken),
		TrafficAccessToken: optional(access.TrafficToken),
		Domain:             optional(access.Domain),
	}
}

// SandboxDetail returns the answer of get.
func SandboxDetail(sb store.Sandbox, access Access) openapi.SandboxDetail {
	return openapi.SandboxDetail{
		SandboxID:           sb.ID,
		TemplateID:          sb.Template,
		ClientID:            clientID,
		StartedAt:           sb.StartedAt.UTC(),
		EndAt:               sb.EndAt.UTC(),
		CPUCount:            int32(sb.CPU),
		MemoryMB:            int32(sb.MemoryMB),
		DiskSizeMB:          int32(sb.DiskMB),
		State:               wireState(sb.State),
		EnvdVersion:         sb.EnvdVersion,
		Alias:               optional(sb.Alias),
		Metadata:            sb.Metadata,
		EnvdAccessToken:     optional(access.EnvdToken),
		Domain:              optional(access.Domain),
		AllowInternetAccess: sb.Network.AllowInternetAccess,
		Network:             wireNetwork(sb.Network),
		Lifecycle:           wireLifecycle(sb),
		PauseMode:           wirePauseMode(sb),
	}
}

// ListedSandboxes returns the answer of a list, never null.
func ListedSandboxes(sandboxes []store.Sandbox) []openapi.ListedSandbox {
	listed := make([]openapi.ListedSandbox, 0, len(sandboxes))
	for _, sb := range sandboxes {
		listed = append(listed, openapi.ListedSandbox{
			SandboxID:   sb.ID,
			TemplateID:  sb.Template,
			ClientID:    clientID,
			StartedAt:   sb.StartedAt.UTC(),
			EndAt:       sb.EndAt.UTC(),
			CPUCount:    int32(sb.CPU),
			MemoryMB:    int32(sb.MemoryMB),
			DiskSizeMB:  int32(sb.DiskMB),
			State:       wireState(sb.State),
			EnvdVersion: sb.EnvdVersion,
			Alias:       optional(sb.Alias),
			Metadata:    sb.Metadata,
		})
	}
	return listed
}

// wireLifecycle says what becomes of the sandbox at its timeout, and whether traffic wakes it.
func wireLifecycle(sb store.Sandbox) *openapi.SandboxLifecycle {
	lifecycle := &openapi.SandboxLifecycle{OnTimeout: openapi.SandboxLifecycleOnTimeoutKill, AutoResume: sb.AutoResume}
	if sb.AutoPause {
		lifecycle.OnTimeout = openapi.SandboxLifecycleOnTimeoutPause
	}
	return lifecycle
}

// wirePauseMode says what is kept of a paused sandbox; nil: it runs.
func wirePauseMode(sb store.Sandbox) *openapi.SandboxDetailPauseMode {
	mode := openapi.SandboxDetailPauseModeFilesystem
	switch {
	case sb.State.Shown() != store.StatePaused:
		return nil
	case sb.PauseLevel == string(adapters.LevelMemory):
		mode = openapi.SandboxDetailPauseModeFull
	}
	return &mode
}

// wireState returns one of the two states that clients know; the others are never shown.
func wireState(state store.State) openapi.SandboxState {
	if state.Shown() == store.StatePaused {
		return openapi.SandboxStatePaused
	}
	return openapi.SandboxStateRunning
}

// wireNetwork returns what the client had set, or nil: SDKs cannot read a network that is null.
func wireNetwork(n store.Network) *openapi.SandboxNetworkConfig {
	if n.AllowPublicTraffic == nil && n.MaskRequestHost == "" && len(n.DenyOut)+len(n.AllowOut)+len(n.RuleHosts) == 0 {
		return nil
	}
	var rules openapi.SandboxNetworkRules
	for _, host := range n.RuleHosts { // the headers are secrets
		if rules == nil {
			rules = openapi.SandboxNetworkRules{}
		}
		rules[host] = []openapi.SandboxNetworkRule{{Transform: &openapi.SandboxNetworkTransform{}}}
	}
	return &openapi.SandboxNetworkConfig{
		AllowPublicTraffic: n.AllowPublicTraffic,
		MaskRequestHost:    optional(n.MaskRequestHost),
		AllowOut:           n.AllowOut,
		DenyOut:            n.DenyOut,
		Rules:              rules,
	}
}
