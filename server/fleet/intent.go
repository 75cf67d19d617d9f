package fleet

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// intent is the record that is written before any provider is called.
func (f *Fleet) intent(id string, req placement.Request, c candidate) store.Sandbox {
	created := now()
	template, size := c.choice.Template, c.choice.Resources
	return store.Sandbox{
		ID: id, TeamID: req.TeamID, State: store.StateCreating,
		Template: template.ID, Alias: template.Name, Copy: template.Snapshot,
		Pool: c.pool.name, BoxID: id, Attempt: newAttempt(),
		CreatedAt: created, EndAt: created.Add(req.Timeout), Timeout: req.Timeout, CreateKey: req.IdempotencyKey, ToCheck: checked(c.choice.Need),
		CPU: size.CPU, MemoryMB: size.MemoryMB, DiskMB: size.DiskMB,
		GPU: c.choice.GPU.Kind, GPUs: c.choice.GPU.Max, Region: c.choice.Region,
		EnvdVersion: envd.Version, Secure: req.Secure, Metadata: req.Metadata, Network: req.Network,
		AutoPause: req.AutoPause, AutoPauseLevel: string(req.AutoPauseLevel), AutoResume: req.AutoResume,
		Sealed:   f.sealed(req.TeamID, c.pool, toldBy(template, req)),
		Affinity: req.Require.Affinity, Spread: req.Require.Spread,
	}
}

// told is what a box is told at its start and nobody else may read.
type told struct {
	EnvVars map[string]string     `json:"envVars,omitempty"`
	Rules   []adapters.HeaderRule `json:"rules,omitempty"`
}

// toldBy joins what the template and the create say.
func toldBy(template adapters.Template, req placement.Request) told {
	vars := maps.Clone(template.EnvVars)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, req.EnvVars)
	return told{EnvVars: vars, Rules: req.Rules}
}

// sealed is kept where a box may have to be told again.
func (f *Fleet) sealed(teamID string, p *pool, t told) []byte {
	if p.pauser == nil && p.snapshotter == nil && p.networker == nil {
		return nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil // strings always marshal
	}
	return f.cfg.Secrets.seal(teamID, text)
}

// unsealed reads what sealed keeps.
func (f *Fleet) unsealed(teamID string, sealed []byte) (told, error) {
	var t told
	if len(sealed) == 0 {
		return t, nil
	}
	text, err := f.cfg.Secrets.unseal(teamID, sealed)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return told{}, adapters.Wrap(adapters.KindInternal, err, "what the sandbox was made with cannot be read: the key in the data folder is another one")
	}
	return t, nil
}

// spec is what the provider is asked for.
func (f *Fleet) spec(sb store.Sandbox, req placement.Request, c candidate) adapters.Spec {
	return f.specOf(sb, c.choice.Template, toldBy(c.choice.Template, req), sb.EndAt.Add(c.pool.terms.Load().within+slack(sb)))
}

// specAgain is what the box of a record is made of, to be started again with another end.
func (f *Fleet) specAgain(sb store.Sandbox, end time.Time) (adapters.Spec, error) {
	t, err := f.unsealed(sb.TeamID, sb.Sealed)
	if err != nil {
		return adapters.Spec{}, err
	}
	size := adapters.Resources{CPU: sb.CPU, MemoryMB: sb.MemoryMB, DiskMB: sb.DiskMB}
	template := adapters.Template{ID: sb.Template, Name: cmp.Or(sb.Alias, sb.Template), Resources: size, EnvVars: t.EnvVars, Snapshot: sb.Copy}
	return f.specOf(sb, template, t, end.Add(f.cfg.Timing.Change+slack(sb))), nil
}

func (f *Fleet) specOf(sb store.Sandbox, template adapters.Template, t told, deadline time.Time) adapters.Spec {
	token, _ := f.derive(sb) // a native pool makes one of its own when there is one
	return adapters.Spec{
		BoxID: sb.BoxID, Attempt: sb.Attempt, Deployment: f.cfg.Secrets.Deployment(), TeamID: sb.TeamID,
		Template: template, Resources: adapters.Resources{CPU: sb.CPU, MemoryMB: sb.MemoryMB, DiskMB: sb.DiskMB},
		GPU: adapters.GPU{Kind: sb.GPU, Count: sb.GPUs}, Region: sb.Region,
		Network: networkOf(sb.Network, t.Rules),
		Envd: envd.Config{
			SandboxID: sb.ID, TemplateID: template.ID, AccessToken: token,
			Transport: f.cfg.Secrets.Transport(sb.BoxID), Control: f.cfg.Secrets.Control(sb.BoxID),
			EnvVars: t.EnvVars, MemoryBytes: int64(sb.MemoryMB) << 20,
			Deadline: deadline,
		},
	}
}

// networkOf is what a box may reach. That everything is denied is said by Internet alone.
func networkOf(n store.Network, rules []adapters.HeaderRule) adapters.Network {
	denied := slices.DeleteFunc(slices.Clone(n.DenyOut), func(entry string) bool { return entry == store.AllTraffic })
	return adapters.Network{
		Internet: n.Internet(), AllowOut: n.AllowOut, DenyOut: denied, Rules: rules,
		PrivatePorts: !n.PublicTraffic(), RequestHost: n.MaskRequestHost,
	}
}
