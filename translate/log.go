package translate

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// logLimit is how many entries one answer holds, at the most and by default.
const logLimit = 1000

// LogQueryV1 turns the query of the first version into ours: from start on, oldest first.
func LogQueryV1(params openapi.GetSandboxLogsParams) store.LogQuery {
	query := store.LogQuery{Limit: logLimit}
	if params.Start != nil {
		query.From = time.UnixMilli(*params.Start)
	}
	if params.Limit != nil {
		query.Limit = int(*params.Limit)
	}
	return query
}

// LogQueryV2 turns the query of the second version into ours: from the cursor back or on.
func LogQueryV2(params openapi.GetSandboxLogsV2Params) store.LogQuery {
	query := store.LogQuery{
		MinLevel: string(given(params.Level)),
		Search:   given(params.Search),
		Limit:    logLimit,
		Backward: given(params.Direction) != openapi.LogsDirectionForward,
	}
	if params.Limit != nil {
		query.Limit = int(*params.Limit)
	}
	if params.Cursor != nil {
		at := time.UnixMilli(*params.Cursor)
		if query.Backward {
			query.To = at
		} else {
			query.From = at
		}
	}
	return query
}

// Logs returns entries in both forms of the first version.
func Logs(entries []store.LogEntry) (openapi.SandboxLogs, error) {
	logs := openapi.SandboxLogs{Logs: make([]openapi.SandboxLog, 0, len(entries)), LogEntries: LogEntries(entries)}
	for _, entry := range entries {
		line, err := logLine(entry)
		if err != nil {
			return logs, err
		}
		logs.Logs = append(logs.Logs, openapi.SandboxLog{Timestamp: entry.At.UTC(), Line: line})
	}
	return logs, nil
}

// LogEntries returns entries in the structured form, never null.
func LogEntries(entries []store.LogEntry) []openapi.SandboxLogEntry {
	shown := make([]openapi.SandboxLogEntry, 0, len(entries))
	for _, entry := range entries {
		fields := make(map[string]string, len(entry.Fields)+1)
		maps.Copy(fields, entry.Fields)
		fields["logger"] = entry.Logger
		shown = append(shown, openapi.SandboxLogEntry{
			Timestamp: entry.At.UTC(),
			Level:     openapi.LogLevel(entry.Level),
			Message:   entry.Message,
			Fields:    fields,
		})
	}
	return shown
}

// logLine writes an entry as the JSON text that the CLI parses: it needs level, logger and message.
func logLine(entry store.LogEntry) (string, error) {
	line := make(map[string]string, len(entry.Fields)+4)
	maps.Copy(line, entry.Fields)
	line["timestamp"] = entry.At.UTC().Format(time.RFC3339Nano)
	line["level"] = entry.Level
	line["logger"] = entry.Logger
	line["message"] = entry.Message
	text, err := json.Marshal(line)
	return string(text), err
}
