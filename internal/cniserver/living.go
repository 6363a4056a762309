package cniserver

import (
	"errors"
	"fmt"
	"io/fs"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/netns"
)

// ended says why the network namespace of an attachment is no more; "" where it
// lives. With an error nobody can tell, a process without a free file descriptor, say:
// a pod may run in it, so that nothing is taken away.
func (s *Server) ended(att record.Attachment) (why string, err error) {
	if att.BootID != s.config.BootID {
		return "the node was started again since it was attached", nil
	}
	id, err := s.statNetNS(att.NetNS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its network namespace is gone", nil
	case err != nil:
		return "", coded(cnicall.CodeTryAgain, fmt.Errorf("whether network namespace %s is still there cannot be told: %w", att.NetNS, err))
	case id != att.ID:
		return "its network namespace is another one now", nil
	}
	return "", nil
}

// lives says whether the namespace of an attachment is still there, or may be.
func (s *Server) lives(att record.Attachment) bool {
	why, _ := s.ended(att) // an error is no end
	return why == ""
}

// statNetNS is which namespace is at a path of the node.
func (s *Server) statNetNS(path string) (netns.ID, error) {
	path, err := s.config.NetNS(path)
	if err != nil {
		return netns.ID{}, err
	}
	return netns.Stat(path)
}
