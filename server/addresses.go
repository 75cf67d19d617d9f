package server

import (
	"errors"
	"fmt"
	"net"

	"github.com/isthmus/isthmus/server/config"
)

// CanListen returns an error that names the address when one of the configured addresses cannot be listened on now.
// It is for before long work, such as building an image: New listens.
func CanListen(c config.Config) error {
	public, err := listenPublic(c)
	if err != nil {
		return err
	}
	operator, err := listenOperator(c)
	if operator != nil {
		err = operator.Close()
	}
	return errors.Join(err, public.Close())
}

func listenPublic(c config.Config) (net.Listener, error) {
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w: name another address with --listen", err)
	}
	return listener, nil
}

// listenOperator returns nil where the operator has no listener.
func listenOperator(c config.Config) (net.Listener, error) {
	if c.Operator.Listen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", c.Operator.Listen)
	if err != nil {
		return nil, fmt.Errorf("operator.listen: %w: name another address in the configuration", err)
	}
	return listener, nil
}
