package kubernetes

import (
	"context"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

// addressed is a cluster whose pods can be connected to.
type addressed struct{ *Cluster }

// forwarded is a cluster that forwards connections to ports of its pods.
type forwarded struct{ *Cluster }

var (
	_ bootstrap.Addressed = addressed{}
	_ bootstrap.Addressed = forwarded{}
	_ bootstrap.Bare      = (*Cluster)(nil)
)

// Address is the way to envd over the network of the pods. It needs the API server only once.
func (a addressed) Address(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	pod, err := a.running(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	return endpoint(boxID, dialer(net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(envdPort)))), nil
}

func dialer(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
}

// Address is the way to envd through the API server.
func (f forwarded) Address(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	pod, err := f.running(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	return endpoint(boxID, func(ctx context.Context) (net.Conn, error) { return f.dialForward(ctx, pod.Name) }), nil
}

func endpoint(boxID string, dial func(context.Context) (net.Conn, error)) adapters.Endpoint {
	return adapters.Endpoint{URL: &url.URL{Scheme: "http", Host: boxID}, Dial: dial}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// running returns the pod of a box that runs, as the watch knows it, else as the API server does.
func (c *Cluster) running(ctx context.Context, boxID string) (*corev1.Pod, error) {
	_, pod := c.follow.of(boxID)
	if pod == nil {
		var err error
		if pod, err = c.find(ctx, boxID); err != nil {
			if adapters.KindOf(err) == adapters.KindNotFound && c.keeps() && c.isPaused(ctx, boxID) == nil {
				return nil, paused(boxID)
			}
			return nil, err
		}
	}
	switch {
	case marked(pod):
		return nil, paused(boxID)
	case over(pod):
		return nil, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended (%s)", boxID, why(pod))
	case pod.Status.PodIP == "":
		return nil, adapters.Errorf(adapters.KindUnavailable, "the sandbox %s is being started: try again", boxID)
	}
	return pod, nil
}

func paused(boxID string) error {
	return adapters.Errorf(adapters.KindPrecondition, "the sandbox %s is paused", boxID)
}
