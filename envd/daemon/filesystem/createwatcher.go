package filesystem

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// maxPolled bounds the polled watchers, which live until they are removed.
const maxPolled = 1024

// CreateWatcher starts a watcher whose events are fetched by GetWatcherEvents. It lives until RemoveWatcher.
func (s *Service) CreateWatcher(ctx context.Context, req *connect.Request[pb.CreateWatcherRequest]) (*connect.Response[pb.CreateWatcherResponse], error) {
	w, err := s.watch(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	// w and 20 characters of lower-case base 32, 100 bits.
	id := "w" + strings.ToLower(rand.Text()[:20])
	s.mu.Lock()
	full := len(s.polled) >= maxPolled
	if !full {
		s.polled[id] = w
	}
	s.mu.Unlock()
	if full {
		w.Close()
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("the sandbox has %d watchers already: remove some", maxPolled))
	}
	return connect.NewResponse(&pb.CreateWatcherResponse{WatcherId: id}), nil
}
