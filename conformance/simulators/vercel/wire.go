//go:build linux

package vercel

import "maps"

// The states of a session, and of the sandbox that it is the current one of.
const (
	statusPending      = "pending"
	statusRunning      = "running"
	statusStopping     = "stopping"
	statusStopped      = "stopped"
	statusFailed       = "failed"
	statusSnapshotting = "snapshotting"
)

// Sandbox is a sandbox as the API shows it. Times are milliseconds since 1970, durations milliseconds.
type Sandbox struct {
	Name              string            `json:"name"`
	Persistent        bool              `json:"persistent"`
	Region            string            `json:"region"`
	FailoverRegions   []string          `json:"failoverRegions,omitempty"`
	VCPUs             int               `json:"vcpus"`
	Memory            int               `json:"memory"`
	Runtime           string            `json:"runtime,omitempty"`
	Image             string            `json:"image,omitempty"`
	Timeout           int64             `json:"timeout"`
	NetworkID         string            `json:"networkId,omitempty"`
	NetworkPolicy     *PolicyAnswer     `json:"networkPolicy,omitempty"`
	CreatedAt         int64             `json:"createdAt"`
	UpdatedAt         int64             `json:"updatedAt"`
	StatusUpdatedAt   int64             `json:"statusUpdatedAt"`
	ExpiresAt         int64             `json:"expiresAt,omitempty"`
	CurrentSessionID  string            `json:"currentSessionId"`
	CurrentSnapshotID string            `json:"currentSnapshotId,omitempty"`
	Status            string            `json:"status"`
	CWD               string            `json:"cwd"`
	Tags              map[string]string `json:"tags,omitempty"`
	Mounts            map[string]Mount  `json:"mounts,omitempty"`
	SnapshotExpires   *int64            `json:"snapshotExpiration,omitempty"`
	KeepLast          *KeepLast         `json:"keepLastSnapshots,omitempty"`
	TotalCPU          int64             `json:"totalActiveCpuDurationMs"`
	TotalDuration     int64             `json:"totalDurationMs"`
	TotalEgress       int64             `json:"totalEgressBytes"`
	TotalIngress      int64             `json:"totalIngressBytes"`
}

// Session is one boot of a sandbox.
type Session struct {
	ID            string        `json:"id"`
	SandboxName   string        `json:"sourceSandboxName"`
	ProjectID     string        `json:"projectId"`
	Memory        int           `json:"memory"`
	VCPUs         int           `json:"vcpus"`
	Region        string        `json:"region"`
	Runtime       string        `json:"runtime"`
	Timeout       int64         `json:"timeout"`
	Status        string        `json:"status"`
	CWD           string        `json:"cwd"`
	RequestedAt   int64         `json:"requestedAt"`
	StartedAt     int64         `json:"startedAt,omitempty"`
	RequestedStop int64         `json:"requestedStopAt,omitempty"`
	StoppedAt     int64         `json:"stoppedAt,omitempty"`
	SnapshottedAt int64         `json:"snapshottedAt,omitempty"`
	Duration      int64         `json:"duration,omitempty"`
	CreatedAt     int64         `json:"createdAt"`
	UpdatedAt     int64         `json:"updatedAt"`
	SnapshotID    string        `json:"sourceSnapshotId,omitempty"`
	NetworkPolicy *PolicyAnswer `json:"networkPolicy,omitempty"`
	ActiveCPU     *int64        `json:"activeCpuDurationMs,omitempty"`
	Transfer      *Transfer     `json:"networkTransfer,omitempty"`
}

// Transfer are bytes over the network.
type Transfer struct {
	Ingress int64 `json:"ingress"`
	Egress  int64 `json:"egress"`
}

// Route is the public address of a port.
type Route struct {
	URL       string `json:"url"`
	Subdomain string `json:"subdomain"`
	Port      int    `json:"port"`
}

// Command is one command of a session. ExitCode is null while it runs.
type Command struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Args       []string `json:"args"`
	CWD        string   `json:"cwd"`
	SessionID  string   `json:"sessionId"`
	ExitCode   *int     `json:"exitCode"`
	DurationMS *int64   `json:"durationMs,omitempty"`
	StartedAt  int64    `json:"startedAt"`
}

// Snapshot is a copy of a session's files.
type Snapshot struct {
	ID              string   `json:"id"`
	SourceSessionID string   `json:"sourceSessionId"`
	Region          string   `json:"region"`
	Regions         []string `json:"regions"`
	Status          string   `json:"status"`
	SizeBytes       int64    `json:"sizeBytes"`
	ExpiresAt       int64    `json:"expiresAt,omitempty"`
	CreatedAt       int64    `json:"createdAt"`
	UpdatedAt       int64    `json:"updatedAt"`
	LastUsedAt      int64    `json:"lastUsedAt"`
	CreationMethod  string   `json:"creationMethod"`
	ParentID        string   `json:"parentId,omitempty"`
}

// Drive is a volume.
type Drive struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	ProjectID      string `json:"projectId"`
	Region         string `json:"region"`
	MaxSizeBytes   int64  `json:"maxSizeBytes"`
	CurrentSession string `json:"currentSessionId,omitempty"`
	CurrentSandbox string `json:"currentSandboxName,omitempty"`
	ParentDrive    string `json:"parentDriveId,omitempty"`
	RootDrive      string `json:"rootDriveId,omitempty"`
	CreatedAt      int64  `json:"createdAt"`
	UpdatedAt      int64  `json:"updatedAt"`
}

// Mount says which drive is seen at a path.
type Mount struct {
	Drive string `json:"drive"`
	Mode  string `json:"mode,omitempty"`
}

// KeepLast says how many snapshots of a sandbox are kept.
type KeepLast struct {
	Count         int    `json:"count"`
	Expiration    *int64 `json:"expiration,omitempty"`
	DeleteEvicted bool   `json:"deleteEvicted"`
}

// Pagination is behind every list.
type Pagination struct {
	Count int     `json:"count"`
	Next  *string `json:"next"`
}

// clone copies what would otherwise be shared with an answer that is written later.
func (s Sandbox) clone() Sandbox {
	s.Tags = maps.Clone(s.Tags)
	return s
}
