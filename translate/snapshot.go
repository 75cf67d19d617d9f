package translate

import (
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// maxName bounds the name of a snapshot, its tag included.
const maxName = 128

var snapshotNames = regexp.MustCompile(`^[a-z0-9_-]+:[a-z0-9_.-]+$`)

// SnapshotName returns the name of a snapshot as name:tag; empty when none was given.
func SnapshotName(given *string) (string, error) {
	if given == nil || *given == "" {
		return "", nil
	}
	name := strings.ToLower(*given)
	if strings.Contains(name, "/") {
		return "", invalid("name must not have a namespace: snapshots belong to the team that takes them")
	}
	if !strings.Contains(name, ":") {
		name += ":default"
	}
	_, tag, _ := strings.Cut(name, ":")
	if len(name) > maxName || !snapshotNames.MatchString(name) || uuid.Validate(tag) == nil {
		return "", invalid("name must be name or name:tag of a-z, 0-9, - and _, and the tag no UUID")
	}
	return name, nil
}

// TemplateReference returns a template or a snapshot in a path as they are looked up.
func TemplateReference(given string) (string, error) { return templateName(given) }

// Snapshot returns a snapshot as SDKs know it. Its id is accepted wherever a template's is, and says the tag; its names,
// as E2B's, do not.
func Snapshot(s store.Snapshot) openapi.SnapshotInfo {
	if s.Name == "" {
		return openapi.SnapshotInfo{SnapshotID: s.ID + ":default", Names: []string{}}
	}
	name, _, _ := strings.Cut(s.Name, ":")
	return openapi.SnapshotInfo{SnapshotID: s.Name, Names: []string{name}}
}

// Snapshots returns the answer of a list, never null.
func Snapshots(all []store.Snapshot) []openapi.SnapshotInfo {
	listed := make([]openapi.SnapshotInfo, 0, len(all))
	for _, one := range all {
		listed = append(listed, Snapshot(one))
	}
	return listed
}

// ListSnapshots turns the query of the list into ours.
func ListSnapshots(teamID string, params openapi.ListSnapshotsParams) (store.SnapshotQuery, error) {
	query := store.SnapshotQuery{TeamID: teamID, Limit: pageSize}
	if params.Limit != nil {
		query.Limit = int(*params.Limit)
	}
	var err error
	if id := given(params.SandboxID); id != "" {
		if query.SandboxID, err = SandboxID(id); err != nil {
			return query, err
		}
	}
	if query.Name, err = SnapshotName(params.Name); err != nil {
		return query, err
	}
	if !strings.Contains(given(params.Name), ":") {
		query.Name = strings.TrimSuffix(query.Name, ":default") // any tag
	}
	if token := given(params.NextToken); token != "" {
		query.After, err = parseCursor(token, false)
	}
	return query, err
}
