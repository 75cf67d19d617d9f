package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

const (
	tableName = "egress"
	chainName = "lead"
	// answerTime bounds the wait for the kernel's acknowledgement of the rules.
	answerTime = 5 * time.Second
)

// install writes the rules through the box's netfilter socket, replacing what an earlier facade wrote: what
// is for the box itself passes, other TCP and UDP goes to the transparent sockets, the rest is dropped.
func install(socket *os.File, v6 bool) error {
	b := &batch{seq: uint32(time.Now().UnixNano()) | 1}
	b.add(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)
	b.table(unix.NFPROTO_IPV4, netip.MustParsePrefix("127.0.0.0/8"), inside.Self, inside.Resolver)
	if v6 {
		b.table(unix.NFPROTO_IPV6, netip.MustParsePrefix("::1/128"), inside.Self6)
	}
	b.add(unix.NFNL_MSG_BATCH_END, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)
	if b.err != nil {
		return b.err
	}
	return b.send(socket)
}

// batch is one nf_tables transaction.
type batch struct {
	bytes       []byte
	count, want int
	seq         uint32
	err         error
}

// table adds one family's table: created so that it can be deleted, deleted, created anew.
func (b *batch) table(family byte, loopback netip.Prefix, own ...netip.Addr) {
	name := netlink.Attribute{Type: unix.NFTA_TABLE_NAME, Data: text(tableName)}
	b.change(unix.NFT_MSG_NEWTABLE, family, name)
	b.change(unix.NFT_MSG_DELTABLE, family, name)
	b.change(unix.NFT_MSG_NEWTABLE, family, name)
	b.chain(family)
	b.rule(family, append(toPrefix(loopback), accept())...)
	for _, a := range own {
		b.rule(family, append(toPrefix(netip.PrefixFrom(a, a.BitLen())), accept())...)
	}
	for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		b.rule(family, toProxy(family, protocol)...)
	}
	b.rule(family, &expr.Verdict{Kind: expr.VerdictDrop})
}

func (b *batch) chain(family byte) {
	priority := int32(-150) // mangle: before the routing decision
	b.change(unix.NFT_MSG_NEWCHAIN, family,
		netlink.Attribute{Type: unix.NFTA_CHAIN_TABLE, Data: text(tableName)},
		netlink.Attribute{Type: unix.NFTA_CHAIN_NAME, Data: text(chainName)},
		netlink.Attribute{Type: unix.NFTA_CHAIN_TYPE, Data: text("filter")},
		b.nested(unix.NFTA_CHAIN_HOOK,
			netlink.Attribute{Type: unix.NFTA_HOOK_HOOKNUM, Data: binary.BigEndian.AppendUint32(nil, unix.NF_INET_PRE_ROUTING)},
			netlink.Attribute{Type: unix.NFTA_HOOK_PRIORITY, Data: binary.BigEndian.AppendUint32(nil, uint32(priority))}))
}

func (b *batch) rule(family byte, expressions ...expr.Any) {
	var list []netlink.Attribute
	for _, e := range expressions {
		data, err := expr.Marshal(family, e)
		b.err = errors.Join(b.err, err)
		list = append(list, netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_LIST_ELEM, Data: data})
	}
	b.change(unix.NFT_MSG_NEWRULE, family,
		netlink.Attribute{Type: unix.NFTA_RULE_TABLE, Data: text(tableName)},
		netlink.Attribute{Type: unix.NFTA_RULE_CHAIN, Data: text(chainName)},
		b.nested(unix.NFTA_RULE_EXPRESSIONS, list...))
}

func (b *batch) nested(typ uint16, attrs ...netlink.Attribute) netlink.Attribute {
	data, err := netlink.MarshalAttributes(attrs)
	b.err = errors.Join(b.err, err)
	return netlink.Attribute{Type: unix.NLA_F_NESTED | typ, Data: data}
}

// change adds one acknowledged message of nf_tables.
func (b *batch) change(typ uint16, family byte, attrs ...netlink.Attribute) {
	data, err := netlink.MarshalAttributes(attrs)
	b.err = errors.Join(b.err, err)
	flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_APPEND | unix.NLM_F_ACK)
	if typ == unix.NFT_MSG_DELTABLE {
		flags = unix.NLM_F_ACK
	}
	b.add(unix.NFNL_SUBSYS_NFTABLES<<8|typ, flags, family, 0, data)
	b.want++
}

func (b *batch) add(typ, flags uint16, family byte, resource uint16, attrs []byte) {
	body := append([]byte{family, unix.NFNETLINK_V0, byte(resource >> 8), byte(resource)}, attrs...)
	b.bytes = append(b.bytes, message(typ, flags|unix.NLM_F_REQUEST, b.seq, body)...)
	b.seq++
	b.count++
}

// send sends the transaction and waits until every change is acknowledged. Answers to an earlier facade's
// transaction have other numbers and are passed over.
func (b *batch) send(socket *os.File) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	if err := raw.Control(func(fd uintptr) { failure = b.exchange(int(fd)) }); err != nil {
		return err
	}
	return failure
}

func (b *batch) exchange(fd int) error {
	limit := unix.NsecToTimeval(int64(answerTime))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return err
	}
	if err := unix.Sendto(fd, b.bytes, unix.MSG_NOSIGNAL, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 64<<10)
	for deadline := time.Now().Add(answerTime); b.want > 0; {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("waiting for the kernel's answer: %w", err)
		case time.Now().After(deadline):
			return os.ErrDeadlineExceeded
		}
		if err := b.acknowledge(answer[:n]); err != nil {
			return err
		}
	}
	return nil
}

// acknowledge counts the acknowledgements in one datagram; an error among them is returned.
func (b *batch) acknowledge(p []byte) error {
	start := b.seq - uint32(b.count)
	for len(p) >= unix.NLMSG_HDRLEN+4 {
		length := (int(binary.NativeEndian.Uint32(p)) + 3) &^ 3
		if length < unix.NLMSG_HDRLEN+4 || length > len(p) {
			return unix.EBADMSG
		}
		seq := binary.NativeEndian.Uint32(p[8:])
		if binary.NativeEndian.Uint16(p[4:]) == unix.NLMSG_ERROR && seq-start < uint32(b.count) {
			if e := int32(binary.NativeEndian.Uint32(p[unix.NLMSG_HDRLEN:])); e != 0 {
				return fmt.Errorf("nf_tables (are nf_tables and nft_tproxy in the kernel?): %w", unix.Errno(-e))
			}
			b.want--
		}
		p = p[length:]
	}
	return nil
}

// toPrefix matches packets to an address of the prefix; its length is a whole number of bytes.
func toPrefix(p netip.Prefix) []expr.Any {
	offset := uint32(16) // destination address in the IPv4 header
	if p.Addr().Is6() {
		offset = 24
	}
	size := p.Bits() / 8
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Addr().AsSlice()[:size]},
	}
}

// toProxy leads packets of the protocol to the transparent socket.
func toProxy(family, protocol byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
		&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, inside.Port)},
		&expr.TProxy{Family: family, TableFamily: family, RegPort: 1},
		accept(), // the choice of a socket is not a verdict
	}
}

func accept() expr.Any { return &expr.Verdict{Kind: expr.VerdictAccept} }

func text(s string) []byte { return append([]byte(s), 0) }
