package store

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// List selects and pages the sandboxes of one team by start time. Running counts over all pages, so the whole of the
// team's index is read; of the records only those that are on the page, and those of which more must be known than
// the index says.
func (s Sandboxes) List(ctx context.Context, q SandboxQuery) (SandboxPage, error) {
	var page SandboxPage
	err := s.engine.View(ctx, func(r kv.Reader) error {
		page = SandboxPage{}
		entries, err := teamEntries(r, q)
		if err != nil {
			return err
		}
		needles := q.needles()
		for _, entry := range entries {
			if err := page.add(r, q, entry, needles); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// teamEntry is what the team's index says of a sandbox.
type teamEntry struct {
	id        string
	startedAt time.Time
	shown     State // as clients see it
	unknown   bool  // written before the index said it: only the record does
}

// teamEntries reads the index in the order of the query.
func teamEntries(r kv.Reader, q SandboxQuery) ([]teamEntry, error) {
	var entries []teamEntry
	prefix := teamPrefix + q.TeamID + "/"
	for entry, err := range r.Scan(kv.Range{Prefix: prefix, Reverse: !q.Ascending}) {
		if err != nil {
			return nil, err
		}
		start, id, _ := strings.Cut(strings.TrimPrefix(entry.Key, prefix), "/")
		at, err := unstamp(start)
		if err != nil {
			return nil, err
		}
		one := teamEntry{id: id, startedAt: at}
		if err := decode(entry.Key, entry.Value, &one.shown); err != nil {
			return nil, err
		}
		one.unknown = string(one.shown) == id
		entries = append(entries, one)
	}
	return entries, nil
}

// add counts a sandbox and puts it on the page, when it matches and its place is on this page.
func (p *SandboxPage) add(r kv.Reader, q SandboxQuery, entry teamEntry, needles [][]byte) error {
	var sandbox *Sandbox
	switch {
	case entry.startedAt.Before(q.StartedAfter), !entry.unknown && !q.includes(entry.shown):
		return nil
	case entry.unknown || q.Template != "" || len(q.Metadata) > 0:
		found, err := q.load(r, entry.id, needles)
		if err != nil || found == nil {
			return err
		}
		sandbox, entry.shown = found, found.State.Shown()
	}
	if entry.shown == StateRunning {
		p.Running++
	}
	if q.After != nil && !q.behind(entry) {
		return nil
	}
	if q.Limit > 0 && len(p.Sandboxes) == q.Limit {
		last := p.Sandboxes[len(p.Sandboxes)-1]
		p.Next = &SandboxCursor{StartedAt: last.StartedAt, ID: last.ID}
		return nil
	}
	if sandbox == nil {
		found, err := load[Sandbox](r, sandboxPrefix+entry.id)
		if err != nil {
			return err
		}
		sandbox = &found
	}
	p.Sandboxes = append(p.Sandboxes, *sandbox)
	return nil
}

// load reads a record; nil when it does not match. One without the needles is not decoded.
func (q SandboxQuery) load(r kv.Reader, id string, needles [][]byte) (*Sandbox, error) {
	key := sandboxPrefix + id
	raw, err := r.Get(key)
	if err != nil {
		return nil, err
	}
	for _, needle := range needles {
		if !bytes.Contains(raw, needle) {
			return nil, nil
		}
	}
	var sandbox Sandbox
	if err := decode(key, raw, &sandbox); err != nil || !q.matches(sandbox) {
		return nil, err
	}
	return &sandbox, nil
}

// needles are texts that the record of every sandbox has that matches.
func (q SandboxQuery) needles() (needles [][]byte) {
	for key, value := range q.Metadata {
		pair, err := json.Marshal(map[string]string{key: value})
		if err == nil {
			needles = append(needles, pair[1:len(pair)-1])
		}
	}
	return needles
}

// includes reports whether sandboxes that clients see in this state are asked for.
func (q SandboxQuery) includes(shown State) bool {
	if len(q.States) == 0 {
		return shown == StateRunning || shown == StatePaused
	}
	return slices.Contains(q.States, shown)
}

func (q SandboxQuery) matches(s Sandbox) bool {
	if !q.includes(s.State.Shown()) || q.Template != "" && s.Template != q.Template {
		return false
	}
	for key, want := range q.Metadata {
		if got, there := s.Metadata[key]; !there || got != want {
			return false
		}
	}
	return true
}

// behind reports whether a sandbox comes after the cursor in the order of the query.
func (q SandboxQuery) behind(s teamEntry) bool {
	order := s.startedAt.Compare(q.After.StartedAt)
	if order == 0 {
		order = strings.Compare(s.id, q.After.ID)
	}
	if q.Ascending {
		return order > 0
	}
	return order < 0
}
