package process_test

import (
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

// TestTooLongForTheKernel gives a program what no program can be given: the answer says which part it was.
func TestTooLongForTheKernel(t *testing.T) {
	h := start(t, map[string]string{"SHARED": "x"})
	longest := strings.Repeat("v", envd.MaxVariable-len("A="))
	m := shell(`echo ${#A}`)
	m.Process.Envs = map[string]string{"A": longest}
	require.Equal(t, strconv.Itoa(len(longest))+"\n", begin(t, h.sdk(t), m).finish(t).stdout, "the longest that there can be")

	for name, row := range map[string]struct {
		envs map[string]string
		args []string
		says string
	}{
		"a variable":  {envs: map[string]string{"A": longest + "v"}, says: "argument list too long: the variable A and its value have 131072 bytes"},
		"an argument": {args: []string{strings.Repeat("a", envd.MaxVariable+1)}, says: "argument list too long: argument 3 of '/bin/sh' has 131072 bytes"},
		"all of them": {envs: many(longest), says: "argument list too long: '/bin/sh' cannot be given"},
	} {
		t.Run(name, func(t *testing.T) {
			m := shell("true")
			m.Process.Envs, m.Process.Args = row.envs, append(m.Process.Args, row.args...)
			for _, terminal := range []bool{false, true} {
				if terminal {
					m = withPTY(m, 80, 24)
				}
				err := refused(t, h.sdk(t), m)
				require.Equal(t, connect.CodeInvalidArgument, err.Code())
				require.Contains(t, err.Message(), row.says)
				require.Less(t, len(err.Message()), 1000, "what was too long is not repeated")
			}
		})
	}
	h = start(t, map[string]string{"SHARED": longest})
	require.Contains(t, refused(t, h.sdk(t), shell("true")).Message(), "the variable SHARED")
}

// many are more variables than the kernel takes, none of which is too long.
func many(value string) map[string]string {
	vars := map[string]string{}
	for n := range 64 {
		vars["A"+strconv.Itoa(n)] = value[:len(value)-2]
	}
	return vars
}
