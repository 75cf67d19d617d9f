package egress

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func prefixes(list ...string) (found []netip.Prefix) {
	for _, one := range list {
		found = append(found, netip.MustParsePrefix(one))
	}
	return found
}

// lists is the test's internet with lists.
func lists(internet bool, allow, deny []netip.Prefix, names ...string) Policy {
	p := open4()
	p.Internet, p.Allow, p.Deny, p.AllowNames = internet, allow, deny, names
	return p
}

func TestLists(t *testing.T) {
	echo := order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}
	echo6 := order{Do: "tcp", To: "[" + internet6 + "]:80", Text: "echo\nx"}
	datagram := order{Do: "udp", To: internet4 + ":9000", Text: "x"}
	lookup := order{Do: "lookup", To: "test.example"}
	all := prefixes("0.0.0.0/0")
	for name, c := range map[string]struct {
		policy Policy
		may    []order
		not    []order
	}{
		"open but for one":              {lists(true, nil, prefixes(internet4+"/32")), []order{echo6, lookup}, []order{echo, datagram}},
		"open but for IPv6":             {lists(true, nil, prefixes("2001:db8::/32")), []order{echo, datagram, lookup}, []order{echo6}},
		"allow beats deny":              {lists(true, prefixes(internet4+"/32"), all), []order{echo, datagram}, []order{echo6, lookup}},
		"everything stands for IPv6":    {lists(true, nil, all), nil, []order{echo, echo6, datagram, lookup}},
		"closed but for one":            {lists(false, prefixes("203.0.113.0/24"), nil), []order{echo, datagram}, []order{echo6, lookup}},
		"closed but for everything":     {lists(false, all, nil), []order{echo, echo6, datagram}, nil},
		"private addresses are no list": {lists(true, prefixes("10.0.0.0/8"), nil), []order{echo}, []order{{Do: "tcp", To: private4 + ":80", Text: "echo\nx"}}},
		"nor are those of the host":     {lists(true, prefixes(hostOther4+"/32", "127.0.0.0/8"), nil), nil, []order{{Do: "tcp", To: hostOther4 + ":80", Text: "echo\nx"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := served(t, c.policy)
			for _, o := range c.may {
				assert.Empty(t, b.do(o).Err, "%+v", o)
			}
			for _, o := range c.not {
				assert.NotEmpty(t, b.do(o).Err, "%+v", o)
			}
		})
	}
}

func get(host string) order {
	return order{Do: "tcp", To: internet4 + ":80", Text: "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"}
}

func TestNames(t *testing.T) {
	b, _ := served(t, lists(true, nil, prefixes("0.0.0.0/0"), "test.example", "*.allowed.example"))
	for _, way := range []string{"lookup", "lookup-tcp"} {
		require.NotEmpty(t, b.do(order{Do: way, To: "big.example"}).Err, "a name that is not allowed is not looked up: %s", way)
		require.NotEmpty(t, b.do(order{Do: way, To: "allowed.example"}).Err, way)
	}
	require.NotEmpty(t, b.do(order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}).Err, "nobody named the address")
	require.NotEmpty(t, b.do(get("rebound.allowed.example")).Err, "the name has another address")
	require.Equal(t, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nserved", b.do(get("TEST.example:80")).Text, "a name alone is looked up here")
	require.NotEmpty(t, b.do(get("evil.example")).Err)
	require.Equal(t, internet4, b.do(order{Do: "lookup-tcp", To: "one.allowed.example"}).Text)
	require.Empty(t, b.do(order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}).Err, "a protocol without names")
	require.Empty(t, b.do(get("one.allowed.example")).Err)
	for _, lie := range []order{
		get("evil.example"), get(""), get("test.example\r\nHost: evil.example"), get("one.allowed.example.evil.example"),
		{Do: "tcp", To: internet4 + ":80", Text: "GET http://evil.example/ HTTP/1.1\r\nHost: test.example\r\n\r\n"},
		{Do: "tcp", To: internet4 + ":80", Text: "\r\nGET / HTTP/1.1\r\nHost: test.example\r\n\r\n"},
		{Do: "tcp", To: internet4 + ":80", Text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{Do: "tcp", To: internet4 + ":80", Text: "GET / no end of the line"},
	} {
		assert.NotEmpty(t, b.do(lie).Err, lie.Text)
	}
	require.Equal(t, "taken", b.do(order{Do: "hello", To: internet4 + ":443", Text: "one.allowed.example"}).Text)
	for _, lie := range []string{"evil.example", ""} {
		require.NotEqual(t, "taken", b.do(order{Do: "hello", To: internet4 + ":443", Text: lie}).Text, lie)
	}
	require.NotEmpty(t, b.do(order{Do: "udp", To: internet4 + ":9000", Text: "x"}).Err, "names hold for TCP")

	for _, name := range []string{"rebound.allowed.example", "host.allowed.example"} {
		to := b.do(order{Do: "lookup", To: name}).Text
		require.NotEmpty(t, to)
		require.NotEmpty(t, b.do(order{Do: "tcp", To: to + ":80", Text: "echo\nx"}).Err, "%s is allowed, its address never is", name)
	}
}

