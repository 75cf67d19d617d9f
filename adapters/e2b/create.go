package e2b

import (
	"context"
	"maps"
	"math"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// The metadata by which our boxes are known.
const (
	metaID         = "isthmus-id"
	metaAttempt    = "isthmus-attempt"
	metaDeployment = "isthmus-deployment"
)

// newBox is the body of a create.
type newBox struct {
	TemplateID string            `json:"templateID"`
	Timeout    int32             `json:"timeout"`
	Metadata   map[string]string `json:"metadata"`
	EnvVars    map[string]string `json:"envVars,omitempty"`
	Internet   *bool             `json:"allow_internet_access,omitempty"`
	Network    *network          `json:"network,omitempty"`
}

// network is what is asked of it, if anything.
type network struct {
	AllowPublicTraffic *bool  `json:"allowPublicTraffic,omitempty"`
	MaskRequestHost    string `json:"maskRequestHost,omitempty"`
}

// access is what create and connect answer.
type access struct {
	SandboxID    string  `json:"sandboxID"`
	EnvdVersion  string  `json:"envdVersion"`
	EnvdToken    string  `json:"envdAccessToken"`
	TrafficToken string  `json:"trafficAccessToken"`
	Domain       *string `json:"domain"`
	// refused says that the box is not what was asked for and waits for its end.
	refused bool
}

// Create makes a box. A second create of an id that this process knows of is KindExists; the server itself
// knows our ids as metadata only.
func (p *Provider) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if err := p.check(spec); err != nil {
		return adapters.Box{}, err
	}
	if !p.reserve(spec.BoxID) {
		return adapters.Box{}, adapters.Errorf(adapters.KindExists, "a sandbox with the id %s is there already", spec.BoxID)
	}
	path := "/v2/sandboxes" // always secure
	if spec.Envd.AccessToken == "" {
		path = "/sandboxes" // open unless it is asked for
	}
	var made access
	_, err := p.api.send(ctx, request{method: http.MethodPost, path: path, body: p.newBox(spec), into: &made, makes: true})
	if err == nil && made.SandboxID == "" {
		err = misread(true, nil, "it does not say which sandbox was made")
	}
	if err != nil {
		p.forget(spec.BoxID)
		return adapters.Box{}, err
	}
	if err := p.guarded(ctx, spec, &made); err != nil {
		return adapters.Box{}, err
	}
	p.remember(spec.BoxID, made.SandboxID, &made)
	return adapters.Box{
		ID: spec.BoxID, Attempt: spec.Attempt, Deployment: spec.Deployment, SandboxID: spec.BoxID, CreatedAt: time.Now().UTC(), Alive: true,
	}, nil
}

// undoTime bounds the removal of a box that is not what was asked for.
const undoTime = 10 * time.Second

// guarded makes sure that the box has the tokens that were asked for: without them it is open to everybody. A
// server that does not know of them answers without, and then the box must not stay.
func (p *Provider) guarded(ctx context.Context, spec adapters.Spec, made *access) error {
	missing := ""
	switch {
	case spec.Envd.AccessToken != "" && made.EnvdToken == "":
		missing = "an access token (secure)"
	case spec.Network.PrivatePorts && made.TrafficToken == "":
		missing = "a traffic token (allow_public_traffic)"
	default:
		return nil
	}
	// Until it is gone, whoever looks for the box finds one that has ended.
	p.remember(spec.BoxID, made.SandboxID, &access{SandboxID: made.SandboxID, refused: true})
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := p.Destroy(bounded, spec.BoxID); err != nil {
		return adapters.Wrap(adapters.KindUnknownOutcome, err,
			"the server of the pool made a sandbox without "+missing+", which was asked for, and it could not be removed: kill it")
	}
	return adapters.Errorf(adapters.KindUnsupported, "the server of the pool cannot protect a sandbox by %s: use another pool, or do not ask for it", missing)
}

// check refuses what the server is known not to have.
func (p *Provider) check(spec adapters.Spec) error {
	most, r := p.config.Max, spec.Resources
	switch {
	case spec.GPU.Kind != "":
		return adapters.Errorf(adapters.KindUnsupported, "the server of the pool gives sandboxes no GPU")
	case !boxIDs.MatchString(spec.BoxID):
		return adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	case !spec.Network.Internet && p.config.NoInternetOff:
		return adapters.Errorf(adapters.KindUnsupported, "the server of the pool cannot take the internet away")
	case len(spec.Network.AllowOut)+len(spec.Network.DenyOut)+len(spec.Network.Rules) > 0:
		return adapters.Errorf(adapters.KindUnsupported, "the pool hands no rules of the network on: leave them out, or take all internet access away")
	case most.CPU > 0 && r.CPU > most.CPU, most.MemoryMB > 0 && r.MemoryMB > most.MemoryMB, most.DiskMB > 0 && r.DiskMB > most.DiskMB:
		return adapters.Errorf(adapters.KindUnsupported, "the pool has at most %d CPUs, %d MiB of memory and %d MiB of disk for a sandbox",
			most.CPU, most.MemoryMB, most.DiskMB)
	}
	return nil
}

func (p *Provider) newBox(spec adapters.Spec) newBox {
	vars := maps.Clone(spec.Envd.EnvVars)
	if vars == nil {
		vars = map[string]string{}
	}
	// Programs know the sandbox by the id that clients know it by.
	vars["E2B_SANDBOX_ID"], vars["E2B_TEMPLATE_ID"] = spec.Envd.SandboxID, spec.Envd.TemplateID
	box := newBox{
		TemplateID: p.innerTemplate(spec.Template), Timeout: p.seconds(spec.Envd.Deadline), EnvVars: vars,
		Metadata: map[string]string{metaID: spec.BoxID, metaAttempt: spec.Attempt, metaDeployment: spec.Deployment},
	}
	no := false
	if !spec.Network.Internet {
		box.Internet = &no
	}
	if spec.Network.PrivatePorts || spec.Network.RequestHost != "" {
		box.Network = &network{MaskRequestHost: spec.Network.RequestHost}
		if spec.Network.PrivatePorts {
			box.Network.AllowPublicTraffic = &no
		}
	}
	return box
}

// seconds is how long from now a box is to live, as the server counts.
func (p *Provider) seconds(deadline time.Time) int32 {
	left := p.config.MaxLife
	if !deadline.IsZero() {
		left = min(left, time.Until(deadline))
	}
	return int32(max(1, math.Ceil(left.Seconds())))
}
