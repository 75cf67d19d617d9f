package filesystem

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/filesystem/watch"
	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// watched is a watcher with what its client asked for.
type watched struct {
	*watch.Watcher
	service *Service
	// path is the folder as the client named it, made absolute; entries' paths begin with it.
	path         string
	includeEntry bool
}

// watchRequest is what both ways to watch have in common.
type watchRequest interface {
	GetPath() string
	GetRecursive() bool
	GetIncludeEntry() bool
	GetAllowNetworkMounts() bool
}

// watch begins to watch. The caller closes what it gets. The error is a Connect error.
func (s *Service) watch(ctx context.Context, req watchRequest) (*watched, error) {
	path, _, err := s.expand(ctx, req.GetPath())
	if err != nil {
		return nil, err
	}
	root, err := s.watchable(path, req.GetAllowNetworkMounts())
	if err != nil {
		return nil, err
	}
	watcher, err := s.engine.Watch(ctx, root, req.GetRecursive())
	if err != nil {
		return nil, fault(fmt.Errorf("error watching path %s: %w", path, err))
	}
	return &watched{Watcher: watcher, service: s, path: path, includeEntry: req.GetIncludeEntry()}, nil
}

// watchable checks that a path is a folder whose changes the kernel tells of, and resolves it.
func (s *Service) watchable(path string, allowNetwork bool) (string, error) {
	root, err := s.tree.Resolve(path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "", connect.NewError(connect.CodeNotFound, fmt.Errorf("path %s not found: %w", path, err))
	}
	if err != nil {
		return "", fault(fmt.Errorf("error getting path %s: %w", path, err))
	}
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return "", connect.NewError(connect.CodeNotFound, fmt.Errorf("path %s not found: %w", path, err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path %s is not a directory", path))
	}
	if !allowNetwork && onNetwork(root) {
		return "", connect.NewError(connect.CodeInvalidArgument,
			fmt.Errorf("cannot watch path on network filesystem: %s", path))
	}
	return root, nil
}

// onNetwork reports whether changes may be made elsewhere, of which this kernel would not tell.
func onNetwork(path string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC:
		return true
	}
	return false
}

// take returns the events since the last call. The error is a Connect error.
func (w *watched) take() ([]*pb.FilesystemEvent, error) {
	events, err := w.Take()
	if errors.Is(err, watch.ErrClosed) {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("watcher error: %w", err))
	}
	messages := make([]*pb.FilesystemEvent, len(events))
	for i, event := range events {
		messages[i] = &pb.FilesystemEvent{Name: tree.Text(event.Name), Type: event.Type, Entry: w.entry(event)}
	}
	return messages, nil
}

// entry describes what an event is about, if the client wants that and there still is something to describe.
func (w *watched) entry(event watch.Event) *pb.EntryInfo {
	switch event.Type {
	case pb.EventType_EVENT_TYPE_CREATE, pb.EventType_EVENT_TYPE_WRITE, pb.EventType_EVENT_TYPE_CHMOD:
	default:
		return nil
	}
	if !w.includeEntry {
		return nil
	}
	entry, err := w.service.tree.Stat(filepath.Join(w.path, event.Name))
	if err != nil {
		return nil
	}
	return entry
}
