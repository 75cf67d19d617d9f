package process

import "github.com/isthmus/isthmus/envd/daemon/identity"

// environment is the whole environment of a process, and the PATH in it. Nothing of the daemon's own is passed
// on but PATH. The request wins over the sandbox, the sandbox over what follows from the user.
func (s *Service) environment(user identity.User, request map[string]string) (env []string, path string) {
	vars := map[string]string{"PATH": s.path, "HOME": user.Home, "USER": user.Name, "LOGNAME": user.Name}
	for name, value := range s.config.Environment() {
		vars[name] = value
	}
	for name, value := range request {
		vars[name] = value
	}
	env = make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	return env, vars["PATH"]
}
