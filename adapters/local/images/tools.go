package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Tools makes the layer that lies above every image: our set-user-id sudo as /usr/bin/sudo. It returns the
// layer's folder, below dir and named by the program's content: the same program, the same folder.
func Tools(dir, sudoBinary string) (string, error) {
	program, err := os.ReadFile(sudoBinary)
	if err != nil {
		return "", fmt.Errorf("the sudo for boxes: %w (make build makes it)", err)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	layer := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(layer); err == nil {
		return layer, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(dir, newPrefix)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := fillTools(temp, program); err != nil {
		return "", fmt.Errorf("the tools layer: %w", err)
	}
	// Another process may have been faster; then its layer is the same.
	if err := os.Rename(temp, layer); err != nil {
		if _, there := os.Stat(layer); there != nil {
			return "", err
		}
	}
	return layer, nil
}

func fillTools(layer string, program []byte) error {
	bin := filepath.Join(layer, "usr", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	// The folders of the highest layer are what a box sees: their modes are those of any root file system.
	for _, d := range []string{layer, filepath.Dir(bin), bin} {
		if err := os.Chmod(d, 0o755); err != nil {
			return err
		}
	}
	sudo := filepath.Join(bin, "sudo")
	if err := os.WriteFile(sudo, program, 0o755); err != nil {
		return err
	}
	// Not os.Chmod: the mode is that of the file system, whatever the umask.
	return unix.Chmod(sudo, 0o4755)
}
