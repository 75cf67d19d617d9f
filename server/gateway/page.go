package gateway

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
)

// navigates reports whether a person looks at the answer: a browser that opens a page, not a script in one.
func navigates(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		return false
	}
	mode := r.Header.Get("Sec-Fetch-Mode")
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") &&
		(mode == "" || mode == "navigate") &&
		prefersHTML(strings.Join(r.Header["Accept"], ","))
}

// prefersHTML reports whether an Accept header names HTML, and JSON not before it. Who sends none takes what is usual.
func prefersHTML(accept string) bool {
	if accept == "" {
		return true
	}
	var page, data float64
	for part := range strings.SplitSeq(accept, ",") {
		media, parameters, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case "text/html", "application/xhtml+xml":
			page = max(page, quality(parameters))
		case "application/json":
			data = max(data, quality(parameters))
		}
	}
	return page > 0 && page >= data
}

// quality reads the q parameter; absent or broken it is 1.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if q, err := strconv.ParseFloat(value, 64); err == nil && strings.EqualFold(name, "q") {
			return q
		}
	}
	return 1
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%[1]s</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;margin:20vh auto;max-width:36rem;padding:0 1rem}code{color:#666}</style>
<h1>%[1]s</h1>
<p>%[2]s</p>
<p><code>%[3]s</code></p>
</html>
`

// writePage answers a person.
func writePage(w http.ResponseWriter, a answer) {
	detail := "Sandbox " + a.SandboxID
	if a.Port != 0 {
		detail += fmt.Sprintf(", port %d", a.Port)
	}
	title := fmt.Sprintf("%d %s", a.Code, http.StatusText(a.Code))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(a.Code)
	// A client that has gone gets no answer.
	_, _ = fmt.Fprintf(w, page, html.EscapeString(title), html.EscapeString(a.Message), html.EscapeString(detail))
}
