package daytona

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// defaultPage is how many sandboxes a page has that asks for none.
const defaultPage = 100

// list returns a page of sandboxes in the order of their creation. The cursor names the last one of the page before.
func (s *Simulator) list(r *http.Request) (reply, error) {
	query := r.URL.Query()
	matches, err := filterOf(query.Get)
	if err != nil {
		return reply{}, err
	}
	states := query["states"]
	var all []facts
	s.mu.Lock()
	rows := make([]*sandbox, 0, len(s.sandboxes))
	for _, sb := range s.sandboxes {
		rows = append(rows, sb)
	}
	s.mu.Unlock()
	for _, sb := range rows {
		f := sb.view(r)
		if matches(f) && (len(states) == 0 || slices.Contains(states, f.State)) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b facts) int { return strings.Compare(order(a), order(b)) })
	if cursor := query.Get("cursor"); cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			return reply{}, invalid("Invalid cursor")
		}
		all = slices.DeleteFunc(all, func(f facts) bool { return order(f) <= string(last) })
	}
	limit := defaultPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 200 {
			return reply{}, invalid("limit must be an integer between 1 and 200")
		}
	}
	page := map[string]any{"items": all[:min(limit, len(all))], "nextCursor": nil}
	if len(all) > limit {
		page["nextCursor"] = base64.RawURLEncoding.EncodeToString([]byte(order(all[limit-1])))
	} else if len(all) == 0 {
		page["items"] = []facts{}
	}
	return ok(page)
}

func order(f facts) string { return f.CreatedAt.Format("20060102150405.000000000") + f.ID }

// filterOf reads what is asked for: labels are a JSON object of which every pair must be there.
func filterOf(get func(string) string) (func(facts) bool, error) {
	var labels map[string]string
	if text := get("labels"); text != "" {
		if err := json.Unmarshal([]byte(text), &labels); err != nil {
			return nil, invalid("labels must be a JSON object of strings")
		}
	}
	id, name := get("id"), get("name")
	return func(f facts) bool {
		for key, want := range labels {
			if have, there := f.Labels[key]; !there || have != want {
				return false
			}
		}
		return strings.HasPrefix(f.ID, id) && strings.HasPrefix(f.Name, name)
	}, nil
}

func (s *Simulator) relabel(r *http.Request, sb *sandbox) (reply, error) {
	var body struct {
		Labels map[string]string `json:"labels"`
	}
	if err := read(r, &body); err != nil {
		return reply{}, err
	}
	if body.Labels == nil {
		return reply{}, invalid("labels must be an object")
	}
	sb.mu.Lock()
	sb.facts.Labels = body.Labels
	sb.mu.Unlock()
	return ok(map[string]any{"labels": body.Labels})
}
