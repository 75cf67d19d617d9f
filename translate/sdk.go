package translate

import "fmt"

// version is the first two numbers of an SDK's version.
type version struct{ major, minor int }

// SDKs before these, of both languages, ask for memory to be kept where their user asked for nothing. What they mean
// by it is what later ones mean by silence.
var (
	asksAtCreate = version{2, 42}
	asksAtPause  = version{2, 51}
)

// before reports whether an SDK is older than a version. One that does not tell its own is not.
func before(sdk *string, than version) bool {
	var v version
	if n, _ := fmt.Sscanf(given(sdk), "%d.%d", &v.major, &v.minor); n != 2 {
		return false
	}
	return v.major < than.major || v.major == than.major && v.minor < than.minor
}
