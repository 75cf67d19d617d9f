package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// initialisation is upstream's body of /init, as far as it has a meaning here.
type initialisation struct {
	EnvVars        map[string]string `json:"envVars"`
	AccessToken    *string           `json:"accessToken"`
	DefaultUser    string            `json:"defaultUser"`
	DefaultWorkdir string            `json:"defaultWorkdir"`
	Timestamp      *time.Time        `json:"timestamp"`
	VolumeMounts   []json.RawMessage `json:"volumeMounts"`
	CABundle       string            `json:"caBundle"`
	HyperloopIP    string            `json:"hyperloopIP"`
}

var (
	errTokenReset = errors.New("access token reset not authorized")
	errTokenWrong = errors.New("access token validation failed")
)

// serveInit configures the running daemon anew. It may be called again with the same body at any time.
func (d *Daemon) serveInit(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodPost) {
		return
	}
	w.Header().Set("X-Envd-Version", envd.Version)
	w.Header().Set("Cache-Control", "no-store")
	var body initialisation
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body)
	if err != nil || body.AccessToken != nil && *body.AccessToken == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := body.unsupported(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if name := envd.LongVariable(body.EnvVars); name != "" {
		http.Error(w, fmt.Sprintf("envVars: %.64s and its value are longer than the %d bytes that a program can be given", name, envd.MaxVariable), http.StatusBadRequest)
		return
	}
	fresh, err := d.settings.apply(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if fresh {
		d.users.SetDefaults(body.DefaultUser, body.DefaultWorkdir)
	}
	w.WriteHeader(http.StatusNoContent)
}

// unsupported names a field that would otherwise be dropped in silence.
func (i initialisation) unsupported() error {
	for field, set := range map[string]bool{
		"volumeMounts": len(i.VolumeMounts) > 0, "caBundle": i.CABundle != "", "hyperloopIP": i.HyperloopIP != "",
	} {
		if set {
			return fmt.Errorf("%s is not supported by this daemon", field)
		}
	}
	return nil
}

// apply takes a configuration over: the token only when there is none yet or it is the same, the rest only
// when it is newer than the last (fresh).
func (s *settings) apply(i initialisation) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.token == "" && i.AccessToken != nil:
		s.token = *i.AccessToken
	case s.token != "" && i.AccessToken == nil:
		return false, errTokenReset
	case s.token != "" && !same(*i.AccessToken, s.token):
		return false, errTokenWrong
	}
	if i.Timestamp != nil {
		if !s.updated.IsZero() && !i.Timestamp.After(s.updated) {
			return false, nil
		}
		s.updated = *i.Timestamp
	}
	if i.EnvVars != nil {
		s.user = i.EnvVars
	}
	return true, nil
}
