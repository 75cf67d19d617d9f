package fleet

import (
	"crypto/rand"

	"github.com/google/uuid"
)

const (
	idAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	idLength   = 20
)

// newID mints a sandbox id: "i" and 20 of [a-z0-9], about 103 bits.
func newID() string {
	id := make([]byte, 0, 1+idLength)
	id = append(id, 'i')
	var draw [32]byte
	for {
		rand.Read(draw[:]) // never fails
		for _, b := range draw {
			// Bytes past the last whole multiple of the alphabet would make its first letters likelier.
			if int(b) >= 256/len(idAlphabet)*len(idAlphabet) {
				continue
			}
			id = append(id, idAlphabet[int(b)%len(idAlphabet)])
			if len(id) == 1+idLength {
				return string(id)
			}
		}
	}
}

// newAttempt names one try at making a box.
func newAttempt() string { return uuid.NewString() }
