package store

import "time"

// SnapshotState is where a snapshot is in its life. Clients see those that are ready.
type SnapshotState string

// The states.
const (
	SnapshotCreating SnapshotState = "creating" // the intent is written, the place may have been called
	SnapshotReady    SnapshotState = "ready"
	SnapshotRemoving SnapshotState = "removing"
)

// Snapshot is a copy of a sandbox, from which others can be made in the same pool.
type Snapshot struct {
	ID        string        `json:"id"` // 20 of [a-z0-9]; it is a template's id too
	TeamID    string        `json:"teamID"`
	SandboxID string        `json:"sandboxID"` // of which it was taken
	State     SnapshotState `json:"state"`

	// Pool holds it, under CopyName, which is ours, and Ref, which is the place's.
	Pool     string `json:"pool"`
	CopyName string `json:"copyName"`
	Ref      string `json:"ref,omitempty"`
	// Level is what it keeps: filesystem or memory.
	Level string `json:"level,omitempty"`

	// Name is the one that it has, or is to have once it is ready, as name:tag. Another snapshot may take it over:
	// it is then empty.
	Name string `json:"name,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	SizeBytes int64     `json:"sizeBytes,omitempty"`

	CPU      int `json:"cpu"`
	MemoryMB int `json:"memoryMB"`
	DiskMB   int `json:"diskMB"`
	// Sealed is that of the sandbox.
	Sealed []byte `json:"sealed,omitempty"`
}

// SnapshotQuery selects and pages the snapshots of one team that are ready, the newest first.
type SnapshotQuery struct {
	TeamID string
	// SandboxID narrows it; empty: any.
	SandboxID string
	// Name narrows it to one: name:tag, or a name of any tag or an id, of which the newest is taken; empty: any.
	Name string
	// Limit is the page size; 0: no limit. After is the last one of the page before; nil: from the start.
	Limit int
	After *SandboxCursor
}

// SnapshotPage is one page of a list. Next is nil at the end.
type SnapshotPage struct {
	Snapshots []Snapshot
	Next      *SandboxCursor
}
