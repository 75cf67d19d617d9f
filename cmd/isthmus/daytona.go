package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/bootstrap/agent"
	"github.com/isthmus/isthmus/adapters/daytona"
	"github.com/isthmus/isthmus/server/config"
)

// imageTemplate begins the name of an image where a template would name a snapshot.
const imageTemplate = "image:"

// daytonaArch is the architecture of Daytona's machines.
const daytonaArch = "amd64"

// openDaytona opens the account of a pool at Daytona.
func (p *places) openDaytona(pool config.Pool, key func() (string, error)) (adapters.Provider, error) {
	var templates []daytona.Template
	for _, name := range slices.Sorted(maps.Keys(pool.Templates)) {
		one := daytona.Template{Name: name, Snapshot: pool.Templates[name]}
		if image, is := strings.CutPrefix(one.Snapshot, imageTemplate); is {
			one.Snapshot, one.Image = "", image
		}
		templates = append(templates, one)
	}
	class := daytona.ClassContainer
	if pool.Isolation == "vm" {
		class = daytona.ClassVM
	}
	envd := func() (io.ReadCloser, error) { return agent.Open(agent.Envd, daytonaArch) }
	settings := daytona.Config{
		APIURL: pool.APIURL, Key: key, Target: pool.Daytona.Target, Class: class, Templates: templates, Max: pool.Max.Resources(), Envd: envd, Logger: p.log,
	}
	if pool.Daytona.NoBake {
		settings.Envd = nil
	}
	place, err := daytona.New(settings)
	if err != nil {
		return nil, err
	}
	return bootstrap.New(place, bootstrap.Config{
		Secrets: func(boxID string) (string, string) { return p.secrets.Transport(boxID), p.secrets.Control(boxID) },
		Envd:    envd, Arch: daytonaArch, Logger: p.log,
	}), nil
}

// daytonaPrice is the vendor's published price.
func daytonaPrice(configured config.Price) config.Price {
	if configured.Billing != "" {
		return configured
	}
	rates := daytona.PublishedRates()
	return config.Price{
		Billing: "provisioned", CPUHour: rates.CPUHour, MemoryGiBHour: rates.MemoryGiBHour, DiskGiBHour: rates.DiskGiBHour,
		DiskFreeGiB: rates.DiskFreeGiB, Source: rates.Source, Date: rates.Date,
	}
}
