package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const usage = `usage: sudo -h | -K | -k | -V
usage: sudo -v [-knS] [-g group] [-u user]
usage: sudo -l [-knS] [-g group] [-U user] [-u user] [command [arg ...]]
usage: sudo [-bEHknPS] [-C num] [-D directory] [-g group] [-u user] [VAR=value] [-i | -s] [command [arg ...]]
`

// errUsage marks errors after which the usage is printed.
var errUsage = errors.New("")

// options are what the command line says.
type options struct {
	user, group, dir                      string
	hasUser, hasGroup                     bool
	login, shell, background              bool
	keepAll, setHome, keepGroups          bool
	list, validate, forget, help, version bool
	keep                                  []string // names of variables to keep
	set                                   []string // VAR=value
	command                               []string
	closeFrom                             int
	host                                  string
}

// long names the short form of each long option.
func long(name string) (short byte, ok bool) {
	short, ok = map[string]byte{
		"askpass": 'A', "background": 'b', "bell": 'B', "close-from": 'C', "chdir": 'D', "edit": 'e',
		"group": 'g', "set-home": 'H', "help": 'h', "login": 'i', "remove-timestamp": 'K',
		"reset-timestamp": 'k', "list": 'l', "non-interactive": 'n', "no-update": 'N', "preserve-groups": 'P',
		"prompt": 'p', "chroot": 'R', "stdin": 'S', "shell": 's', "command-timeout": 'T', "other-user": 'U',
		"user": 'u', "version": 'V', "validate": 'v',
	}[name]
	return short, ok
}

// withValue are the short options that take a value.
const withValue = "CDgpRTUu"

// parse reads the command line: options and VAR=value in any order, then the command.
func parse(args []string) (options, error) {
	o := options{user: "root", closeFrom: 3}
	for len(args) > 0 {
		a := args[0]
		var err error
		switch {
		case a == "--":
			return o.finish(args[1:])
		case strings.HasPrefix(a, "--"):
			args, err = o.long(args)
		case strings.HasPrefix(a, "-") && len(a) > 1:
			args, err = o.short(args)
		case assignment(a):
			o.set, args = append(o.set, a), args[1:]
		default:
			return o.finish(args)
		}
		if err != nil {
			return o, err
		}
	}
	return o.finish(nil)
}

// assignment says whether the argument is VAR=value rather than a command.
func assignment(a string) bool {
	name, _, ok := strings.Cut(a, "=")
	return ok && name != "" && !strings.Contains(name, "/")
}

// long takes one long option from the arguments and returns the rest.
func (o *options) long(args []string) ([]string, error) {
	name, value, has := strings.Cut(args[0][2:], "=")
	if name == "preserve-env" {
		if o.keepAll = o.keepAll || !has; has {
			o.keep = append(o.keep, strings.Split(value, ",")...)
		}
		return args[1:], nil
	}
	short, ok := long(name)
	if name == "host" {
		short, ok = 'h', true
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("unrecognized option '%s'%w", args[0], errUsage)
	case (strings.IndexByte(withValue, short) < 0 && name != "host") || has:
		return args[1:], o.apply(short, value)
	case len(args) < 2:
		return nil, fmt.Errorf("option '%s' requires an argument%w", args[0], errUsage)
	}
	return args[2:], o.apply(short, args[1])
}

// short takes one argument of short options (-nu root, -uroot) and returns the rest.
func (o *options) short(args []string) ([]string, error) {
	letters, rest := args[0][1:], args[1:]
	for i := range len(letters) {
		c := letters[i]
		if strings.IndexByte(withValue, c) < 0 {
			if c == 'h' && i == len(letters)-1 && len(rest) > 0 {
				return rest[1:], o.apply('h', rest[0])
			}
			if err := o.apply(c, ""); err != nil {
				return nil, err
			}
			continue
		}
		value := letters[i+1:]
		if value == "" {
			if len(rest) == 0 {
				return nil, fmt.Errorf("option requires an argument -- '%c'%w", c, errUsage)
			}
			value, rest = rest[0], rest[1:]
		}
		return rest, o.apply(c, value)
	}
	return rest, nil
}

// apply notes one option.
func (o *options) apply(c byte, value string) error {
	switch c {
	case 'A', 'B', 'n', 'N', 'p', 'S', 'U': // about passwords and other people's rights: no matter here
	case 'b':
		o.background = true
	case 'C':
		n, err := strconv.Atoi(value)
		if err != nil || n < 3 {
			return fmt.Errorf("the argument to -C must be a number greater than or equal to 3%w", errUsage)
		}
		o.closeFrom = n
	case 'D':
		o.dir = value
	case 'E':
		o.keepAll = true
	case 'g':
		o.group, o.hasGroup = value, true
	case 'H':
		o.setHome = true
	case 'h':
		o.help, o.host = value == "", value
	case 'i':
		o.login = true
	case 'k', 'K':
		o.forget = true
	case 'l':
		o.list = true
	case 'P':
		o.keepGroups = true
	case 's':
		o.shell = true
	case 'u':
		o.user, o.hasUser = value, true
	case 'V':
		o.version = true
	case 'v':
		o.validate = true
	default:
		return refusal(c)
	}
	return nil
}

// refusal is the error for options that are unknown, or known and not to be had.
func refusal(c byte) error {
	switch c {
	case 'e':
		return errors.New("editing files is not supported here: run the editor itself with sudo")
	case 'R':
		return errors.New("you are not permitted to use the -R option: run chroot with sudo")
	case 'T':
		return errors.New("sorry, you are not allowed set a command timeout: use timeout(1)")
	}
	return fmt.Errorf("invalid option -- '%c'%w", c, errUsage)
}

// finish checks what belongs together.
func (o options) finish(command []string) (options, error) {
	o.command = command
	nothing := len(command) == 0 && !o.login && !o.shell
	switch {
	case o.help || o.version:
	case o.host != "" && !o.list:
		return o, fmt.Errorf("a remote host may only be specified when listing privileges.%w", errUsage)
	case o.login && o.shell:
		return o, fmt.Errorf("you may not specify both the -i and -s options%w", errUsage)
	case o.login && o.keepAll:
		return o, fmt.Errorf("you may not specify both the -i and -E options%w", errUsage)
	case o.validate && !nothing:
		return o, fmt.Errorf("a command may not be given with the -v option%w", errUsage)
	case nothing && !o.list && !o.validate && !o.forget:
		return o, fmt.Errorf("a command is required%w", errUsage)
	}
	return o, nil
}
