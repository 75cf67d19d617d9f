// Package signature implements signed file URLs: whoever knows a sandbox's access token can make a URL that
// reads or writes one path as one user, with or without an end.
//
// It is shared: the daemon checks the signature of a request against its own token, and the gateway, which
// gets such a URL without any sandbox id when a client has one URL for everything, asks for each running
// sandbox whether its token makes that signature. So Matches allocates nothing for usual lengths.
package signature

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Names of the query parameters that a signed URL carries.
const (
	ParamPath       = "path"
	ParamUser       = "username"
	ParamSignature  = "signature"
	ParamExpiration = "signature_expiration"
)

// Operation is what a signature allows.
type Operation string

// The operations: GET reads, POST writes.
const (
	Read  Operation = "read"
	Write Operation = "write"
)

// Errors of Check. Their texts are what clients get.
var (
	ErrMissing = errors.New("missing signature query parameter")
	ErrInvalid = errors.New("invalid signature")
	ErrExpired = errors.New("signature is already expired")
)

// prefix is the version of the rule; it is part of the signature's text.
const prefix = "v1_"

// Claim is what a signed request says about itself.
type Claim struct {
	// Path and User are the raw values of the query, not expanded, and empty when absent.
	Path string
	User string
	// Operation follows from the method.
	Operation Operation
	// Expiration is in unix seconds; nil: the signature has no end.
	Expiration *int64
	// Signature is what the client sent; empty: none.
	Signature string
}

// FromQuery reads the claim of a request to /files. It fails only when the expiration is not an integer, with
// a text that is meant for the client. Any method but POST is taken for reading.
func FromQuery(method string, query url.Values) (Claim, error) {
	claim := Claim{
		Path:      query.Get(ParamPath),
		User:      query.Get(ParamUser),
		Signature: query.Get(ParamSignature),
		Operation: Read,
	}
	if method == http.MethodPost {
		claim.Operation = Write
	}
	if !query.Has(ParamExpiration) {
		return claim, nil
	}
	end, err := strconv.ParseInt(query.Get(ParamExpiration), 10, 64)
	if err != nil {
		//lint:ignore ST1005 it is upstream's text, which clients get as it is
		return Claim{}, fmt.Errorf("Invalid format for parameter %s: %w", ParamExpiration, err)
	}
	claim.Expiration = &end
	return claim, nil
}

// Sign returns the signature that token makes for the claim, whatever its Signature field holds.
func (c Claim) Sign(token string) string {
	var text [signatureLength]byte
	return string(c.sign(text[:0], token))
}

// Matches reports, in time that does not depend on where they differ, whether token makes the claim's
// signature. It does not look at the expiration.
func (c Claim) Matches(token string) bool {
	var text [signatureLength]byte
	return subtle.ConstantTimeCompare(c.sign(text[:0], token), []byte(c.Signature)) == 1
}

// Check returns nil when token makes the claim's signature and now is not past its end, else one of ErrMissing,
// ErrInvalid and ErrExpired. The signature is looked at before its age, so that only its owner learns that.
func (c Claim) Check(token string, now time.Time) error {
	switch {
	case c.Signature == "":
		return ErrMissing
	case !c.Matches(token):
		return ErrInvalid
	case c.Expiration != nil && *c.Expiration < now.Unix():
		return ErrExpired
	}
	return nil
}

// signatureLength is that of the prefix and 32 bytes in base64 without padding.
const signatureLength = len(prefix) + 43

// sign appends the signature to dst.
func (c Claim) sign(dst []byte, token string) []byte {
	var buffer [512]byte
	raw := append(buffer[:0], c.Path...)
	raw = append(raw, ':')
	raw = append(raw, c.Operation...)
	raw = append(raw, ':')
	raw = append(raw, c.User...)
	raw = append(raw, ':')
	raw = append(raw, token...)
	if c.Expiration != nil {
		raw = append(raw, ':')
		raw = strconv.AppendInt(raw, *c.Expiration, 10)
	}
	sum := sha256.Sum256(raw)
	dst = append(dst, prefix...)
	return base64.RawStdEncoding.AppendEncode(dst, sum[:])
}
