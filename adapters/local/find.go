//go:build linux

package local

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// Get returns one box.
func (l *Local) Get(_ context.Context, boxID string) (adapters.Box, error) {
	b, err := l.boxes.get(boxID)
	if err == nil {
		return b.describe(), nil
	}
	if left := l.boxes.removable(boxID); left != nil {
		return left.known, nil
	}
	return adapters.Box{}, err
}

// List returns the boxes of one deployment.
func (l *Local) List(_ context.Context, deployment string) ([]adapters.Box, error) {
	var list []adapters.Box
	for _, b := range l.boxes.all() {
		if b.as().record.Deployment == deployment {
			list = append(list, b.describe())
		}
	}
	for _, left := range l.boxes.remaining() {
		if of := left.known.Deployment; of == deployment || of == "" { // whose it was could not be read
			list = append(list, left.known)
		}
	}
	return list, nil
}

// Reach says how to connect to envd in a box: by the socket in its folder.
func (l *Local) Reach(_ context.Context, boxID string) (adapters.Endpoint, error) {
	b, err := l.boxes.get(boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	header := http.Header{}
	if b.as().transport != "" {
		header.Set(envd.HeaderTransport, b.as().transport)
	}
	return adapters.Endpoint{
		URL: &url.URL{Scheme: "http", Host: b.as().record.BoxID}, Header: header,
		Dial: func(ctx context.Context) (net.Conn, error) { return b.dial(ctx, socketService) },
	}, nil
}
