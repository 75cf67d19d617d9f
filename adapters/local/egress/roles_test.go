package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, os.Getenv(role)+":", err)
		os.Exit(1)
	}
}

// internet serves TCP on port 80, UDP on port 9000 and names on port 53, until its standard input ends.
func internet() {
	stdin := bufio.NewReader(os.Stdin)
	_, err := stdin.ReadString('\n')
	must(err)
	for _, args := range []string{
		"link set lo up", "link set inet0 up", "addr add " + internet4 + "/24 dev inet0",
		"addr add " + internet6 + "/64 dev inet0 nodad", "addr add " + private4 + "/24 dev inet0",
	} {
		must(exec.Command("ip", strings.Fields(args)...).Run())
	}
	l, err := net.Listen("tcp", ":80")
	must(err)
	go func() {
		for {
			c, err := l.Accept()
			must(err)
			go serveOne(c.(*net.TCPConn))
		}
	}()
	secure, err := net.Listen("tcp", ":443")
	must(err)
	go func() {
		for {
			c, err := secure.Accept()
			must(err)
			if _, err := io.ReadFull(c, make([]byte, 5)); err == nil {
				_, _ = io.WriteString(c, "taken") // whoever hears this got through
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	u, err := net.ListenPacket("udp", ":9000")
	must(err)
	go func() {
		b := make([]byte, maxDatagram)
		for {
			n, from, err := u.ReadFrom(b)
			must(err)
			_, _ = u.WriteTo(append([]byte(from.(*net.UDPAddr).IP.String()+" "), b[:n]...), from)
		}
	}()
	nameServer(internet4+":53", "udp", "tcp")
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(0)
}

// nameServer answers test.example, and big.example with more than fits into a datagram.
func nameServer(at string, networks ...string) {
	mux := dns.NewServeMux()
	mux.HandleFunc("test.example.", func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(internet4)}}
		}
		_ = w.WriteMsg(m)
	})
	for name, address := range map[string]string{"one.allowed.example.": internet4, "rebound.allowed.example.": private4, "host.allowed.example.": hostOther4} {
		mux.HandleFunc(name, func(w dns.ResponseWriter, q *dns.Msg) {
			m := new(dns.Msg).SetReply(q)
			if q.Question[0].Qtype == dns.TypeA {
				m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(address)}}
			}
			_ = w.WriteMsg(m)
		})
	}
	mux.HandleFunc("big.example.", func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		for i := range 200 {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: "big.example.", Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(203, 0, 113, byte(i))})
		}
		if w.LocalAddr().Network() == "udp" {
			m.Truncate(dns.MinMsgSize)
		}
		_ = w.WriteMsg(m)
	})
	for _, network := range networks {
		started := make(chan struct{})
		s := &dns.Server{Addr: at, Net: network, Handler: mux, NotifyStartedFunc: func() { close(started) }}
		go func() { must(s.ListenAndServe()) }()
		<-started
	}
}

// serveOne does what the first line says.
func serveOne(c *net.TCPConn) {
	defer c.Close()
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		return
	}
	switch word, n, _ := strings.Cut(strings.TrimSpace(line), " "); word {
	case "GET", "HEAD":
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nserved")
	case "greet": // what a server says before its client, later
		_, _ = io.WriteString(c, "greetings")
	case "echo":
		_, _ = io.Copy(c, r)
	case "down":
		count, _ := strconv.Atoi(n)
		_, _ = io.CopyN(c, zeros{}, int64(count))
	case "up":
		count, _ := io.Copy(io.Discard, r)
		_, _ = fmt.Fprint(c, count)
	case "break":
		reset(c)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// box makes its sockets, passes them to whoever asks on descriptor 3, and obeys.
func box() {
	s, err := inside.Open(inside.Options{IPv6: true})
	must(err)
	go func() { must(s.Respond()) }()
	go func() {
		b := make([]byte, 1)
		for {
			n, err := unix.Read(3, b)
			if n == 0 || err != nil {
				return
			}
			must(unix.Sendmsg(3, b, unix.UnixRights(s.Descriptors()...), nil, 0))
		}
	}()
	obey()
}

// obey carries out orders until the standard input ends.
func obey() {
	orders, results := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			os.Exit(0)
		} else {
			must(err)
		}
		r, err := carryOut(o)
		if err != nil {
			r.Err = err.Error()
		}
		must(results.Encode(r))
	}
}

func carryOut(o order) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	switch o.Do {
	case "lookup":
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(inside.Resolver.String(), "53"))
		}}
		a, err := r.LookupHost(ctx, o.To)
		return result{Text: strings.Join(a, " "), Count: len(a)}, err
	case "udp":
		return sendDatagrams(ctx, o)
	case "lookup-tcp":
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(inside.Resolver.String(), "53"))
		}}
		a, err := r.LookupHost(ctx, o.To)
		return result{Text: strings.Join(a, " "), Count: len(a)}, err
	case "hello":
		return sayHello(ctx, o)
	case "open":
		return holdOpen(ctx, o)
	}
	d := net.Dialer{}
	conn, err := d.DialContext(ctx, "tcp", o.To)
	if err != nil {
		return result{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := conn.(*net.TCPConn)
	if o.Do == "up" {
		if _, err := io.WriteString(c, "up\n"); err != nil {
			return result{}, err
		}
		if _, err := io.CopyN(c, zeros{}, int64(o.Count)); err != nil {
			return result{}, err
		}
	} else if _, err := io.WriteString(c, o.Text); err != nil {
		return result{}, err
	}
	if err := c.CloseWrite(); err != nil {
		return result{}, err
	}
	if o.Do == "down" {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 256<<10))
		return result{Count: int(n)}, err
	}
	b, err := io.ReadAll(c)
	return result{Text: string(b), Count: len(b)}, err
}

// sendDatagrams sends Count datagrams from one socket and counts the answers.
func sendDatagrams(ctx context.Context, o order) (result, error) {
	c, err := new(net.Dialer).DialContext(ctx, "udp", o.To)
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	b := make([]byte, maxDatagram)
	var r result
	for range max(o.Count, 1) {
		if _, err := io.WriteString(c, o.Text); err != nil {
			return r, err
		}
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
		n, err := c.Read(b)
		if err != nil {
			return r, err
		}
		r.Text, r.Count = string(b[:n]), r.Count+1
	}
	return r, nil
}

// sayHello begins TLS with the name Text and returns what came instead of an answer.
func sayHello(ctx context.Context, o order) (result, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", o.To)
	if err != nil {
		return result{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_ = tls.Client(halfDeaf{conn}, &tls.Config{ServerName: o.Text, InsecureSkipVerify: true}).HandshakeContext(ctx)
	b, err := io.ReadAll(conn)
	return result{Text: string(b)}, err
}

// halfDeaf hears nothing, so that what is said to it stays to be read.
type halfDeaf struct{ net.Conn }

func (halfDeaf) Read([]byte) (int, error) { return 0, io.EOF }

// holdOpen connects, has a word echoed, and waits for the end of the connection.
func holdOpen(ctx context.Context, o order) (result, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", o.To)
	if err != nil {
		return result{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, "echo\nx"); err != nil {
		return result{}, err
	}
	b, err := io.ReadAll(conn)
	return result{Text: string(b)}, err
}
