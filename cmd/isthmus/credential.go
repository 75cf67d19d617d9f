package main

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/isthmus/isthmus/server/config"
)

// keeping is where the key of a pool is kept. It may move while the pool serves.
type keeping struct {
	place atomic.Pointer[config.Credential]
}

func keptIn(place config.Credential) *keeping {
	k := &keeping{}
	k.move(place)
	return k
}

// move says that the key is kept elsewhere from now on.
func (k *keeping) move(place config.Credential) { k.place.Store(&place) }

// read returns the key as it is now.
func (k *keeping) read() (string, error) { return credential(*k.place.Load()) }

// credential reads a key where it is kept. Its errors name the place and never the key.
func credential(from config.Credential) (string, error) {
	if from.Env != "" {
		if key := os.Getenv(from.Env); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("the variable %s, which should hold the pool's key, is not set", shown(from.Env))
	}
	text, err := os.ReadFile(from.File)
	if err != nil {
		return "", fmt.Errorf("the file with the pool's key: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("the file %s, which should hold the pool's key, is empty", from.File)
	}
	return key, nil
}

// checkKeys looks for the keys of all pools where the configuration says that they are, and names every one that is not
// there: no pool is opened without.
func checkKeys(c config.Config) error {
	var faults config.Faults
	for i, pool := range c.Pools {
		if !hasKey(pool.Provider) {
			continue
		}
		field := "env"
		if pool.Credential.Env == "" {
			field = "file"
		}
		if _, err := credential(pool.Credential); err != nil {
			faults = append(faults, config.Fault{Path: fmt.Sprintf("pools[%d].credential.%s", i, field), Text: err.Error()})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// shown is the name of a variable for messages. One that does not look like a name may be the key itself, written in the
// wrong place, and is not repeated.
func shown(variable string) string {
	if strings.ToUpper(variable) == variable {
		return variable
	}
	return "that credential.env names"
}

// hasKey tells whether pools of a provider have a key of their own.
func hasKey(provider string) bool {
	switch provider {
	case config.ProviderE2B, config.ProviderVercel, config.ProviderModal, config.ProviderDaytona:
		return true
	}
	return false
}
