//go:build linux

package modal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// claims are what a token says: for whom it is, and until when.
type claims struct {
	Subject string `json:"sub"`
	Expiry  int64  `json:"exp"`
}

// tokenHeader is that of a JWT signed by HMAC-SHA256.
const tokenHeader = `{"alg":"HS256","typ":"JWT"}`

func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}

// token signs a JWT for a subject: the account, or a task.
func (s *Server) token(subject string) string {
	body, _ := json.Marshal(claims{subject, time.Now().Add(s.config.TokenLife).Unix()})
	text := encode([]byte(tokenHeader)) + "." + encode(body)
	return text + "." + encode(s.sign(text))
}

// subject is for whom a token is, if it is one of ours and has not expired.
func (s *Server) subject(token string) (string, error) {
	text, signature, _ := cutLast(token, ".")
	sum, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(sum, s.sign(text)) {
		return "", errors.New("the token is not valid")
	}
	_, body, _ := strings.Cut(text, ".")
	content, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return "", errors.New("the token is not valid")
	}
	var c claims
	if err := json.Unmarshal(content, &c); err != nil {
		return "", errors.New("the token is not valid")
	}
	if time.Now().Unix() >= c.Expiry {
		return "", errors.New("the token has expired")
	}
	return c.Subject, nil
}

func (s *Server) sign(text string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
