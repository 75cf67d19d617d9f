package daytona

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// startedTime bounds how long a sandbox that is said to have started may still refuse calls.
const startedTime = 30 * time.Second

// toolbox is the address of the daemon in a box.
func (p *Provider) toolbox(ctx context.Context, boxID string) (*url.URL, error) {
	if k, there := p.recall(boxID); there && k.toolbox != nil {
		return k.toolbox, nil
	}
	found, err := p.present(ctx, boxID)
	if err != nil {
		return nil, err
	}
	if k, _ := p.recall(boxID); k.toolbox != nil {
		return k.toolbox, nil
	}
	var said struct {
		URL string `json:"url"`
	}
	if err := p.api.send(ctx, request{method: http.MethodGet, path: sandboxPath(found.ID, "toolbox-proxy-url"), into: &said}); err != nil {
		return nil, err
	}
	if said.URL == "" {
		return nil, vendor.Unread(adapters.KindUnavailable, nil, "it names no address of the sandbox's toolbox")
	}
	found.ToolboxProxyURL = said.URL
	p.learn(boxID, found)
	if k, _ := p.recall(boxID); k.toolbox != nil {
		return k.toolbox, nil
	}
	return nil, adapters.Errorf(adapters.KindUnavailable, "Daytona names no address for the sandbox's toolbox that the key may be sent to")
}

// inside calls the daemon in a box. A sandbox that is said to have started may refuse calls for a moment: then it is
// looked at, and the call is made again for as long as it is on its way. What is sent must be made anew each time.
func (p *Provider) inside(ctx context.Context, boxID string, make func(toolbox *url.URL) error) error {
	bounded, cancel := context.WithTimeout(ctx, startedTime)
	defer cancel()
	for pause := time.Duration(0); ; {
		at, err := p.toolbox(ctx, boxID)
		if err != nil {
			return err
		}
		err = make(at)
		if err == nil || ctx.Err() != nil {
			return err
		}
		kind := adapters.KindOf(err)
		if kind != adapters.KindNotFound && kind != adapters.KindUnavailable && !errors.Is(err, errNotStarted) {
			return err
		}
		found, lookErr := p.present(ctx, boxID)
		switch {
		case lookErr != nil:
			return lookErr // it is gone
		case found.broken():
			return endedAs(found)
		case !errors.Is(err, errNotStarted):
			return err
		}
		if wait(bounded, &pause) != nil {
			return adapters.Wrap(adapters.KindUnavailable, err, "the sandbox is said to be "+found.State+" and refuses calls")
		}
	}
}

// shell runs a short script in a box to its end.
func (p *Provider) shell(ctx context.Context, boxID, script string, args ...string) error {
	body := map[string]any{"command": "sh -c " + quote(script) + " sh " + quoteAll(args), "timeout": 60}
	var ended struct {
		ExitCode int    `json:"exitCode"`
		Code     int    `json:"code"` // of older daemons
		Result   string `json:"result"`
	}
	err := p.inside(ctx, boxID, func(toolbox *url.URL) error {
		return p.api.send(ctx, request{method: http.MethodPost, at: toolbox, path: "/process/execute", body: body, into: &ended})
	})
	if err == nil && ended.ExitCode+ended.Code != 0 {
		err = adapters.Errorf(adapters.KindUnavailable, "a command in the sandbox failed: %s", say("", "with an error", strings.TrimSpace(ended.Result)))
	}
	return err
}

// quote makes one word of a shell out of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func quoteAll(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		quoted = append(quoted, quote(word))
	}
	return strings.Join(quoted, " ")
}