func TestAnyName(t *testing.T) {
	b, _ := served(t, lists(true, nil, prefixes("0.0.0.0/0"), "*"))
	require.NotEmpty(t, b.do(order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}).Err, "nobody named the address")
	require.NotEmpty(t, b.do(get(internet4)).Err, "an address is no name")
	require.NotEmpty(t, b.do(get("rebound.allowed.example")).Err, "the name has another address")
	require.Equal(t, internet4, b.do(order{Do: "lookup", To: "test.example"}).Text)
	require.Empty(t, b.do(get("test.example")).Err)
}

func TestANewPolicyCutsWhatItDoesNotAllow(t *testing.T) {
	b, e := served(t, open4())
	ended := make(chan result, 1)
	go func() { ended <- b.do(order{Do: "open", To: internet4 + ":80"}) }()
	require.Eventually(t, func() bool {
		e.open.mu.Lock()
		defer e.open.mu.Unlock()
		return len(e.open.live) == 1
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, e.SetPolicy(lists(true, nil, prefixes("198.51.100.0/24"))))
	select {
	case r := <-ended:
		require.Fail(t, "it was cut without need", r)
	default:
	}
	require.NoError(t, e.SetPolicy(lists(true, nil, prefixes(internet4+"/32"))))
	require.NotEmpty(t, (<-ended).Err)
	require.Error(t, e.SetPolicy(lists(true, nil, nil, "no name!")))
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"example.com": true, "*.example.com": true, "a.b-c.d": true, "localhost": true, "UPPER.example": true, "xn--bcher-kva.example": true, "_srv.example": true,
		"*": true,
		"":  false, "**": false, "*a": false, "*.*": false, "*.": false, "a..b": false, "-a.b": false, "a b": false, "*.*.a": false, "a.*.b": false, "1.2.3.4": false, "::1": false,
		strings.Repeat("a.", 130) + "b": false,
	} {
		require.Equal(t, want, ValidName(name), name)
	}
}

func TestHello(t *testing.T) {
	for text, want := range map[string]hello{
		"GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\nrest":        {speaks: true, name: "a.example"},
		"get / http/1.1\nhost: A.example\n\n":                       {speaks: true, name: ""},
		"GET / HTTP/1.1\r\n\r\n":                                    {speaks: true},
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n": {speaks: true},
		"SSH-2.0-OpenSSH_9\r\n":                                     {},
		"\x00\x00\x00\x08\x04\xd2\x16\x2f":                          {},
		"\x16\x03\x01 is not a hello":                               {speaks: true},
		"":                                                          {},
		strings.Repeat("A", 2*maxHello):                             {speaks: true},
		"GET /" + strings.Repeat("a", 9000) + " HTTP/1.1\r\nHost: long.example\r\n\r\n": {speaks: true, name: "long.example"},
	} {
		got := listenTo(bytes.NewReader([]byte(text)))
		require.True(t, strings.HasPrefix(text, string(got.said)), "nothing is changed")
		got.said = nil
		require.Equal(t, want, got, "%.60q", text)
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := listenTo(bytes.NewReader(b)); !bytes.HasPrefix(b, got.said) || got.name != "" && !got.speaks {
			t.Fail()
		}
	})
}

func FuzzAddresses(f *testing.F) {
	f.Add(query("a.example", netip.MustParseAddr("1.2.3.4")))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = asked(b)
		_ = addresses(b)
	})
}
