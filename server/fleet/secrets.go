package fleet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// secretSize is the length of the root key in bytes.
const secretSize = 32

// Secrets derives every secret of every sandbox from one root key, so that none of them is stored.
type Secrets struct {
	root []byte
}

// LoadSecrets reads the root key from a file, and makes one when there is none. The file has mode 0600. One
// of another size is refused: with a wrong key every running sandbox would be out of reach.
func LoadSecrets(path string) (Secrets, error) {
	root, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSecrets(path)
	}
	if err != nil {
		return Secrets{}, err
	}
	if len(root) != secretSize {
		return Secrets{}, fmt.Errorf("%s has %d bytes where %d are needed: bring it back from a backup, "+
			"or move it aside to start with a new key (running sandboxes are then lost)", path, len(root), secretSize)
	}
	return Secrets{root: root}, nil
}

func makeSecrets(path string) (Secrets, error) {
	root := make([]byte, secretSize)
	rand.Read(root) // never fails
	// Written aside and linked, so that a half-written key is never seen and two starters agree on one.
	part, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return Secrets{}, err
	}
	defer func() { _ = os.Remove(part.Name()) }()
	_, err = part.Write(root)
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return Secrets{}, err
	}
	if err := os.Link(part.Name(), path); errors.Is(err, fs.ErrExist) {
		return LoadSecrets(path)
	} else if err != nil {
		return Secrets{}, err
	}
	return Secrets{root: root}, nil
}

// Transport proves to a box's envd that a request came through the facade.
func (s Secrets) Transport(boxID string) string { return s.derive("transport", boxID) }

// Control opens the internal routes of a box's envd.
func (s Secrets) Control(boxID string) string { return s.derive("control", boxID) }

// EnvdToken is what clients of a secure sandbox present to envd.
func (s Secrets) EnvdToken(sandboxID string) string { return s.derive("envd", sandboxID) }

// TrafficToken opens the ports of a sandbox whose traffic is not public.
func (s Secrets) TrafficToken(sandboxID string) string { return s.derive("traffic", sandboxID) }

// Deployment labels the boxes of this Isthmus. It is no secret, but as lasting as the key.
func (s Secrets) Deployment() string { return s.derive("deployment", "")[:16] }

// seal encrypts what is kept of a team and must not be readable in the store.
func (s Secrets) seal(teamID string, text []byte) []byte {
	return s.sealer().Seal(nil, nil, text, []byte(teamID))
}

// unseal reads what seal wrote, for the same team.
func (s Secrets) unseal(teamID string, sealed []byte) ([]byte, error) {
	return s.sealer().Open(nil, nil, sealed, []byte(teamID))
}

// sealer makes a nonce of its own for each text and puts it in front.
func (s Secrets) sealer() cipher.AEAD {
	mac := hmac.New(sha256.New, s.root)
	mac.Write([]byte("seal\x00"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		panic(err) // a key of 32 bytes is never refused
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // nor is AES
	}
	return sealer
}

func (s Secrets) derive(purpose, id string) string {
	mac := hmac.New(sha256.New, s.root)
	mac.Write([]byte(purpose + "\x00" + id))
	return hex.EncodeToString(mac.Sum(nil))
}
