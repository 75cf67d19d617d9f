// Package filesystem serves the nine calls of filesystem.Filesystem over the file tree that the daemon sees.
//
// The daemon works as root, as upstream's does: the user of a request only decides what its relative paths mean
// and who owns what is made. Refused is what leads into the daemon's own process; see package tree.
package filesystem

import (
	"context"
	"errors"
	"sync"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/filesystem/watch"
	"github.com/isthmus/isthmus/envd/daemon/identity"
	pb "github.com/isthmus/isthmus/envd/filesystem"
	"github.com/isthmus/isthmus/envd/filesystem/filesystemconnect"
)

// Service implements filesystemconnect.FilesystemHandler.
type Service struct {
	users  *identity.Resolver
	tree   *tree.Tree
	engine *watch.Engine

	mu     sync.Mutex
	polled map[string]*watched
}

var _ filesystemconnect.FilesystemHandler = (*Service)(nil)

// New returns the service. The caller closes it.
func New(users *identity.Resolver, tree *tree.Tree) *Service {
	return &Service{users: users, tree: tree, engine: watch.New(), polled: map[string]*watched{}}
}

// Close ends all watchers and the streams on them, and returns when their reader has ended.
func (s *Service) Close() { s.engine.Close() }

// expand makes a request's path absolute for the user of the request. The error is a Connect error.
func (s *Service) expand(ctx context.Context, path string) (string, identity.User, error) {
	user, err := identity.From(ctx)
	if err != nil {
		return "", user, err
	}
	absolute, err := user.Expand(path, s.users.Workdir())
	if err != nil {
		return "", user, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return absolute, user, nil
}

func owner(user identity.User) tree.Owner { return tree.Owner{UID: user.UID, GID: user.GID} }

// fault gives an error the code of its kind where that is the same for every call: a refused path is the
// client's mistake, an ended request is what its context says, anything else is internal.
func fault(err error) error {
	code := connect.CodeInternal
	switch {
	case errors.Is(err, tree.ErrRefused):
		code = connect.CodeInvalidArgument
	case errors.Is(err, context.DeadlineExceeded):
		code = connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = connect.CodeCanceled
	}
	return connect.NewError(code, err)
}

// entry describes what a call has made.
func (s *Service) entry(path string) (*pb.EntryInfo, error) {
	entry, err := s.tree.Stat(path)
	if err != nil {
		return nil, fault(err)
	}
	return entry, nil
}
