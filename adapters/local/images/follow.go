package images

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// maxLinks is how many links a name may lead through, as in the kernel.
const maxLinks = 40

// follow returns what a name means in a tree whose links are read as a process would that has the tree as its
// root: absolute ones begin at the tree's top, and nothing is above that. The answer has no links in it. What
// is not there yet keeps its name, so that it can be made.
//
// os.Root alone refuses every absolute link, such as /var/run of most images; it still stands guard over what
// the answer is used for.
func follow(top *os.Root, name string) (string, error) {
	at, rest, links := "", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = parent(at)
			continue
		}
		next := path.Join(at, part)
		to, err := readLink(top, next)
		if err != nil {
			return "", err
		}
		if to == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "follow", Path: name, Err: syscall.ELOOP}
		}
		if path.IsAbs(to) {
			at = ""
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return path.Clean(at), nil
}

// locate is follow for a name whose last part is meant itself, also when it is a link.
func locate(top *os.Root, name string) (string, error) {
	folder, err := follow(top, path.Dir(name))
	return path.Join(folder, path.Base(name)), err
}

// readLink returns a link's target; "" for what is none, or not there.
func readLink(top *os.Root, name string) (string, error) {
	fi, err := top.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case fi.Mode().Type() != fs.ModeSymlink:
		return "", nil
	}
	return top.Readlink(name)
}

// parent is the folder above; the top has itself above.
func parent(at string) string {
	if dir := path.Dir(at); dir != "." {
		return dir
	}
	return ""
}
