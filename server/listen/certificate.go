package listen

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAgain is how often the certificate's files are looked at, at most.
const lookAgain = 10 * time.Second

// pair is a certificate and its key in two files. When the files change they are read again; while they cannot
// be read, for example in the middle of a change, the last good pair serves on.
type pair struct {
	certificate, key string
	log              *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // of the newer file, when loaded was read
	looked  time.Time
	failed  time.Time // the last change that could not be read, which is told once
}

func newPair(certificate, key string, log *slog.Logger) (*pair, error) {
	p := &pair{certificate: certificate, key: key, log: log, looked: time.Now()}
	changed, err := p.lastChange()
	if err != nil {
		return nil, err
	}
	return p, p.load(changed)
}

// get returns the certificate for a handshake.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.looked) >= lookAgain {
		p.looked = now
		if changed, err := p.lastChange(); err == nil && changed.After(p.changed) {
			p.renew(changed)
		}
	}
	return p.loaded, nil
}

// renew loads a changed pair; on failure the last good one serves.
func (p *pair) renew(changed time.Time) {
	err := p.load(changed)
	if err == nil || changed.Equal(p.failed) {
		return
	}
	p.failed = changed
	p.log.Warn("the changed TLS certificate cannot be used: the last good one serves on", "cert", p.certificate, "key", p.key, "err", err)
}

func (p *pair) load(changed time.Time) error {
	loaded, err := tls.LoadX509KeyPair(p.certificate, p.key)
	if err != nil {
		return err
	}
	p.loaded, p.changed = &loaded, changed
	return nil
}

func (p *pair) lastChange() (time.Time, error) {
	var last time.Time
	for _, name := range []string{p.certificate, p.key} {
		info, err := os.Stat(name)
		if err != nil {
			return time.Time{}, err
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}
