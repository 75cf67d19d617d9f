package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsThatAreNoCommandAreRefused(t *testing.T) {
	data := t.TempDir()
	for says, args := range map[string][]string{
		"there is no command `isthmus keys revok`: perhaps revoke is meant":            {"keys", "revok", "an-id"},
		"there is no command `isthmus images xyz`: `isthmus images --help` lists them": {"images", "xyz"},
		"there is no command `isthmus serv`: perhaps env or serve is meant":            {"serv"},
		"accepts 1 arg(s), received 0: write `isthmus keys revoke ID [flags]`":         {"keys", "revoke"},
		"write `isthmus serve [flags]`":                                                {"serve", "more"},
		"invalid argument \"gcp\"":                                                     {"simulate", "gcp"},
		"write `isthmus simulate daytona|modal|vercel [flags]`":                        {"simulate"},
		"write `isthmus teams create NAME [flags]`":                                    {"teams", "create"},
	} {
		_, err := isthmus(t, append(args, "--data", data)...)
		require.ErrorContains(t, err, says, "%v", args)
	}
	require.Contains(t, must(t, "keys", "--data", data), "Available Commands")
	require.Contains(t, must(t, "--help"), "Available Commands")
}
