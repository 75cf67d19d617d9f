package modal

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// tokenLife is taken for the life of a token that does not say when it ends.
const tokenLife = 20 * time.Minute

// expiryOf reads when a token ends. Nothing of it is verified: it is for the server alone to believe.
func expiryOf(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expiry int64 `json:"exp"`
	}
	if json.Unmarshal(body, &claims) != nil || claims.Expiry == 0 {
		return time.Time{}, false
	}
	return time.Unix(claims.Expiry, 0), true
}
