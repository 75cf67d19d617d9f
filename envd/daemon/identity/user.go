// Package identity answers as which user of the sandbox a request acts, and what that user's paths mean.
//
// Users come from the passwd and group files of the sandbox's own root file system, read without cgo. A
// request names its user by Basic authentication (the password means nothing: the access token is the
// credential); a request that names none acts as the default user.
package identity

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// User is one entry of the sandbox's passwd file.
type User struct {
	Name string
	UID  uint32
	GID  uint32
	// Groups are all groups of the user, the primary one first.
	Groups []uint32
	// Home is absolute. It need not exist.
	Home string
	// Shell may be empty.
	Shell string
}

// errOtherHome is upstream's wording for ~name, which only a shell can expand.
var errOtherHome = errors.New("cannot expand user-specific home dir")

// Expand turns a path of a request into an absolute one. An empty path becomes workdir, or the home when
// workdir is empty too; ~ and ~/x are the home; a relative path lies below the home, never below workdir; an
// absolute path is returned exactly as it was sent. The error, for ~name, is a fault of the request.
func (u User) Expand(path, workdir string) (string, error) {
	if path == "" {
		path = workdir
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		if rest != "" && rest[0] != '/' && rest[0] != '\\' {
			return "", fmt.Errorf("failed to expand path '%s' for user '%s': %w", path, u.Name, errOtherHome)
		}
		return filepath.Join(u.Home, rest), nil
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Join("/", u.Home, path), nil
}
