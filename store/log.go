package store

import "time"

// Log levels, in order of weight.
const (
	LevelDebug = "debug"
	LevelInfo  = "info"
	LevelWarn  = "warn"
	LevelError = "error"
)

// LogEntry is one line of a sandbox's log: a process's start or end, a warning of envd, or an event of the
// sandbox's life. It never holds a command's output.
type LogEntry struct {
	At      time.Time         `json:"at"`
	Level   string            `json:"level"`
	Logger  string            `json:"logger"` // envd or lifecycle
	Message string            `json:"message"`
	Fields  map[string]string `json:"fields,omitempty"`
}

// LogQuery selects log entries of one sandbox.
type LogQuery struct {
	// From and To bound the time, inclusive; zero: open.
	From, To time.Time
	// MinLevel is the least weight; empty: all.
	MinLevel string
	// Search must be part of the message; empty: all.
	Search string
	// Limit is at most 1,000.
	Limit int
	// Backward takes the newest entries first.
	Backward bool
}
