package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The secrets, and the variables that they come from.
const (
	apiKeyVariable     = "ISTHMUS_API_KEY"
	adminTokenVariable = "ISTHMUS_ADMIN_TOKEN"
	// minToken is the least length of an admin token.
	minToken = 16
)

// Secrets come from the environment, and are in no file, log or listing.
type Secrets struct {
	// APIKey is a key of the default team; empty: the first start makes one.
	APIKey string
	// AdminToken opens the administration on the operator's listener; empty: nothing does.
	AdminToken string
}

// ReadSecrets takes the secrets from the environment, by a function such as os.LookupEnv. validKey tells
// whether a key has the form that SDKs accept. The messages never repeat a secret.
func ReadSecrets(lookup func(string) (string, bool), validKey func(string) bool) (Secrets, error) {
	var s Secrets
	var faults []error
	if key, set := lookup(apiKeyVariable); set && key != "" {
		if !validKey(key) {
			faults = append(faults, errors.New(apiKeyVariable+` must be "e2b_" and 40 digits of 0-9 and a-f: SDKs refuse any other form`))
		}
		s.APIKey = key
	}
	if token, set := lookup(adminTokenVariable); set && token != "" {
		if len(token) < minToken {
			faults = append(faults, fmt.Errorf("%s must have at least %d characters", adminTokenVariable, minToken))
		}
		s.AdminToken = token
	}
	return s, errors.Join(faults...)
}

// UnknownVariables returns the variables of the environment that begin like ours, are none of ours, and are not the
// credential of a pool: perhaps misspelt ones.
func (c Config) UnknownVariables(environment []string) []string {
	known := []string{apiKeyVariable, adminTokenVariable}
	for _, pool := range c.Pools {
		known = append(known, pool.Credential.Env)
	}
	var unknown []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "ISTHMUS_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
