package translate

import (
	"net"
	"regexp"
	"strconv"
	"strings"
)

var (
	templatePattern = regexp.MustCompile(`^([a-z0-9_-]+/)?[a-z0-9_-]+(:[a-z0-9_.-]+)?$`)
	hostPattern     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
)

// SandboxID returns the sandbox id in a path parameter: the id itself, or {id}-{client} as SDKs before 1.9
// send it.
func SandboxID(given string) (string, error) {
	id, client, dashed := strings.Cut(given, "-")
	if !isSandboxID(id) || dashed && strings.Contains(client, "-") {
		return "", invalid("a sandbox id is 1 to 63 of a-z and 0-9, with at most one dash and a client id behind it")
	}
	return id, nil
}

func isSandboxID(id string) bool {
	if id == "" || len(id) > 63 {
		return false
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// templateName returns a template reference as templates are looked up: in lower case, and without the tag
// that every template has.
func templateName(given string) (string, error) {
	name := strings.ToLower(given)
	if !templatePattern.MatchString(name) {
		return "", invalid("templateID must be an id or a name of a-z, 0-9, - and _, as in name, name:tag or namespace/name:tag")
	}
	return strings.TrimSuffix(name, ":default"), nil
}

// TemplateFilter returns the template that a list is narrowed to; a tag is not allowed there.
func TemplateFilter(given string) (string, error) {
	name, err := templateName(given)
	if err != nil || strings.Contains(given, ":") {
		return "", invalid("template must be an id or a name, without a tag")
	}
	return name, nil
}

// isHostMask accepts an ASCII host with an optional port, in both of which ${PORT} may stand.
func isHostMask(mask string) bool {
	filled := strings.ReplaceAll(mask, "${PORT}", "65535")
	host := filled
	if h, port, err := net.SplitHostPort(filled); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return false
		}
		host = h
	}
	return len(host) <= 253 && hostPattern.MatchString(host)
}
