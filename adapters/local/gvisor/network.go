//go:build linux

package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/egress"
	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

// The pair of interfaces in the box's network namespace: gVisor takes over the one that has an address, and what it
// sends arrives at the other.
const (
	linkBox    = "box"
	linkFacade = "facade"
)

// The addresses of the box and of its way out. They exist in every box and mean nothing outside it.
func addressBox() *net.IPNet {
	return &net.IPNet{IP: net.IPv4(10, 0, 2, 15), Mask: net.CIDRMask(24, 32)}
}
func addressGateway() net.IP    { return net.IPv4(10, 0, 2, 2) }
func justTheBox() *net.IPNet    { return &net.IPNet{IP: addressBox().IP, Mask: net.CIDRMask(32, 32)} }
func (n *network) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// network is an open network namespace of a box.
type network struct{ file *os.File }

// newNetwork makes the namespace of a box, with the interfaces as gVisor wants to find them. It lives as long as a
// descriptor of it is open or a process is in it.
func newNetwork() (*network, error) {
	var n *network
	var err error
	local.OnThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		if err = furnish(); err != nil {
			return
		}
		var file *os.File
		if file, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())); err == nil {
			n = &network{file: file}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("the box's network: %w", err)
	}
	return n, nil
}

// furnish makes the interfaces. For all but lo IPv6 is switched off: by it each would have an address of its own, and
// gVisor takes every interface that has one.
func furnish() error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: linkFacade}, PeerName: linkBox}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	for _, name := range []string{"lo", linkFacade, linkBox} {
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			return fmt.Errorf("bring %s up: %w", name, err)
		}
	}
	box, err := netlink.LinkByName(linkBox)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(box, &netlink.Addr{IPNet: addressBox()}); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: box.Attrs().Index, Gw: addressGateway()})
}

// within calls fn on a thread that is in the network of a running box, and ends with it.
func within(pid int, fn func() error) error {
	var err error
	local.OnThread(func() {
		var ns *os.File
		if ns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
			return
		}
		err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		if err = errors.Join(err, ns.Close()); err == nil {
			err = fn()
		}
	})
	return err
}

// carry serves the box's traffic until ctx ends. gVisor has its interface by then: what is added to the namespace
// now is ours. ready is told once, when what the box sends is led to the sockets, or why it is not.
func (p *place) carry(ctx context.Context, pid int, ready chan<- error) error {
	return within(pid, func() error {
		sockets, err := inside.Open(inside.Options{})
		if err != nil {
			ready <- err
			return err
		}
		defer sockets.Close()
		e, err := p.openEgress(sockets)
		ready <- err
		if err != nil {
			return err
		}
		served := make(chan error, 1)
		go func() {
			err := e.Serve(ctx)
			sockets.Close() // ends Respond
			served <- err
		}()
		_ = sockets.Respond() // on this thread: what it makes is in the box's network
		return <-served
	})
}

// openEgress leads the box's traffic to the sockets.
func (p *place) openEgress(sockets *inside.Sockets) (*egress.Egress, error) {
	facade, err := netlink.LinkByName(linkFacade)
	if err != nil {
		return nil, err
	}
	// What is for the box goes to its interface, though every other address is local here.
	route := &netlink.Route{LinkIndex: facade.Attrs().Index, Dst: justTheBox(), Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteReplace(route); err != nil {
		return nil, fmt.Errorf("the way back to the box: %w", err)
	}
	var files []*os.File
	for _, fd := range sockets.Descriptors() {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, err
		}
		files = append(files, os.NewFile(uintptr(own), "traffic"))
	}
	return egress.Open(files, egress.Policy{Internet: true, AllowPrivate: p.config.AllowPrivate, Resolvers: p.config.Resolvers}, p.flows)
}
