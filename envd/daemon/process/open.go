package process

import (
	"math"
	"os"

	"github.com/isthmus/isthmus/envd/daemon/spawn"
)

// open makes what the process reads from and writes into, and puts its side of it into the plan.
func (s *Service) open(p *plan) (*running, error) {
	r := &running{
		tag: p.msg.Tag, config: p.msg.GetProcess(), signalled: make(chan struct{}), gone: make(chan struct{}),
	}
	var err error
	if p.msg.GetPty() != nil {
		err = r.openTerminal(p)
	} else {
		err = r.openPipes(p)
	}
	if err != nil {
		r.release()
		for _, f := range p.command.Stdio {
			_ = f.Close()
		}
		return nil, err
	}
	return r, nil
}

func (r *running) openTerminal(p *plan) error {
	size := p.msg.GetPty().GetSize()
	ours, theirs, err := spawn.Terminal(cells(size.GetCols()), cells(size.GetRows()), p.credential)
	if err != nil {
		return err
	}
	r.terminal = newInput(ours)
	r.outputs = []output{{file: ours, size: maxTerminal, event: terminalEvent}}
	p.command.Stdio = [3]*os.File{theirs, theirs, theirs}
	return nil
}

func (r *running) openPipes(p *plan) error {
	stdio := &p.command.Stdio
	stdout, theirs, err := spawn.Pipe(true, p.credential)
	if err != nil {
		return err
	}
	stdio[1] = theirs
	r.outputs = append(r.outputs, output{file: stdout, size: maxOutput, event: stdoutEvent})
	stderr, theirs, err := spawn.Pipe(true, p.credential)
	if err != nil {
		return err
	}
	stdio[2] = theirs
	r.outputs = append(r.outputs, output{file: stderr, size: maxOutput, event: stderrEvent})
	if p.msg.Stdin != nil && !p.msg.GetStdin() {
		stdio[0], err = os.Open(os.DevNull)
		return err
	}
	stdin, theirs, err := spawn.Pipe(false, p.credential)
	if err != nil {
		return err
	}
	stdio[0], r.stdin = theirs, newInput(stdin)
	return nil
}

// cells fits a size into what the kernel keeps.
func cells(n uint32) uint16 { return uint16(min(n, math.MaxUint16)) }
