package badger

import (
	"os"

	"golang.org/x/sys/unix"
)

// ballastSize is the most that the ballast holds, in bytes.
const ballastSize = 64 << 20

// ballast is a file that holds blocks of the disk for the moment when there are none. It has no content.
type ballast struct {
	path string
}

// grow lets the file take up to so many bytes more. What the disk does not have it does not get.
func (b ballast) grow(bytes int64) {
	const step = 4 << 20
	held := b.held()
	target := min(ballastSize, held+bytes) / step * step
	if target <= held {
		return
	}
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for held += step - held%step; held <= target; held += step {
		if unix.Fallocate(int(f.Fd()), 0, held-step, step) != nil {
			return
		}
	}
}

// drop gives everything back.
func (b ballast) drop() { _ = os.Remove(b.path) }

func (b ballast) held() int64 {
	info, err := os.Stat(b.path)
	if err != nil {
		return 0
	}
	return info.Size()
}
