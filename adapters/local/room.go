//go:build linux

package local

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// ceilings returns the machine's own limits that all boxes count against together, with no count of a box's own
// beside them that would be lower. Each box is bounded by other means (its terminals, its processes, its memory);
// these only have to be above what all boxes can have, as service managers set the last two at boot.
func ceilings() map[string]int64 {
	return map[string]int64{
		"kernel/pty/max": 1024 * 128, // a thousand boxes that use all they may have
		"kernel/pid_max": 1 << 22,
		"fs/file-max":    math.MaxInt64,
	}
}

// makeRoom raises those that are lower; it lowers none.
func makeRoom() error {
	var problems []error
	for name, least := range ceilings() {
		if err := raise("/proc/sys/"+name, least); err != nil {
			problems = append(problems, fmt.Errorf("raise the sysctl %s to %d: %w", strings.ReplaceAll(name, "/", "."), least, err))
		}
	}
	return errors.Join(problems...)
}

func raise(path string, least int64) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if now, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || now >= least {
		return err
	}
	return os.WriteFile(path, []byte(strconv.FormatInt(least, 10)), 0)
}
