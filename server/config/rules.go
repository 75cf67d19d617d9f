package config

import (
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// Rules are what creates are held against beside the pools. The configuration must have been checked.
func (c Config) Rules() *translate.Rules {
	classes, _ := c.classes()
	return &translate.Rules{
		Classes:   classes,
		Keys:      stated(placement.Policy, c.Require.Keys, classes),
		Templates: stated(placement.Template, c.Require.Templates, classes),
	}
}

func stated(from placement.Source, pairs map[string]map[string]string, classes placement.Classes) map[string]placement.Requirements {
	read := map[string]placement.Requirements{}
	for name := range pairs {
		if r, err := placement.FromPairs(from, pairs[name], classes); err == nil { // was checked
			read[name] = r
		}
	}
	return read
}
