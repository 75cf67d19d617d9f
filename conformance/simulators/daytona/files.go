package daytona

import (
	"context"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// fileInfo is a file as the daemon describes it.
type fileInfo struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	IsDir       bool   `json:"isDir"`
	Size        int64  `json:"size"`
	Mode        string `json:"mode"`
	Permissions string `json:"permissions"`
	Owner       string `json:"owner"`
	Group       string `json:"group"`
	ModTime     string `json:"modTime"`
	ModifiedAt  string `json:"modifiedAt"`
}

// format is how find describes a file: its fields end with a character that no name has.
const format = `%f\1%y\1%s\1%m\1%M\1%u\1%g\1%T@\1%p\0`

// sh runs a script with arguments, as the sandbox's user.
func (c *toolCall) sh(ctx context.Context, script string, args ...string) (code int, out string, err error) {
	code, text, err := run(ctx, c.box, machine.Command{
		Argv: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Env: c.environment(nil), Dir: "/", User: c.sb.facts.User,
	})
	return code, string(text), err
}

// The exit codes of the scripts below.
const (
	codeAbsent = 44
	codeDenied = 43
)

// must runs a script whose exit code says what is wrong.
func (c *toolCall) must(script string, args ...string) (string, error) {
	code, out, err := c.sh(c.Context(), script, args...)
	switch {
	case err != nil:
		return "", ofDaemon(http.StatusInternalServerError, "FILE_READ_FAILED", err.Error())
	case code == codeAbsent:
		return "", ofDaemon(http.StatusNotFound, "FILE_NOT_FOUND", "file not found: "+args[0])
	case code == codeDenied:
		return "", ofDaemon(http.StatusForbidden, "FILE_ACCESS_DENIED", "permission denied: "+args[0])
	case code != 0:
		return "", ofDaemon(http.StatusBadRequest, "BAD_REQUEST", strings.TrimSpace(out))
	}
	return out, nil
}

// described lists what find finds below a path.
func (c *toolCall) described(name string, from, to int) ([]fileInfo, error) {
	out, err := c.must(`[ -e "$1" ] || [ -L "$1" ] || exit 44; [ ! -d "$1" ] || [ -r "$1" ] || exit 43
		find "$1" -mindepth "$2" -maxdepth "$3" -printf "$4" 2>/dev/null || exit 43`, name, strconv.Itoa(from), strconv.Itoa(to), format)
	if err != nil {
		return nil, err
	}
	all := []fileInfo{}
	for line := range strings.SplitSeq(out, "\x00") {
		fields := strings.Split(line, "\x01")
		if len(fields) != 9 {
			continue
		}
		bytes, _ := strconv.ParseInt(fields[2], 10, 64)
		seconds, _ := strconv.ParseFloat(fields[7], 64)
		at := time.Unix(0, int64(seconds*1e9)).UTC()
		all = append(all, fileInfo{
			Name: fields[0], Path: fields[8], IsDir: fields[1] == "d", Size: bytes, Permissions: "0" + fields[3], Mode: fields[4],
			Owner: fields[5], Group: fields[6], ModTime: at.String(), ModifiedAt: at.Format(time.RFC3339Nano),
		})
	}
	return all, nil
}

func listFiles(c *toolCall) (reply, error) {
	all, err := c.described(c.absolute(c.URL.Query().Get("path")), 1, number(c.Request, "depth", 1))
	if err != nil {
		return reply{}, err
	}
	return ok(all)
}

func statFile(c *toolCall) (reply, error) {
	all, err := c.described(c.absolute(c.URL.Query().Get("path")), 0, 0)
	if err != nil {
		return reply{}, err
	}
	if len(all) != 1 {
		return reply{}, ofDaemon(http.StatusNotFound, "FILE_NOT_FOUND", "file not found")
	}
	return ok(all[0])
}

func makeFolder(c *toolCall) (reply, error) {
	mode := c.URL.Query().Get("mode")
	if _, err := strconv.ParseUint(mode, 8, 32); err != nil {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "invalid mode")
	}
	_, err := c.must(`mkdir -p "$1" 2>&1 && chmod "$2" "$1" 2>&1`, c.absolute(c.URL.Query().Get("path")), mode)
	return reply{status: http.StatusCreated}, err
}

func deleteFile(c *toolCall) (reply, error) {
	how := "-f"
	if c.URL.Query().Get("recursive") == "true" {
		how = "-rf"
	}
	_, err := c.must(`[ -e "$1" ] || [ -L "$1" ] || exit 44; rm "$2" "$1" 2>&1`, c.absolute(c.URL.Query().Get("path")), how)
	return reply{status: http.StatusNoContent}, err
}

func moveFile(c *toolCall) (reply, error) {
	query := c.URL.Query()
	_, err := c.must(`[ -e "$1" ] || exit 44; mv "$1" "$2" 2>&1`, c.absolute(query.Get("source")), c.absolute(query.Get("destination")))
	return reply{status: http.StatusOK}, err
}

func setPermissions(c *toolCall) (reply, error) {
	query := c.URL.Query()
	_, err := c.must(`[ -e "$1" ] || exit 44
		{ [ -z "$2" ] || chmod "$2" "$1"; } 2>&1 && { [ -z "$3" ] || chown "$3" "$1"; } 2>&1 && { [ -z "$4" ] || chgrp "$4" "$1"; } 2>&1`,
		c.absolute(query.Get("path")), query.Get("mode"), query.Get("owner"), query.Get("group"))
	return reply{status: http.StatusOK}, err
}

// findInFiles looks for a text in all files below a folder.
func findInFiles(c *toolCall) (reply, error) {
	query := c.URL.Query()
	out, err := c.must(`[ -e "$1" ] || exit 44; grep -rnHZe "$2" "$1" 2>/dev/null; :`, c.absolute(query.Get("path")), query.Get("pattern"))
	if err != nil {
		return reply{}, err
	}
	matches := []any{}
	for line := range strings.Lines(out) {
		file, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		at, content, _ := strings.Cut(rest, ":")
		if n, err := strconv.Atoi(at); err == nil {
			matches = append(matches, map[string]any{"file": file, "line": n, "content": content})
		}
	}
	return ok(matches)
}

// searchFiles looks for files by their names.
func searchFiles(c *toolCall) (reply, error) {
	query := c.URL.Query()
	folder := c.absolute(query.Get("path"))
	out, err := c.must(`[ -e "$1" ] || exit 44; find "$1" -name "$2" -print0 2>/dev/null; :`, folder, path.Base(query.Get("pattern")))
	if err != nil {
		return reply{}, err
	}
	found := []string{}
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			found = append(found, name)
		}
	}
	return ok(map[string]any{"files": found})
}
