package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// invocation is a program to run, and how.
type invocation struct {
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// find looks a program up as a shell does, in the PATH that it is given.
func (i *invocation) find() (string, error) {
	if len(i.Args) == 0 {
		return "", errors.New("no program: want its name or path as the first argument")
	}
	name := i.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := variable(i.Env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("program %q in PATH %q: %w", name, path, syscall.ENOENT)
}

// defaultEnv is the environment of programs that are told no other.
func defaultEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
}

// environment puts lists of variables together. The last word on each counts.
func environment(lists ...[]string) []string {
	var all []string
	place := map[string]int{}
	for _, list := range lists {
		for _, v := range list {
			name, _, _ := strings.Cut(v, "=")
			if i, ok := place[name]; ok {
				all[i] = v
				continue
			}
			place[name] = len(all)
			all = append(all, v)
		}
	}
	return all
}

// variable is the value of a variable, or nothing.
func variable(env []string, name string) string {
	for _, v := range env {
		if n, value, _ := strings.Cut(v, "="); n == name {
			return value
		}
	}
	return ""
}
