//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
)

// Enter moves the calling thread, which must be locked to its goroutine, into a group of version 1; what it starts
// is then in the group from its first moment. Version 2 has a flag of clone for that: see Open.
//
// To move another process, the kernel of version 1 keeps all processors from forking, and waits for that about
// 10 ms. A thread that moves itself does not wait.
func (g *Group) Enter() error {
	if g == nil || g.Version == 2 {
		return nil
	}
	for _, path := range g.Paths {
		if err := os.WriteFile(filepath.Join(path, "tasks"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter the control group: %w", err)
		}
	}
	return nil
}
