package tree

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// MetadataPrefix is that of the extended attributes in which a file's metadata lies.
const MetadataPrefix = "user.e2b."

// attributeSize is the first guess at how large a list or value of attributes is; larger ones are asked again.
const attributeSize = 512

// metadata reads what is kept with the file at a path, following links; values that are not UTF-8 are left
// out. It is nil when there is nothing, or when the file system keeps no attributes.
func metadata(path string) map[string]string {
	names := attribute(func(buffer []byte) (int, error) { return unix.Listxattr(path, buffer) })
	var found map[string]string
	for _, name := range keys(names) {
		value := attribute(func(buffer []byte) (int, error) { return unix.Getxattr(path, MetadataPrefix+name, buffer) })
		if value == nil || !utf8.Valid(value) || !utf8.ValidString(name) {
			continue
		}
		if found == nil {
			found = make(map[string]string)
		}
		found[name] = string(value)
	}
	return found
}

// ReplaceMetadata makes the metadata of an open file exactly what is given. It touches nothing that is right
// already, because each change of an attribute is an event for those who watch the file. The error is an errno.
func ReplaceMetadata(fd int, want map[string]string) error {
	names := attribute(func(buffer []byte) (int, error) { return unix.Flistxattr(fd, buffer) })
	for _, name := range keys(names) {
		if _, keep := want[name]; keep {
			continue
		}
		if err := unix.Fremovexattr(fd, MetadataPrefix+name); err != nil && err != unix.ENODATA {
			return err
		}
	}
	return AddMetadata(fd, want)
}

// AddMetadata writes metadata to a file that has none yet. The error is an errno.
func AddMetadata(fd int, metadata map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if err := unix.Fsetxattr(fd, MetadataPrefix+name, []byte(metadata[name]), 0); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the metadata keys in a list of attribute names.
func keys(list []byte) []string {
	var found []string
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if key, ok := strings.CutPrefix(string(name), MetadataPrefix); ok && key != "" {
			found = append(found, key)
		}
	}
	return found
}

// attribute calls read with a buffer that is large enough. It returns nil when there is nothing to read.
func attribute(read func([]byte) (int, error)) []byte {
	buffer := make([]byte, attributeSize)
	for {
		n, err := read(buffer)
		if err == nil {
			return buffer[:n]
		}
		if err != unix.ERANGE || len(buffer) > 1<<16 {
			return nil
		}
		buffer = make([]byte, len(buffer)*4)
	}
}
