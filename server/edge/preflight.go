package edge

import (
	"net/http"
	"slices"
	"strings"
)

// preflight reports whether a browser asks with r whether a page may send a request that names its sandbox by the
// two headers. It says that they will come, not what is in them, so that no sandbox can be asked.
func preflight(r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	names := strings.Split(strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","), ",")
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), HeaderSandboxID) })
}

// grant lets a page send its request. What it may read of the answer is the sandbox's to say.
func grant(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
	h.Set("Access-Control-Allow-Headers", strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","))
	h.Set("Access-Control-Max-Age", "7200")
	h.Add("Vary", "Origin")
	w.WriteHeader(http.StatusNoContent)
}
