package translate

import (
	"net/url"
	"strings"
)

// MetadataFilter reads the value of the metadata query parameter after the query's own decoding.
//
// SDKs encode every key and value, join the pairs as a form (which encodes them once more), and the query
// encodes the whole a third time. So two layers are left here. Whoever writes a=b&c=d by hand has none left,
// which reads the same. Splitting comes first: a decoded value may hold & and =.
func MetadataFilter(query string) (map[string]string, error) {
	if query == "" {
		return nil, nil
	}
	filter := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, invalid("metadata must be pairs key=value joined by &, with keys and values percent-encoded")
		}
		key, keyErr := unescapeTwice(key)
		value, valueErr := unescapeTwice(value)
		if keyErr != nil || valueErr != nil {
			return nil, invalid("metadata holds a broken percent-encoding: encode each key and each value")
		}
		if _, twice := filter[key]; twice {
			return nil, invalid("metadata names one key twice")
		}
		filter[key] = value
	}
	return filter, nil
}

// unescapeTwice removes the form's layer and the SDK's own. Only the form writes a space as +.
func unescapeTwice(text string) (string, error) {
	once, err := url.QueryUnescape(text)
	if err != nil {
		return "", err
	}
	return url.PathUnescape(once)
}
