//go:build linux

package vercel

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultPage = 20
	maxPage     = 100
)

// page cuts the part of a list that was asked for. A cursor is the number of the first item.
func page[V any](r *http.Request, all []V) ([]V, Pagination, error) {
	query := r.URL.Query()
	limit, from := defaultPage, 0
	for _, one := range []struct {
		key  string
		into *int
	}{{"limit", &limit}, {"cursor", &from}} {
		text := query.Get(one.key)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, Pagination{}, badRequest("The " + one.key + " is not valid.")
		}
		*one.into = n
	}
	if limit < 1 || limit > maxPage {
		return nil, Pagination{}, badRequest("The limit must be between 1 and 100.")
	}
	from = min(from, len(all))
	to := min(from+limit, len(all))
	answer := Pagination{Count: to - from}
	if to < len(all) {
		next := strconv.Itoa(to)
		answer.Next = &next
	}
	return append([]V{}, all[from:to]...), answer, nil
}

// list answers the sandboxes of the project.
func (s *Server) list(r *http.Request) (any, error) {
	query := r.URL.Query()
	wanted, err := sandboxFilter(query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Sandbox
	for _, b := range s.sandboxes {
		if b.current != nil && wanted(b.info) {
			all = append(all, b.info.clone())
		}
	}
	slices.SortFunc(all, func(a, b Sandbox) int {
		order := sandboxOrder(query.Get("sortBy"), a, b)
		if query.Get("sortOrder") != "asc" {
			order = -order
		}
		return order
	})
	items, pages, err := page(r, all)
	return map[string]any{"sandboxes": items, "pagination": pages}, err
}

// Sandboxes returns all sandboxes of the account, for tests.
func (s *Server) Sandboxes() []Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Sandbox
	for _, b := range s.sandboxes {
		all = append(all, b.info.clone())
	}
	return all
}

// sandboxOrder puts sandboxes in the order of a field, and of their names where that is the same.
func sandboxOrder(by string, a, b Sandbox) int {
	order := 0
	switch by {
	case "", "createdAt":
		order = cmp.Compare(a.CreatedAt, b.CreatedAt)
	case "statusUpdatedAt":
		order = cmp.Compare(a.StatusUpdatedAt, b.StatusUpdatedAt)
	case "currentSnapshotId":
		order = cmp.Compare(a.CurrentSnapshotID, b.CurrentSnapshotID)
	}
	return cmp.Or(order, cmp.Compare(a.Name, b.Name))
}

// sandboxFilter reads the filters. Each goes with one order only, and there is one tag at most.
func sandboxFilter(query map[string][]string) (func(Sandbox) bool, error) {
	get := func(key string) string { return strings.Join(query[key], ",") }
	by, prefix, status, tags := get("sortBy"), get("namePrefix"), get("status"), query["tags"]
	switch {
	case !slices.Contains([]string{"", "createdAt", "name", "statusUpdatedAt", "currentSnapshotId"}, by):
		return nil, badRequest("sortBy is not valid.")
	case prefix != "" && by != "name":
		return nil, badRequest("namePrefix needs sortBy=name.")
	case status != "" && (by != "" && by != "createdAt" || !slices.Contains([]string{"running", "stopping", "stopped"}, status)):
		return nil, badRequest("status must be running, stopping or stopped, and needs sortBy=createdAt.")
	case len(tags) > 1:
		return nil, badRequest("Only one tag can be filtered by.")
	}
	key, value, isTag := strings.Cut(strings.Join(tags, ""), ":")
	if len(tags) == 1 && !isTag {
		return nil, badRequest("tags must be key:value.")
	}
	return func(b Sandbox) bool {
		tag, has := b.Tags[key]
		return strings.HasPrefix(b.Name, prefix) && (status == "" || b.Status == status) && (!isTag || has && tag == value)
	}, nil
}

// listSessions answers the sessions, of one sandbox when it is named.
func (s *Server) listSessions(r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Session
	for _, one := range s.sessions {
		if name == "" || one.info.SandboxName == name {
			all = append(all, one.info)
		}
	}
	slices.SortFunc(all, func(a, b Session) int { return newestFirst(r, a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	items, pages, err := page(r, all)
	return map[string]any{"sessions": items, "pagination": pages}, err
}

func newestFirst(r *http.Request, a, b int64, aID, bID string) int {
	order := cmp.Or(cmp.Compare(a, b), cmp.Compare(aID, bID))
	if r.URL.Query().Get("sortOrder") == "asc" {
		return order
	}
	return -order
}

// getSession answers one session.
func (s *Server) getSession(r *http.Request) (any, error) {
	one, err := s.sessionOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"session": one.info, "routes": append([]Route{}, one.sandbox.routes...)}, nil
}
