package modal

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	// maxMessage bounds one message in bytes, window is how much may be under way, both as Modal's SDKs have them.
	maxMessage = 100 << 20
	window     = 64 << 20
	// idleTime is after how long without a call a connection is given up; the next call makes another one.
	idleTime = time.Minute
)

// dial prepares a connection to a server. It does no I/O.
func dial(address string) (*grpc.ClientConn, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" {
		return nil, errors.New("the URL of a modal pool must be like https://api.modal.com, without a user or a path")
	}
	var secure credentials.TransportCredentials
	port := "443"
	switch u.Scheme {
	case "https":
		secure = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	case "http":
		secure, port = insecure.NewCredentials(), "80"
	default:
		return nil, errors.New("the URL of a modal pool must begin with https://")
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return grpc.NewClient(net.JoinHostPort(u.Hostname(), port),
		grpc.WithTransportCredentials(secure), grpc.WithIdleTimeout(idleTime),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window), grpc.WithStatsHandler(sentHandler{}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	)
}
