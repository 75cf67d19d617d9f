package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate/placement"
)

// Seconds to live where a client names none: the first version of create is from a time when clients
// refreshed every few seconds.
const (
	defaultLifeV1 = 15 * time.Second
	defaultLifeV2 = 300 * time.Second
)

// Limits are what a create and a connect are held against.
type Limits struct {
	// MaxLife is the longest time to live.
	MaxLife time.Duration
}

// Create turns a v1 create into a placement request: envd is open unless secure is true. sdk is the version of the SDK
// that sent it; nil: not known.
func Create(teamID string, body openapi.NewSandbox, sdk *string, limits Limits) (placement.Request, error) {
	sent := body
	if given(body.AutoPauseMemory) && before(sdk, asksAtCreate) {
		body.AutoPauseMemory = nil
	}
	return create(teamID, sent, body, defaultLifeV1, limits)
}

// CreateV2 turns a v2 create into a placement request: envd is always secured. idempotencyKey may be empty.
func CreateV2(teamID string, body openapi.NewSandboxV2, idempotencyKey string, limits Limits) (placement.Request, error) {
	secure := true
	request, err := create(teamID, body, openapi.NewSandbox{
		AllowInternetAccess: body.AllowInternetAccess,
		AutoPause:           body.AutoPause,
		AutoPauseMemory:     body.AutoPauseMemory,
		AutoResume:          body.AutoResume,
		EnvVars:             body.EnvVars,
		Iam:                 body.Iam,
		Mcp:                 body.Mcp,
		Metadata:            body.Metadata,
		Network:             body.Network,
		Secure:              &secure,
		TemplateID:          body.TemplateID,
		Timeout:             body.Timeout,
		VolumeMounts:        body.VolumeMounts,
	}, defaultLifeV2, limits)
	request.IdempotencyKey = idempotencyKey
	return request, err
}

// create turns the fields of a create into a placement request. sent is the body as it came, for the fingerprint.
func create(teamID string, sent any, body openapi.NewSandbox, defaultLife time.Duration, limits Limits) (placement.Request, error) {
	if err := refuse(&body); err != nil {
		return placement.Request{}, err
	}
	template, err := templateName(body.TemplateID)
	if err != nil {
		return placement.Request{}, err
	}
	life, err := life(body.Timeout, defaultLife, limits)
	if err != nil {
		return placement.Request{}, err
	}
	secure := body.Secure != nil && *body.Secure
	network, rules, err := networkOf(body, secure)
	if err != nil {
		return placement.Request{}, err
	}
	if err := checkEnvVars(body.EnvVars); err != nil {
		return placement.Request{}, err
	}
	print, err := fingerprint(sent)
	if err != nil {
		return placement.Request{}, err
	}
	request := placement.Request{
		TeamID:      teamID,
		Template:    template,
		Timeout:     life,
		Metadata:    body.Metadata,
		EnvVars:     body.EnvVars,
		Secure:      secure,
		Network:     network,
		Rules:       rules,
		Fingerprint: print,
	}
	return request, pauses(body, &request)
}

// life returns a create's time to live: 0 is refused, although the wire's range includes it.
func life(timeout *int32, byDefault time.Duration, limits Limits) (time.Duration, error) {
	if timeout == nil {
		return min(byDefault, limits.MaxLife), nil
	}
	if *timeout == 0 {
		return 0, invalid("timeout must be at least 1 second")
	}
	return Lifetime(*timeout, limits)
}

// Lifetime returns a number of seconds as a duration, or an error when it is above the longest life.
func Lifetime(seconds int32, limits Limits) (time.Duration, error) {
	life := time.Duration(seconds) * time.Second
	if life > limits.MaxLife {
		return 0, invalid("timeout is %d seconds, but a sandbox lives at most %d seconds here", seconds, int64(limits.MaxLife/time.Second))
	}
	return life, nil
}

// ConnectLifetime returns the time that a v2 connect asks for, 300 seconds by default.
func ConnectLifetime(seconds *int32, limits Limits) (time.Duration, error) {
	if seconds == nil {
		return min(defaultLifeV2, limits.MaxLife), nil
	}
	return Lifetime(*seconds, limits)
}

// pauses are what the create says of the sandbox's timeout.
func pauses(body openapi.NewSandbox, into *placement.Request) error {
	into.AutoPause = given(body.AutoPause)
	into.AutoResume = body.AutoResume != nil && body.AutoResume.Enabled
	memory := body.AutoPauseMemory
	switch {
	case memory == nil:
	case *memory:
		into.AutoPauseLevel = adapters.LevelMemory
	case !into.AutoPause:
		return invalid("autoPauseMemory: false needs autoPause: true")
	case into.AutoResume:
		return invalid("autoPauseMemory: false and autoResume contradict: what would answer the traffic is gone when only files are kept")
	default:
		into.AutoPauseLevel = adapters.LevelFilesystem
	}
	return nil
}

// checkEnvVars refuses what no process can have in its environment.
func checkEnvVars(vars map[string]string) error {
	for name, value := range vars {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return invalid("envVars holds a name that is empty or has = or a zero byte in it")
		}
		if strings.ContainsRune(value, 0) {
			return invalid("envVars: the value of %s has a zero byte in it", name)
		}
	}
	if name := adapters.LongVariable(vars); name != "" {
		return invalid("envVars: %.64s and its value are longer than the %d bytes that a program can be given: write the value into a file", name, adapters.MaxVariable)
	}
	return nil
}

// fingerprint is the same for bodies that mean the same, however they are written.
func fingerprint(body any) (string, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
