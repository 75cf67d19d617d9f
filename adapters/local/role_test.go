//go:build linux

package local_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// envData is the data folder of a facade that is played.
const envData = "LOCAL_TEST_DATA"

// roleClaims makes boxes ahead and claims them, for ever.
const roleClaims = "claims"

// play runs the test binary as a facade that makes boxes, says so, and waits to be killed. The role is the
// number of boxes; a number below zero goes on for ever.
func play(role string) int {
	var count int
	if _, err := fmt.Sscan(role, &count); err != nil && role != roleClaims {
		return 2
	}
	c := withResolver(config(os.Getenv(envData)))
	if _, err := fmt.Sscan(os.Getenv(envFirst), &c.FirstID); err != nil {
		return 2
	}
	l, err := local.Open(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("open")
	if role == roleClaims {
		fmt.Fprintln(os.Stderr, claimForEver(l))
		return 1
	}
	for i := 0; i != count; i++ {
		s := spec(newID())
		s.Network = adapters.Network{Internet: true}
		if _, err := l.Create(context.Background(), s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(s.BoxID)
	}
	select {}
}

func claimForEver(l *local.Local) error {
	for {
		ahead, s := spec(newID()), spec(newID())
		ahead.Network, s.Network = adapters.Network{Internet: true}, adapters.Network{Internet: true}
		if _, err := l.Stock(context.Background(), ahead); err != nil {
			return err
		}
		fmt.Println(s.BoxID) // it is about to be claimed
		if _, err := l.Claim(context.Background(), s); err != nil {
			return err
		}
	}
}

const envFirst = "LOCAL_TEST_FIRST"

// facade starts such a process and returns it with the lines that it says.
func facade(t *testing.T, c local.Config, role string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"="+role, envData+"="+c.DataDir, envFirst+"="+fmt.Sprint(c.FirstID))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the facade opens")
	require.Equal(t, "open", lines.Text())
	return cmd, lines
}
