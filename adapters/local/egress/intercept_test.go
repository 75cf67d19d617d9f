package egress

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// teller takes over what goes to one host, and answers with what it knows of the connection.
type teller struct {
	host string
}

func (w teller) Wants(host string) bool { return host == w.host }

func (w teller) Intercept(ctx context.Context, program net.Conn, host string, secure bool, dial func(context.Context) (net.Conn, error)) {
	defer program.Close()
	outside, err := dial(ctx)
	if err != nil {
		return
	}
	defer outside.Close()
	said := make([]byte, len("GET"))
	if _, err := io.ReadFull(program, said); err == nil {
		_, _ = io.WriteString(program, map[bool]string{true: "secure ", false: "plain "}[secure]+string(said)+" for "+host)
	}
}

// TestIntercept takes over connections by the host that they name, where the address is that host's.
func TestIntercept(t *testing.T) {
	for name, policy := range map[string]Policy{
		"the internet": open4(),
		"names":        lists(false, nil, nil, "test.example", "other.example", "rebound.allowed.example"),
	} {
		t.Run(name, func(t *testing.T) {
			policy.Interceptor = teller{"test.example"}
			b, e := served(t, policy)
			require.Equal(t, "plain GET for test.example", b.do(get("Test.example:80")).Text)
			require.Equal(t, internet4, b.do(order{Do: "lookup", To: "test.example"}).Text)
			require.Equal(t, "plain GET for test.example", b.do(get("test.example")).Text, "an address that was looked up")
			if policy.Internet {
				require.Contains(t, b.do(get("evil.example")).Text, "served")
				require.Equal(t, "x", b.do(order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}).Text, "a protocol without names")
			}
			policy.Interceptor = teller{"rebound.allowed.example"}
			require.NoError(t, e.SetPolicy(policy))
			require.NotContains(t, b.do(get("rebound.allowed.example")).Text, "plain", "the name has another address")
		})
	}
}
