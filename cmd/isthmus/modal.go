package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/bootstrap/agent"
	"github.com/isthmus/isthmus/adapters/modal"
	"github.com/isthmus/isthmus/server/config"
)

// modalArch is what Modal's sandboxes run on.
const modalArch = "amd64"

// openModal opens the account of a pool at Modal.
func (p *places) openModal(pool config.Pool, key func() (string, error)) (*bootstrap.Provider, func() error, error) {
	trust, err := authority(pool.Modal.Authority)
	if err != nil {
		return nil, nil, err
	}
	envd := func() (io.ReadCloser, error) { return agent.Open(agent.Envd, modalArch) }
	c := modal.Config{
		URL: pool.APIURL, Key: key, App: pool.Modal.App, Environment: pool.Modal.Environment, Regions: pool.Modal.Regions,
		MaxLife: pool.MaxLife, Max: pool.Max.Resources(), TLS: trust, Envd: envd, Logger: p.log,
	}
	if len(pool.Modal.GPUs) > 0 {
		c.GPUs = pool.Modal.GPUs
	}
	if pool.Modal.NoBake {
		c.Envd = nil
	}
	for _, name := range slices.Sorted(maps.Keys(pool.Templates)) {
		c.Templates = append(c.Templates, modal.Template{Name: name, Image: pool.Templates[name]})
	}
	opened, err := modal.New(c)
	if err != nil {
		return nil, nil, err
	}
	return bootstrap.New(opened, bootstrap.Config{
		Secrets: func(boxID string) (string, string) { return p.secrets.Transport(boxID), p.secrets.Control(boxID) },
		Envd:    envd, Arch: modalArch, End: modal.EndPipe, Logger: p.log,
	}), opened.Close, nil
}

// authority is who is trusted for tunnels; nil: as this machine trusts.
func authority(path string) (*tls.Config, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("modal.authority: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, errors.New("modal.authority: the file has no certificate in PEM")
	}
	return &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, nil
}

// modalPrice is the vendor's published price.
func modalPrice(configured config.Price) config.Price {
	if configured.Billing != "" {
		return configured
	}
	rates := modal.PublishedRates()
	return config.Price{
		Billing: "provisioned", CPUHour: rates.CPUHour, MemoryGiBHour: rates.MemoryGiBHour, GPUHour: rates.GPUHour,
		CPUActive: configured.CPUActive, Source: rates.Source, Date: rates.Date,
	}
}
