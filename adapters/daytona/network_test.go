package daytona

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestNetworks(t *testing.T) {
	all := []string{everything}
	for name, one := range map[string]struct {
		network adapters.Network
		want    settings
	}{
		"open":                           {adapters.Network{Internet: true}, settings{}},
		"closed":                         {adapters.Network{}, settings{BlockAll: true}},
		"all denied":                     {adapters.Network{Internet: true, DenyOut: all}, settings{BlockAll: true}},
		"what is allowed anyway":         {adapters.Network{Internet: true, AllowOut: []string{"192.0.2.1"}}, settings{}},
		"addresses":                      {adapters.Network{AllowOut: []string{"192.0.2.1", "198.51.100.7/24"}}, settings{Networks: "192.0.2.1/32,198.51.100.0/24"}},
		"names":                          {adapters.Network{Internet: true, DenyOut: all, AllowOut: []string{"a.example", "*.b.example"}}, settings{Domains: "a.example,*.b.example"}},
		"both":                           {adapters.Network{AllowOut: []string{"192.0.2.1", "a.example"}}, settings{Networks: "192.0.2.1/32", Domains: "a.example"}},
		"all denied and all allowed":     {adapters.Network{DenyOut: all, AllowOut: all}, settings{}},
		"both families of addresses off": {adapters.Network{Internet: true, DenyOut: []string{everything, "::/0"}}, settings{BlockAll: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := networkOf(one.network)
			require.NoError(t, err)
			require.Equal(t, one.want, got)
		})
	}
	for name, network := range map[string]adapters.Network{
		"one address denied": {Internet: true, DenyOut: []string{"192.0.2.1"}},
		"IPv6":               {AllowOut: []string{"2001:db8::1"}},
		"any name":           {AllowOut: []string{"*"}},
		"headers":            {Internet: true, Rules: []adapters.HeaderRule{{Host: "a.example"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := networkOf(network)
			require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
		})
	}
}
