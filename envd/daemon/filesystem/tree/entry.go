package tree

import (
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/isthmus/isthmus/envd/filesystem"
)

// Stat describes one path, itself when it is a link. The error is a *fs.PathError.
func (t *Tree) Stat(path string) (*filesystem.EntryInfo, error) {
	fd, err := t.openat(unix.AT_FDCWD, path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	entry := t.describe(&st, path)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		t.describeTarget(unix.AT_FDCWD, path, entry)
	case unix.S_IFREG, unix.S_IFDIR:
		entry.Metadata = metadata(link(fd))
	}
	return entry, nil
}

// child describes what a name in an open folder is; shown is the path to answer.
func (t *Tree) child(dir int, name, shown string) (*filesystem.EntryInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	entry := t.describe(&st, shown)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		t.describeTarget(dir, name, entry)
	case unix.S_IFREG, unix.S_IFDIR:
		// Reached through the folder's descriptor; a link put in its place meanwhile shows its target's.
		entry.Metadata = metadata(link(dir) + "/" + name)
	}
	return entry, nil
}

// describe fills in what an entry says about itself.
func (t *Tree) describe(st *unix.Stat_t, path string) *filesystem.EntryInfo {
	return &filesystem.EntryInfo{
		Name:         Text(filepath.Base(path)),
		Type:         fileType(st.Mode),
		Path:         Text(path),
		Size:         st.Size,
		Mode:         st.Mode & 0o777,
		Permissions:  fileMode(st.Mode).String(),
		Owner:        Text(t.names.UserName(st.Uid)),
		Group:        Text(t.names.GroupName(st.Gid)),
		ModifiedTime: timestamppb.New(time.Unix(st.Mtim.Unix())),
	}
}

// describeTarget fills in what a link has of its target: type, mode and metadata. A link that leads nowhere has
// none of them and names itself.
func (t *Tree) describeTarget(dir int, name string, entry *filesystem.EntryInfo) {
	target := entry.Path
	entry.IsSymlink = true
	entry.SymlinkTarget = &target
	fd, err := t.openat(dir, name, unix.O_PATH, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return
	}
	entry.Type = fileType(st.Mode)
	entry.Mode = st.Mode & 0o777
	entry.Metadata = metadata(link(fd))
	if path, err := resolved(fd); err == nil {
		path = Text(path)
		entry.SymlinkTarget = &path
	}
}

// Text makes a name fit to be told. The kernel allows any bytes in a name, a protocol message only UTF-8, and
// one odd name must not make its whole folder unreadable.
func Text(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// fileType names what SDKs can handle; a link itself, a FIFO, a socket and a device are none of these.
func fileType(mode uint32) filesystem.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return filesystem.FileType_FILE_TYPE_FILE
	case unix.S_IFDIR:
		return filesystem.FileType_FILE_TYPE_DIRECTORY
	}
	return filesystem.FileType_FILE_TYPE_UNSPECIFIED
}

// fileMode turns a mode of the kernel into one of Go, whose text is what clients see.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	}
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}
