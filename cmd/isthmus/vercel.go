package main

import (
	"maps"
	"slices"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/vercel"
	"github.com/isthmus/isthmus/server/config"
)

// openVercel opens the account of a pool at Vercel.
func (p *places) openVercel(pool config.Pool, token func() (string, error)) (adapters.Provider, error) {
	var templates []vercel.Template
	for _, name := range slices.Sorted(maps.Keys(pool.Templates)) {
		templates = append(templates, vercel.Template{Name: name, Image: pool.Templates[name]})
	}
	return vercel.New(vercel.Config{
		APIURL: pool.APIURL, PortsURL: pool.SandboxURL, Token: token, Team: pool.Vercel.Team, Project: pool.Vercel.Project,
		Plan: pool.Vercel.Plan, Region: pool.Vercel.Region, NoBake: pool.Vercel.NoBake, Templates: templates, Logger: p.log,
		Secrets: func(boxID string) (string, string) { return p.secrets.Transport(boxID), p.secrets.Control(boxID) },
	})
}

// vercelPrice is the vendor's published price. The share of time with a busy CPU stays what is configured.
func vercelPrice(configured config.Price) config.Price {
	if configured.Billing != "" {
		return configured
	}
	rates := vercel.PublishedRates()
	return config.Price{
		Billing: "active_cpu", CPUHour: rates.CPUHour, MemoryGiBHour: rates.MemoryGiBHour, PerCreate: rates.PerCreate,
		CPUActive: configured.CPUActive, Source: rates.Source, Date: rates.Date,
	}
}
