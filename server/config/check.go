package config

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shortestLife is the least useful longest life of sandboxes.
const shortestLife = time.Minute

// leastFreeMB is the room below which the store writes only what it must.
const leastFreeMB = 256

// maxWarm is the most sandboxes of one template that are kept ready: each takes memory and a loop device.
const maxWarm = 100

// maxID is the largest user id that leaves room for a range.
const maxID = 1<<31 - 1<<16

// check looks at what the fields mean.
func (c Config) check() Faults {
	var faults Faults
	fault := func(path, format string, args ...any) {
		faults = append(faults, Fault{path, fmt.Sprintf(format, args...)})
	}
	if err := checkAddress(c.Listen); err != nil {
		fault("listen", "%s", err)
	}
	if c.Data == "" {
		fault("data", "must name a folder")
	}
	if err := checkDomain(c.Domain); err != nil {
		fault("domain", "%s", err)
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		fault("tls", "needs both cert and key, or neither")
	}
	for path, file := range map[string]string{"tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key, "local.envd": c.Local.Envd, "local.sudo": c.Local.Sudo} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			fault(path, "names a file that cannot be read: %s", err)
		}
	}
	if c.Operator.Listen != "" {
		if err := checkAddress(c.Operator.Listen); err != nil {
			fault("operator.listen", "%s", err)
		} else if c.Operator.Listen == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
			fault("operator.listen", "is that of listen, where clients come in: give it a port of its own")
		}
	}
	faults = append(faults, c.Limits.check()...)
	faults = append(faults, c.Local.check()...)
	faults = append(faults, c.checkPools()...)
	slices.SortStableFunc(faults, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return faults
}

func (l Limits) check() Faults {
	var faults Faults
	for path, number := range map[string]int{
		"limits.max_sandboxes": l.MaxSandboxes, "limits.team_concurrency": l.TeamConcurrency,
		"limits.calls_per_second": l.CallsPerSecond, "limits.connections": l.Connections,
		"limits.cpu": l.CPU, "limits.memory_mb": l.MemoryMB, "limits.disk_mb": l.DiskMB,
	} {
		if number < 0 && path == "limits.connections" {
			faults = append(faults, Fault{path, "must not be negative; 0 is half of the descriptors that this process may have"})
		} else if number < 0 {
			faults = append(faults, Fault{path, "must not be negative; 0 is no limit"})
		}
	}
	if l.KeepFreeMB < leastFreeMB {
		faults = append(faults, Fault{"limits.keep_free_mb", fmt.Sprintf("must be at least %d", leastFreeMB)})
	}
	if l.LongestLife < shortestLife {
		faults = append(faults, Fault{"limits.longest_life", fmt.Sprintf("must be at least %s", shortestLife)})
	}
	return faults
}

func (l Local) check() Faults {
	var faults Faults
	fault := func(path, format string, args ...any) {
		faults = append(faults, Fault{"local." + path, fmt.Sprintf(format, args...)})
	}
	switch l.Isolation {
	case "", "gvisor", "process":
	case "ns":
		fault("isolation", "ns is not built yet: leave it empty for user namespaces")
	default:
		fault("isolation", "must be empty, gvisor or process, not %q", l.Isolation)
	}
	if l.AllowSingleID {
		fault("allow_single_id", "is not served yet: give this user subordinate ids, or say isolation: process")
	}
	if l.Egress != "" && l.Egress != "none" {
		fault("egress", "must be empty or none, not %q", l.Egress)
	}
	for i, text := range l.AllowPrivate {
		if _, err := netip.ParsePrefix(text); err != nil {
			fault(fmt.Sprintf("allow_private[%d]", i), "must be a range such as 10.1.0.0/16, not %q", text)
		}
	}
	for i, text := range l.Resolvers {
		if _, err := netip.ParseAddrPort(text); err != nil {
			fault(fmt.Sprintf("resolvers[%d]", i), "must be an address and port such as 10.0.0.2:53, not %q", text)
		}
	}
	if l.FirstID < 0 || l.FirstID > maxID {
		fault("first_id", "must be between 0 and %d", maxID)
	}
	if l.Processes < 0 {
		fault("processes", "must not be negative")
	}
	for template, boxes := range l.Warm {
		if boxes < 0 || boxes > maxWarm {
			fault("warm."+template, "must be between 0 and %d", maxWarm)
		}
	}
	for alias, image := range l.Images {
		if !imageName.MatchString(alias) {
			fault("images."+alias, "must be a name of a-z, 0-9, -, _ and .")
		}
		if image == "" {
			fault("images."+alias, "must name an image that was imported")
		}
	}
	return faults
}

var (
	imageName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)
	hostName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("must be host:port, such as 127.0.0.1:3000, not %q", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("has the port %q: it must be a number from 0 to 65535", port)
	}
	return nil
}

// checkDomain takes a host name, with or without a port.
func checkDomain(text string) error {
	if text == "" {
		return nil
	}
	if strings.Contains(text, "/") {
		return fmt.Errorf("must be a host name without https:// and without a path, not %q", text)
	}
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("has the port %q: it must be a number from 1 to 65535", port)
		}
		host = h
	}
	if !hostName.MatchString(host) {
		return fmt.Errorf("must be a host name in lower case, with a port if need be, not %q", text)
	}
	return nil
}
