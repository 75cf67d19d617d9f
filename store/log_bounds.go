package store

import (
	"maps"
	"slices"
	"strings"
)

// The bounds of one entry, in bytes. What a sandbox notes of itself is not to be trusted with our disk.
const (
	logMessage = 4 << 10
	logLevel   = 16
	logFields  = 16 // of them
	logField   = 1 << 10
)

// Bounded returns the entry with all that is too long cut.
func (e LogEntry) Bounded() LogEntry {
	e.Message, e.Level = cut(e.Message, logMessage), cut(e.Level, logLevel)
	if len(e.Fields) == 0 {
		return e
	}
	names := slices.Sorted(maps.Keys(e.Fields))
	fields := make(map[string]string, min(len(names), logFields))
	for _, name := range names[:min(len(names), logFields)] {
		fields[cut(name, logField)] = cut(e.Fields[name], logField)
	}
	e.Fields = fields
	return e
}

// Size is the number of bytes of the entry's texts.
func (e LogEntry) Size() int {
	size := len(e.Message) + len(e.Level) + len(e.Logger)
	for name, value := range e.Fields {
		size += len(name) + len(value)
	}
	return size
}

// cut shortens a text to at most so many bytes of whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
