package provider

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// programCases check what is promised of programs and files in a box, each by the capability that promises it.
func programCases() []Case {
	return []Case{
		{Name: "output keeps its order", Run: ordered, needs: []adapters.Feature{adapters.FeatureExec, adapters.FeatureOrderedOutput}},
		{Name: "a kill that is answered is done", Run: confirmed, needs: []adapters.Feature{adapters.FeatureExec, adapters.FeatureConfirmedCancel}},
		{Name: "files", Run: files, needs: []adapters.Feature{adapters.FeatureExec, adapters.FeatureFiles}},
	}
}

// ordered has a program write numbered lines to both of its outputs in turns: each keeps its order.
func ordered(t T, s *Suite) {
	const lines = 500
	spec, done := s.create(t)
	defer done()
	var want strings.Builder
	for i := range lines {
		want.WriteString(strconv.Itoa(i) + "\n")
	}
	s.runs(t, spec.BoxID, "i=0; while [ $i -lt "+strconv.Itoa(lines)+" ]; do echo $i; echo $i >&2; i=$((i+1)); done",
		result{Stdout: want.String(), Stderr: want.String()})
}

// confirmed kills a program: once that is answered, the program is not listed any more.
func confirmed(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	in := s.reach(t, spec.BoxID)
	defer in.close()
	client := processconnect.NewProcessClient(&http.Client{Transport: in}, in.base)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Start(ctx, asRoot(&process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", "exec sleep 600"}}}))
	must(t, err, "start a program")
	defer func() { _ = stream.Close() }()
	that(t, stream.Receive(), "the program does not start: %v", stream.Err())
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	_, err = client.SendSignal(ctx, asRoot(&process.SendSignalRequest{
		Process: &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: pid}}, Signal: process.Signal_SIGNAL_SIGKILL,
	}))
	must(t, err, "kill the program")
	list, err := client.List(ctx, asRoot(&process.ListRequest{}))
	must(t, err, "list the programs")
	for _, one := range list.Msg.GetProcesses() {
		that(t, one.GetPid() != pid, "the program %d is listed after its kill was answered", pid)
	}
}

// asRoot makes a request of the box's root.
func asRoot[M any](message *M) *connect.Request[M] {
	request := connect.NewRequest(message)
	basic := http.Request{Header: request.Header()}
	basic.SetBasicAuth("root", "")
	return request
}
