package files

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
)

// metadataHeader begins the headers that carry metadata for uploaded files.
const metadataHeader = "X-Metadata-"

// The limits are those of extended attributes: a name has 255 bytes at most, and on ext4 all of a file's
// attributes share one block.
const (
	maxMetadataKey   = 255 - len(tree.MetadataPrefix)
	maxMetadataBytes = 4096
)

// metadata reads what an upload's headers say about its files; nil when they say nothing. Keys are lower case,
// and of a repeated header the first counts.
func metadata(header http.Header) (map[string]string, error) {
	var found map[string]string
	total := 0
	for name, values := range header {
		if len(name) < len(metadataHeader) || !strings.EqualFold(name[:len(metadataHeader)], metadataHeader) {
			continue
		}
		key, value := strings.ToLower(name[len(metadataHeader):]), values[0]
		switch {
		case key == "":
			return nil, errors.New("invalid metadata: a key is empty")
		case len(key) > maxMetadataKey:
			return nil, fmt.Errorf("invalid metadata: key '%.20s…' has more than %d bytes", key, maxMetadataKey)
		case !printable(key):
			return nil, fmt.Errorf("invalid metadata: key %q has characters that are not printable ASCII", key)
		case !printable(value):
			return nil, fmt.Errorf("invalid metadata: the value of '%s' has characters that are not printable ASCII", key)
		}
		if total += len(tree.MetadataPrefix) + len(key) + len(value); total > maxMetadataBytes {
			return nil, fmt.Errorf("invalid metadata: keys and values have more than %d bytes in total", maxMetadataBytes)
		}
		if found == nil {
			found = map[string]string{}
		}
		found[key] = value
	}
	return found, nil
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}
