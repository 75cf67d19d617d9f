package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// boxUser is the user that programs in a box run as.
const boxUser = "user"

// finish makes a tree one that boxes can start from: it has the user, the folders that boxes mount on, no
// devices and nothing that tells which machine it came from. A tree that commands cannot be started in is
// refused.
func finish(dir string) error {
	top, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	if shell, err := follow(top, "bin/bash"); err != nil || !isFile(top, shell) {
		return adapters.Errorf(adapters.KindInvalid, "the image has no /bin/bash, with which E2B clients start commands: add it")
	}
	for _, d := range []string{"dev", "proc", "sys", "run"} {
		if err := emptyFolder(top, d); err != nil {
			return err
		}
	}
	for _, d := range []string{"tmp", "var/tmp"} {
		d, err := follow(top, d)
		if err != nil {
			return err
		}
		if err := top.MkdirAll(d, 0o755); err != nil {
			return err
		}
		if err := top.Chmod(d, 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	if err := writeFile(top, "etc/resolv.conf", "nameserver 10.0.2.3\n"); err != nil {
		return err
	}
	if err := writeFile(top, "etc/machine-id", ""); err != nil {
		return err
	}
	return addUser(top)
}

func isFile(top *os.Root, name string) bool {
	fi, err := top.Lstat(name)
	return err == nil && fi.Mode().IsRegular()
}

// emptyFolder makes the folder anew, whatever it was.
func emptyFolder(top *os.Root, name string) error {
	if err := top.RemoveAll(name); err != nil {
		return err
	}
	return top.Mkdir(name, 0o755)
}

// writeFile replaces a file; links are replaced, not followed.
func writeFile(top *os.Root, name, content string) error {
	name, err := locate(top, name)
	if err != nil {
		return err
	}
	if err := top.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := top.RemoveAll(name); err != nil {
		return err
	}
	if err := top.WriteFile(name, []byte(content), 0o644); err != nil {
		return err
	}
	return top.Chmod(name, 0o644)
}

// addUser adds the user to an image that has none: 1000, or the next id that is free.
func addUser(top *os.Root) error {
	passwd, err := readFile(top, "etc/passwd")
	if err != nil {
		return err
	}
	group, err := readFile(top, "etc/group")
	if err != nil {
		return err
	}
	if hasName(passwd, boxUser) {
		return nil
	}
	id := 1000
	for hasID(passwd, id) || hasID(group, id) {
		id++
	}
	for file, line := range map[string]string{
		"etc/passwd":  fmt.Sprintf("%s:x:%d:%d::/home/user:/bin/bash\n", boxUser, id, id),
		"etc/group":   fmt.Sprintf("%s:x:%d:\n", boxUser, id),
		"etc/shadow":  boxUser + ":*:20000:0:99999:7:::\n",
		"etc/gshadow": boxUser + ":!::\n",
	} {
		if err := appendLine(top, file, line); err != nil {
			return err
		}
	}
	return makeHome(top, id)
}

// makeHome makes the home from the skeleton.
func makeHome(top *os.Root, id int) error {
	home, err := follow(top, "home/user")
	if err != nil {
		return err
	}
	if err := top.MkdirAll(home, 0o755); err != nil {
		return err
	}
	names := []string{home}
	for _, n := range []string{".bash_logout", ".bashrc", ".profile"} {
		text, err := readFile(top, "etc/skel/"+n)
		if err == nil && text == "" {
			continue
		}
		if err == nil {
			err = writeFile(top, home+"/"+n, text)
		}
		if err != nil {
			return err
		}
		names = append(names, home+"/"+n)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for _, n := range names {
		if err := top.Lchown(n, id, id); err != nil {
			return err
		}
	}
	return nil
}

// appendLine adds a line to a file; one that is not there is made only when it is not about secrets.
func appendLine(top *os.Root, name, line string) error {
	name, err := follow(top, name)
	if err != nil {
		return err
	}
	if _, err := top.Lstat(name); errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, "shadow") {
		return nil
	}
	old, err := readFile(top, name)
	if err != nil {
		return err
	}
	if old != "" && !strings.HasSuffix(old, "\n") {
		line = "\n" + line
	}
	f, err := top.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, line)
	return errors.Join(err, f.Close())
}

// readFile reads a file; one that is not there is empty.
func readFile(top *os.Root, name string) (string, error) {
	name, err := follow(top, name)
	if err != nil {
		return "", err
	}
	b, err := top.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

func hasName(database, name string) bool {
	return slices.ContainsFunc(strings.Split(database, "\n"), func(l string) bool { return strings.HasPrefix(l, name+":") })
}

// hasID looks at the third field, which is the id in passwd and in group.
func hasID(database string, id int) bool {
	return slices.ContainsFunc(strings.Split(database, "\n"), func(l string) bool {
		f := strings.Split(l, ":")
		return len(f) > 2 && f[2] == strconv.Itoa(id)
	})
}
