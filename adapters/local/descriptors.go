//go:build linux

package local

import (
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/egress"
)

// budget is how many flows the boxes can have together. They may hold two thirds of the descriptors that this
// process can open; the rest is for its clients and for making boxes.
func Flows() (*egress.Budget, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, err
	}
	descriptors := min(limit.Cur, 1<<24) // "unlimited" is a number as well
	return egress.NewBudget(int(descriptors * 2 / 3 / egress.FlowDescriptors)), nil
}
