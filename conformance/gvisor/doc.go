// Package gvisor runs the suite of conformance/provider on the boxes of this machine that have gVisor's kernel. It
// is part of `make test-soak`, which builds runsc from gVisor's Go module (.ci/runsc.mod) to bin/runsc.
package gvisor
