//go:build linux

package inside

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Resolver is the address at which programs in the box ask for names; the facade answers there.
const Resolver = "10.0.2.3"

// identity gives the box its name and the files that say it. It runs after the old root is gone: a link of
// the image's cannot lead out any more. The files are replaced, not written through.
func identity(hostname string) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := directory("/etc", 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"/etc/hostname":    hostname + "\n",
		"/etc/hosts":       "127.0.0.1 localhost " + hostname + "\n::1 localhost ip6-localhost ip6-loopback\n",
		"/etc/resolv.conf": "nameserver " + Resolver + "\noptions timeout:5 attempts:2\n",
	} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
