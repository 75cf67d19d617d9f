package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/modal"
)

// simulateModal makes a cloud that speaks Modal's protocol. Its tunnels are certified by an authority of its own, which
// lies in a file while the cloud runs.
func simulateModal(s simulation) (simulator, error) {
	if s.plan != "" {
		return simulator{}, errors.New("the simulated Modal has no plans")
	}
	id, secret, ok := strings.Cut(s.token, ":")
	if !ok {
		id, secret = "ak-"+s.token, "as-"+s.token
	}
	server, err := modal.New(modal.Config{Cloud: s.cloud, TokenID: id, TokenSecret: secret}, s.url)
	if err != nil {
		return simulator{}, err
	}
	folder, err := os.MkdirTemp("", "isthmus-modal-")
	if err != nil {
		return simulator{}, errors.Join(err, server.Close())
	}
	file := filepath.Join(folder, "authority.pem")
	if err := os.WriteFile(file, server.Certificate(), 0o644); err != nil {
		return simulator{}, errors.Join(err, server.Close(), os.RemoveAll(folder))
	}
	pool := fmt.Sprintf(`# MODAL_TOKEN=%s:%s
pools:
- name: modal
  provider: modal
  api_url: %s
  modal: {authority: %s}
  credential: {env: MODAL_TOKEN}
  templates: {base: ""}
`, id, secret, s.url, file)
	return simulator{serve: server.Serve, pool: pool, close: func() error { return errors.Join(server.Close(), os.RemoveAll(folder)) }}, nil
}
