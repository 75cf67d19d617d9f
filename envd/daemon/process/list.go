package process

import (
	"context"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

// List answers every live process that was started through the service, of every user.
func (s *Service) List(context.Context, *connect.Request[wire.ListRequest]) (*connect.Response[wire.ListResponse], error) {
	list := &wire.ListResponse{}
	for _, r := range s.table.all() {
		list.Processes = append(list.Processes, &wire.ProcessInfo{Config: r.config, Pid: r.pid, Tag: r.tag})
	}
	return connect.NewResponse(list), nil
}
