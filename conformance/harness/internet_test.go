package harness

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/miekg/dns"
)

// The names of the internet's servers.
const (
	internetName = "internet.test"
	packagesName = "packages.test"
	// exampleName is a name that everybody knows, with a port that is open and says nothing of its own.
	exampleName = "example.com"
	greeting    = "hello from the internet\n"
)

// serveInternet is the internet: one web server, which is the package server too, and one name server.
func serveInternet() int {
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		fmt.Fprintln(os.Stderr, "internet: not told to begin:", err)
		return 1
	}
	web, err := net.Listen("tcp", internetAddress+":80")
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		return 1
	}
	datagrams, err := net.ListenPacket("udp", internetAddress+":53")
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		return 1
	}
	streams, err := net.Listen("tcp", internetAddress+":53")
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		return 1
	}
	pages, err := packagePages()
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		return 1
	}
	example, err := net.Listen("tcp", internetAddress+":443")
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		return 1
	}
	ended := make(chan error, 4)
	go func() { ended <- http.Serve(web, pages) }()
	go func() { ended <- http.Serve(example, pages) }()
	go func() {
		ended <- (&dns.Server{PacketConn: datagrams, Handler: dns.HandlerFunc(answerName)}).ActivateAndServe()
	}()
	go func() {
		ended <- (&dns.Server{Listener: streams, Handler: dns.HandlerFunc(answerName)}).ActivateAndServe()
	}()
	fmt.Println("ready")
	fmt.Fprintln(os.Stderr, "internet:", <-ended)
	return 1
}

// answerName resolves the names of the world; all others do not exist.
func answerName(w dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg)
	answer.SetReply(question)
	answer.Authoritative = true
	for _, q := range question.Question {
		address, known := addressOf(strings.ToLower(strings.TrimSuffix(q.Name, ".")))
		if !known {
			answer.Rcode = dns.RcodeNameError
			continue
		}
		if q.Qtype == dns.TypeA {
			header := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
			answer.Answer = append(answer.Answer, &dns.A{Hdr: header, A: net.ParseIP(address)})
		}
	}
	_ = w.WriteMsg(answer)
}

// addressOf is the zone of the world: the internet's servers, and every name below the facade's domains.
func addressOf(name string) (address string, known bool) {
	switch {
	case name == internetName, name == packagesName, name == exampleName:
		return internetAddress, true
	case name == domain, strings.HasSuffix(name, "."+domain), strings.HasSuffix(name, ".localhost"):
		return "127.0.0.1", true
	}
	return "", false
}

// packagePages is a web page, and one package in the form of each of the two package managers.
func packagePages() (http.Handler, error) {
	wheel, err := pythonPackage()
	if err != nil {
		return nil, err
	}
	tarball, err := nodePackage()
	if err != nil {
		return nil, err
	}
	const wheelName, tarballPath = "isthmus_sample-1.0-py3-none-any.whl", "/npm/isthmus-sample/-/isthmus-sample-1.0.0.tgz"
	sum := sha512.Sum512(tarball)
	manifest, err := json.Marshal(map[string]any{
		"name":      "isthmus-sample",
		"dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": map[string]any{
			"name": "isthmus-sample", "version": "1.0.0", "main": "index.js",
			"dist": map[string]string{
				"tarball":   "http://" + packagesName + tarballPath,
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
			},
		}},
	})
	if err != nil {
		return nil, err
	}
	page := func(contentType string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(body)
		}
	}
	pages := http.NewServeMux()
	pages.Handle("GET /simple/isthmus-sample/", page("text/html", []byte(`<!DOCTYPE html><a href="/wheels/`+wheelName+`">`+wheelName+`</a>`)))
	pages.Handle("GET /wheels/"+wheelName, page("application/zip", wheel))
	pages.Handle("GET /npm/isthmus-sample", page("application/json", manifest))
	pages.Handle("GET "+tarballPath, page("application/octet-stream", tarball))
	pages.HandleFunc("GET /header", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Conformance"))
	})
	pages.Handle("GET /{$}", page("text/plain", []byte(greeting)))
	return pages, nil
}

// pythonPackage is a wheel with one module.
func pythonPackage() ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	const info = "isthmus_sample-1.0.dist-info/"
	for _, file := range [][2]string{
		{"isthmus_sample.py", "GREETING = 'hello from a package'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: isthmus-sample\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: harness\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "isthmus_sample.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := archive.Create(file[0])
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, file[1]); err != nil {
			return nil, err
		}
	}
	// The directory at the end of the archive is written by Close.
	err := archive.Close()
	return out.Bytes(), err
}

// nodePackage is a tarball with one module.
func nodePackage() ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	for _, file := range [][2]string{
		{"package/package.json", `{"name":"isthmus-sample","version":"1.0.0","main":"index.js"}`},
		{"package/index.js", "module.exports = 'hello from a package'\n"},
	} {
		header := &tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1]))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(archive, file[1]); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), packed.Close())
	return out.Bytes(), err
}
