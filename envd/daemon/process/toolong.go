package process

import (
	"fmt"
	"strings"

	"github.com/isthmus/isthmus/envd"
)

// tooLong names the argument or the variable that is longer than a program can be given; nil: there is none. The kernel
// would refuse it without saying which one.
func (p *plan) tooLong() error {
	for n, one := range p.command.Args {
		if len(one) > envd.MaxVariable {
			return fmt.Errorf("argument list too long: argument %d of '%.64s' has %d bytes and a program can be given %d: send it through stdin or a file",
				n, p.command.Args[0], len(one), envd.MaxVariable)
		}
	}
	for _, one := range p.command.Env {
		if len(one) > envd.MaxVariable {
			name, _, _ := strings.Cut(one, "=")
			return fmt.Errorf("argument list too long: the variable %.64s and its value have %d bytes and a program can be given %d: write the value into a file",
				name, len(one), envd.MaxVariable)
		}
	}
	return nil
}

// tooMuch says what the kernel's E2BIG does not: how much there is of what.
func (p *plan) tooMuch() error {
	args, vars := 0, 0
	for _, one := range p.command.Args {
		args += len(one) + 1
	}
	for _, one := range p.command.Env {
		vars += len(one) + 1
	}
	return fmt.Errorf("argument list too long: '%.64s' cannot be given %d bytes of arguments and %d bytes of environment variables: together they are more "+
		"than the kernel takes, mostly 2 MiB. Send large data through stdin or files", p.command.Args[0], args, vars)
}
