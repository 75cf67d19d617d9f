package translate

import (
	"net/http"

	"github.com/isthmus/isthmus/openapi"
)

// Treatment is what is done with a field that the protocol knows.
type Treatment string

// The treatments. A field that is refused is so only with another value than its default.
const (
	Honoured Treatment = "honoured"
	Harmless Treatment = "harmless"
	Refused  Treatment = "refused"
)

// Field is one field of a create.
type Field struct {
	// Name is its path in the body.
	Name      string
	Treatment Treatment
	// Status of the refusal, where the protocol has one of its own; 0: 400.
	Status int
	// Instead says what to do without the field; of a field that is honoured, where.
	Instead string
	// set reports whether the field has another value than its default; nil: never refused.
	set func(*openapi.NewSandbox) bool
}

// Fields is the one table of what is done with each field of a create. A test holds it against the OpenAPI
// document: a field that is in one of them only fails the build.
func Fields() []Field {
	return []Field{
		{Name: "templateID", Treatment: Honoured},
		{Name: "timeout", Treatment: Honoured},
		{Name: "metadata", Treatment: Honoured},
		{Name: "envVars", Treatment: Honoured},
		{Name: "secure", Treatment: Honoured},
		{Name: "allow_internet_access", Treatment: Honoured},
		{Name: "network.allowPublicTraffic", Treatment: Honoured},
		{Name: "network.maskRequestHost", Treatment: Honoured},
		// Statistics: the SDK starts the gateway itself.
		{Name: "mcp", Treatment: Harmless, Instead: "the SDK asks for the template `mcp-gateway` then: it is there only if the operator has imported it"},
		{Name: "network.allowOut", Treatment: Honoured, Instead: "in a pool that keeps such lists; no other is taken"},
		{Name: "network.denyOut", Treatment: Honoured, Instead: "in a pool that keeps such lists; `[\"0.0.0.0/0\"]` wherever internet access can be taken away"},
		{Name: "network.rules", Treatment: Honoured, Instead: "in a pool that adds headers; placeholders of kept secrets are refused"},
		{Name: "autoPause", Treatment: Honoured, Instead: "in a pool that can pause; no other is taken"},
		{Name: "autoPauseMemory", Treatment: Honoured, Instead: "left out, a pause keeps as much as the pool can; true takes only pools that keep memory"},
		{Name: "autoResume.enabled", Treatment: Honoured, Instead: "in a pool that keeps the memory of paused sandboxes; no other is taken"},
		{Name: "network.dnsServers", Treatment: Refused, Instead: "leave it out, the sandbox then uses the machine's name servers",
			set: func(b *openapi.NewSandbox) bool { return b.Network != nil && len(b.Network.DNSServers) > 0 }},
		{Name: "network.httpsPorts", Treatment: Refused, Instead: "serve plain HTTP on the port",
			set: func(b *openapi.NewSandbox) bool { return b.Network != nil && len(b.Network.HTTPSPorts) > 0 }},
		{Name: "network.egressProxy", Treatment: Refused, Status: http.StatusForbidden, Instead: "set a proxy inside the sandbox",
			set: func(b *openapi.NewSandbox) bool { return b.Network != nil && b.Network.EgressProxy != nil }},
		{Name: "volumeMounts", Treatment: Refused, Instead: "write the files into the sandbox after it was made",
			set: func(b *openapi.NewSandbox) bool { return len(b.VolumeMounts) > 0 }},
		{Name: "iam.tokens", Treatment: Refused, Instead: "hand credentials over in envVars",
			set: func(b *openapi.NewSandbox) bool { return b.Iam != nil && len(b.Iam.Tokens) > 0 }},
	}
}

// refuse returns the refusal of the first field that is not supported and set, or nil.
func refuse(body *openapi.NewSandbox) error {
	for _, field := range Fields() {
		if field.set != nil && field.set(body) {
			return refusal(field.Name, field.Status, field.Instead)
		}
	}
	return nil
}

func refusal(name string, status int, instead string) error {
	if status == 0 {
		status = http.StatusBadRequest
	}
	return &Failure{Status: status, Code: CodeUnsupportedField, Message: name + " is not supported here: " + instead + "."}
}
