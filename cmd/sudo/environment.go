package main

import (
	"slices"
	"strconv"
	"strings"
)

// securePath is where commands are looked for, whatever the caller's PATH says.
const securePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// kept are the variables that survive without -E. Proxies are among them: a box may have no other way out.
func kept(name string) bool {
	return slices.Contains([]string{
		"COLORS", "COLORTERM", "DISPLAY", "HOSTNAME", "KRB5CCNAME", "LANG", "LANGUAGE", "LINGUAS", "LS_COLORS",
		"PS1", "PS2", "TERM", "TZ", "XAUTHORITY", "XAUTHORIZATION", "XDG_CURRENT_DESKTOP",
		"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	}, name) || strings.HasPrefix(name, "LC_")
}

// dropped are the variables that even -E does not pass on: they change what a program loads or runs.
func dropped(name, value string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "_RLD") || strings.HasPrefix(value, "()") ||
		slices.Contains([]string{
			"IFS", "CDPATH", "LOCALDOMAIN", "RES_OPTIONS", "HOSTALIASES", "NLSPATH", "PATH_LOCALE", "TERMINFO",
			"TERMINFO_DIRS", "TERMPATH", "TERMCAP", "ENV", "BASH_ENV", "PS4", "GLOBIGNORE", "BASHOPTS", "SHELLOPTS",
			"JAVA_TOOL_OPTIONS", "PERLIO_DEBUG", "PERLLIB", "PERL5LIB", "PERL5OPT", "PERL5DB", "FPATH", "NULLCMD",
			"READNULLCMD", "ZDOTDIR", "TMPPREFIX", "PYTHONHOME", "PYTHONPATH", "PYTHONINSPECT", "PYTHONUSERBASE",
			"RUBYLIB", "RUBYOPT",
		}, name)
}

// environment makes the command's environment, sorted by name.
func environment(o options, caller, target account, now []string, command string) []string {
	m := map[string]string{}
	for _, e := range now {
		name, value, _ := strings.Cut(e, "=")
		named := slices.Contains(o.keep, name)
		if named || kept(name) || (o.keepAll && !dropped(name, value)) {
			m[name] = value
		}
	}
	m["PATH"], m["LOGNAME"], m["USER"] = securePath, target.name, target.name
	if _, ok := m["HOME"]; !ok || o.setHome || o.login {
		m["HOME"] = target.home
	}
	if _, ok := m["SHELL"]; !ok || o.login {
		m["SHELL"] = target.shell
	}
	if _, ok := m["MAIL"]; !ok {
		m["MAIL"] = "/var/mail/" + target.name
	}
	m["SUDO_COMMAND"], m["SUDO_USER"] = command, caller.name
	m["SUDO_UID"], m["SUDO_GID"] = strconv.Itoa(caller.uid), strconv.Itoa(caller.gid)
	for _, s := range o.set {
		name, value, _ := strings.Cut(s, "=")
		m[name] = value
	}
	env := make([]string, 0, len(m))
	for name, value := range m {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
