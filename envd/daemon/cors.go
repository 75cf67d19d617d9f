package daemon

import "net/http"

// exposed are the response headers that a page of another origin may read.
const exposed = "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, X-Content-Type-Options"

// crossMethods are the methods that a page of another origin may use.
var crossMethods = map[string]bool{
	http.MethodHead: true, http.MethodGet: true, http.MethodPost: true,
	http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true,
}

// cors lets pages of every origin call the daemon: the token guards it, not the origin.
func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Header.Get("Access-Control-Request-Method")
		if r.Method == http.MethodOptions && method != "" {
			preflight(w.Header(), r, method)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		if r.Header.Get("Origin") != "" {
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Access-Control-Expose-Headers", exposed)
		}
		next.ServeHTTP(w, r)
	})
}

// preflight echoes what the browser asks for. A method that is not allowed gets no permission, and the browser
// refuses it.
func preflight(h http.Header, r *http.Request, method string) {
	h.Add("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	if r.Header.Get("Origin") == "" || !crossMethods[method] {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", method)
	if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Set("Access-Control-Max-Age", "7200")
}
