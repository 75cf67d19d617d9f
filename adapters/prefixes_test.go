package adapters_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestSubtract(t *testing.T) {
	parse := func(texts ...string) []netip.Prefix {
		var all []netip.Prefix
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for name, c := range map[string]struct{ from, without, want []netip.Prefix }{
		"nothing":        {parse("10.0.0.0/8"), nil, parse("10.0.0.0/8")},
		"elsewhere":      {parse("10.0.0.0/8"), parse("192.168.0.0/16", "::/0"), parse("10.0.0.0/8")},
		"all of it":      {parse("10.1.0.0/16"), parse("10.0.0.0/8"), nil},
		"the same":       {parse("10.0.0.0/8"), parse("10.0.0.0/8"), nil},
		"one half":       {parse("10.0.0.0/8"), parse("10.128.0.0/9"), parse("10.0.0.0/9")},
		"a hole":         {parse("10.0.0.0/30"), parse("10.0.0.2/32"), parse("10.0.0.0/31", "10.0.0.3/32")},
		"two holes":      {parse("10.0.0.0/30"), parse("10.0.0.2/32", "10.0.0.0/32"), parse("10.0.0.1/32", "10.0.0.3/32")},
		"the other kind": {parse("fd00::/126"), parse("fd00::1/128"), parse("fd00::/128", "fd00::2/127")},
		"unmasked":       {parse("10.0.0.1/31"), parse("10.0.0.1/32"), parse("10.0.0.0/32")},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, adapters.Subtract(c.from, c.without)) })
	}
}
