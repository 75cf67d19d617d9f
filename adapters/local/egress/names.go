package egress

import (
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// How long an address stands for the name that it was the answer for: programs keep answers longer than they say.
// After that the name is looked at again, so nothing breaks.
const (
	leastLearned = 10 * time.Minute
	mostLearned  = 24 * time.Hour
	maxLearned   = 4096
)

// names are the allowed names that a box looked up, by the addresses that they have.
type names struct {
	mu      sync.Mutex
	learned map[netip.Addr]learned
}

type learned struct {
	name string
	ends time.Time
}

// of returns the name that an address was the answer for; empty: none, or too long ago.
func (n *names) of(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l, ok := n.learned[a]; ok && time.Now().Before(l.ends) {
		return l.name
	}
	return ""
}

// learn notes the addresses in an answer to a look-up of the name, and returns them.
func (n *names) learn(name string, answer []byte) []netip.Addr {
	found := addresses(answer)
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for _, one := range found {
		n.makeRoom(now)
		n.learned[one.addr] = learned{name: name, ends: now.Add(min(max(one.ttl, leastLearned), mostLearned))}
	}
	list := make([]netip.Addr, len(found))
	for i, one := range found {
		list[i] = one.addr
	}
	return list
}

// makeRoom drops what is too old, and if that is nothing, anything. The caller holds the lock.
func (n *names) makeRoom(now time.Time) {
	if len(n.learned) < maxLearned {
		return
	}
	var any netip.Addr
	for a, l := range n.learned {
		if any = a; now.After(l.ends) {
			delete(n.learned, a)
		}
	}
	if len(n.learned) >= maxLearned {
		delete(n.learned, any)
	}
}

// answered is one address of an answer.
type answered struct {
	addr netip.Addr
	ttl  time.Duration
}

// addresses are the A and AAAA records of an answer, at most as many as are learned.
func addresses(answer []byte) []answered {
	var p dnsmessage.Parser
	if _, err := p.Start(answer); err != nil || p.SkipAllQuestions() != nil {
		return nil
	}
	var found []answered
	for len(found) < maxLearned {
		h, err := p.AnswerHeader()
		if err != nil {
			return found
		}
		ttl := time.Duration(h.TTL) * time.Second
		switch h.Type {
		case dnsmessage.TypeA:
			r, err := p.AResource()
			if err != nil {
				return found
			}
			found = append(found, answered{netip.AddrFrom4(r.A), ttl})
		case dnsmessage.TypeAAAA:
			r, err := p.AAAAResource()
			if err != nil {
				return found
			}
			found = append(found, answered{netip.AddrFrom16(r.AAAA), ttl})
		default:
			if p.SkipAnswer() != nil {
				return found
			}
		}
	}
	return found
}

// asked is the one name that a query asks for, as names are compared; empty: it is not such a query.
func asked(query []byte) string {
	var p dnsmessage.Parser
	if h, err := p.Start(query); err != nil || h.Response || h.OpCode != 0 {
		return ""
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || questions[0].Class != dnsmessage.ClassINET {
		return ""
	}
	return plain(questions[0].Name.String())
}

// plain is a name as names are compared.
func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// hostName is the form of a host's name: labels of at most 63 characters, and a last one that is no number.
var hostName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidName reports whether an allow list may hold the name: one of a host, *. before one for all names below it, or *
// for any.
func ValidName(name string) bool {
	if name == "*" {
		return true
	}
	host := strings.TrimPrefix(plain(name), "*.")
	return len(host) <= 253 && hostName.MatchString(host)
}

// matches reports whether a name is one that a pattern of an allow list means.
func matches(pattern, name string) bool {
	pattern = plain(pattern)
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return len(name) > len(below) && strings.HasSuffix(name, below)
	}
	return name == pattern
}

// query asks for the addresses of a name in the family of an address.
func query(name string, like netip.Addr) []byte {
	typ := dnsmessage.TypeA
	if like.Is6() {
		typ = dnsmessage.TypeAAAA
	}
	q, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: uint16(time.Now().UnixNano()), RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: q, Type: typ, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}
