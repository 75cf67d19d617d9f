package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the unit of the kernel's processor times: it shows hundredths of a second on every platform.
const clockTicks = 100

// processorTime is what processes have used of the processors, the children that they waited for not included.
func processorTime(pids []int) time.Duration {
	var ticks uint64
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] { // user and system time, the 14th and 15th of all
			n, _ := strconv.ParseUint(field, 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / clockTicks
}

// Memory is what processes have in memory, in bytes.
type Memory struct {
	// Resident counts shared pages fully, Share by the number of those who share them, Own not at all.
	Resident, Share, Own int64
}

// MemoryOf adds up the memory of processes. One that is gone counts nothing.
func MemoryOf(pids []int) (m Memory) {
	for _, pid := range pids {
		file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			name, rest, _ := strings.Cut(lines.Text(), ":")
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			switch n <<= 10; name {
			case "Rss":
				m.Resident += n
			case "Pss":
				m.Share += n
			case "Private_Clean", "Private_Dirty":
				m.Own += n
			}
		}
		_ = file.Close()
	}
	return m
}

// Minus is the growth since then.
func (m Memory) Minus(then Memory) Memory {
	return Memory{m.Resident - then.Resident, m.Share - then.Share, m.Own - then.Own}
}
