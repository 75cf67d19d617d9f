package edge

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/signature"
)

// The headers by which clients that know one URL for everything name a sandbox and a port of it.
const (
	HeaderSandboxID   = "E2b-Sandbox-Id"
	HeaderSandboxPort = "E2b-Sandbox-Port"
)

// maxID bounds an id: host labels have at most 63 characters.
const maxID = 63

// Kind says which part of Isthmus a request is for.
type Kind int

// The kinds of address.
const (
	// ControlPlane is the REST API, and everything that names nothing else.
	ControlPlane Kind = iota
	// Sandbox is one port of one sandbox.
	Sandbox
	// Signed is a file URL whose sandbox only its signature tells.
	Signed
	// Preflight is a browser's question about a request whose headers will name a sandbox.
	Preflight
)

// Address is where a request goes. SandboxID and Port are set for the kind Sandbox only.
type Address struct {
	Kind      Kind
	SandboxID string
	Port      uint16
}

// Errors of Decide. Their texts are for the client; all of them are its fault, a 400.
var (
	errDisagree = errors.New("the host name and the headers " + HeaderSandboxID + ", " + HeaderSandboxPort +
		" name different sandboxes or ports: send one of the two")
	errOneAlone = errors.New("the headers " + HeaderSandboxID + " and " + HeaderSandboxPort + " go together: send both or none")
)

// Decide finds the address of a request: by its host when that is <port>-<id>[-<anything>] right below one of
// the domains, else by the two headers, unless it is a call about a sandbox, else by its being a preflight that
// announces them, else by its being a signed file URL, else the control plane. Domains are compared without case, port and trailing dot. An error says what the client has to mend.
func Decide(domains []string, r *http.Request) (Address, error) {
	label, below := labelOf(r.Host, domains)
	named := below && strings.Contains(label, "-")
	id, port, err := fromHeaders(r.Header)
	switch {
	case err != nil:
		return Address{}, err
	case named:
		return fromHost(label, id, port)
	case id != "" && port != 0 && aboutSandbox(r, port):
		return Address{Kind: ControlPlane}, nil
	case id != "" && port != 0:
		return Address{Kind: Sandbox, SandboxID: id, Port: port}, nil
	case id != "" || port != 0:
		return Address{}, errOneAlone
	case preflight(r):
		return Address{Kind: Preflight}, nil
	case signed(r):
		return Address{Kind: Signed}, nil
	}
	return Address{Kind: ControlPlane}, nil
}

// fromHost reads a label <port>-<id>[-<anything>] and compares it with the headers, as far as there are any:
// a client that addresses by host may send one of them alone.
func fromHost(label, id string, port uint16) (Address, error) {
	rawPort, rest, _ := strings.Cut(label, "-")
	hostPort, err := parsePort(rawPort)
	if err != nil {
		return Address{}, fmt.Errorf("the host name must begin with <port>-<sandbox id>: %w", err)
	}
	hostID, _, _ := strings.Cut(rest, "-")
	if !validID(hostID) {
		return Address{}, fmt.Errorf("the host name must begin with <port>-<sandbox id>: %w", errID(hostID))
	}
	if id != "" && id != hostID || port != 0 && port != hostPort {
		return Address{}, errDisagree
	}
	return Address{Kind: Sandbox, SandboxID: hostID, Port: hostPort}, nil
}

// fromHeaders reads the two headers; an absent one gives the zero value. An id may carry the client id that
// old SDKs append.
func fromHeaders(h http.Header) (id string, port uint16, err error) {
	rawID, hasID, err := single(h, HeaderSandboxID)
	if err != nil {
		return "", 0, err
	}
	rawPort, hasPort, err := single(h, HeaderSandboxPort)
	if err != nil {
		return "", 0, err
	}
	if hasID {
		var client string
		var suffixed bool
		id, client, suffixed = strings.Cut(rawID, "-")
		if !validID(id) || suffixed && !validID(client) {
			return "", 0, fmt.Errorf("the header %s is wrong: %w", HeaderSandboxID, errID(rawID))
		}
	}
	if hasPort {
		if port, err = parsePort(rawPort); err != nil {
			return "", 0, fmt.Errorf("the header %s is wrong: %w", HeaderSandboxPort, err)
		}
	}
	return id, port, nil
}

// single returns the one value of a header. Two values are an error even when they are equal: whoever is in
// front of us may have read the other one.
func single(h http.Header, name string) (value string, present bool, err error) {
	values := h[name]
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, fmt.Errorf("the header %s was sent %d times: send it once", name, len(values))
}

// labelOf returns the one label that stands before a domain in a host, in lower case, and whether there is one.
func labelOf(host string, domains []string) (string, bool) {
	host = bareHost(host)
	for _, domain := range domains {
		label, below := strings.CutSuffix(host, "."+bareHost(domain))
		if below && label != "" && !strings.Contains(label, ".") {
			return label, true
		}
	}
	return "", false
}

// bareHost takes the port, the trailing dot and the case off a host.
func bareHost(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// aboutSandbox reports whether a request with both headers is a call of the control plane all the same: some
// Python clients, 2.19 among them, send the headers of the daemon when they connect through the API. The daemon
// has no path of that kind.
func aboutSandbox(r *http.Request, port uint16) bool {
	path := strings.TrimPrefix(r.URL.Path, "/v2")
	return port == envd.Port && strings.HasPrefix(path, "/sandboxes/")
}

// signed reports whether r is for /files with a signature in the query, or the preflight of such a request.
func signed(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodOptions:
		return r.URL.Path == "/files" && r.URL.RawQuery != "" && r.URL.Query().Has(signature.ParamSignature)
	}
	return false
}

// parsePort reads a decimal port of 1 to 65535 without sign or leading zero.
func parsePort(s string) (uint16, error) {
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || port == 0 || s[0] == '0' {
		return 0, fmt.Errorf("the port %q is not a number of 1 to 65535", shorten(s))
	}
	return uint16(port), nil
}

func validID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

func errID(id string) error {
	return fmt.Errorf("the sandbox id %q is not made of the characters a to z and 0 to 9", shorten(id))
}

// shorten bounds what an error repeats of the client's input.
func shorten(s string) string {
	if len(s) > maxID {
		return s[:maxID] + "…"
	}
	return s
}
