package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A key is the prefix and 40 lowercase hexadecimal digits: some SDKs refuse any other form before they make
// a call.
const (
	keyPrefix = "e2b_"
	keyDigits = 40
)

// NewKey makes an API key from 20 random bytes.
func NewKey() string {
	var random [keyDigits / 2]byte
	_, _ = rand.Read(random[:]) // never fails: the runtime ends the program first
	return keyPrefix + hex.EncodeToString(random[:])
}

// Valid reports whether a text has the form of a key.
func Valid(key string) bool {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	return ok && len(digits) == keyDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// Hash returns the lowercase hex SHA-256 of a whole key, the only form in which it is stored. A key has 160
// random bits, so a slow hash would add nothing.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Mask returns a key for listings: its prefix, its first 2 and its last 4 digits.
func Mask(key string) string {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(digits) < 8 {
		return "…"
	}
	return keyPrefix + digits[:2] + "…" + digits[len(digits)-4:]
}
