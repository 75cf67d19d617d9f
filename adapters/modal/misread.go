package modal

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/adapters"
)

// vendor is how messages name the provider.
const vendor adapters.Vendor = "Modal"

// garbled says what is not understood of an answer that gRPC itself could not read; empty: it could, or there was
// none. Its words are all that tells such an answer from a failure that the server names.
func garbled(err error) string {
	text := status.Convert(err).Message()
	has := func(words string) bool { return strings.Contains(text, words) }
	switch status.Code(err) {
	case codes.Unknown, codes.Internal, codes.Unimplemented:
	default:
		return ""
	}
	switch {
	case has("unexpected content-type"), has("unexpected HTTP status code"), has("malformed header"):
		return "it is not an answer of gRPC"
	case has("failed to unmarshal"), has("invalid wire type"):
		return "it is not the message of the call"
	case has("cardinality violation"), has("unexpected EOF"), has("without sending trailers"), has("stream terminated by RST_STREAM"):
		return "it ends in its middle"
	}
	return ""
}
