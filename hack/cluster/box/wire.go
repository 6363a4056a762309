package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// messageLimit is the size of the longest message. One message is one packet,
// and must fit into a socket's buffer as the kernel makes it (212992 bytes).
const messageLimit = 160 << 10

// filesLimit is how many files ride on a message.
const filesLimit = 3

// order is what the driver tells the first process of a machine.
type order struct {
	ID      uint64      `json:"id"` // of the reply
	Verb    verb        `json:"verb"`
	Service *Service    `json:"service,omitempty"` // start; its log rides on the message
	Name    string      `json:"name,omitempty"`    // of the service that the others mean
	Run     *invocation `json:"run,omitempty"`     // run; stdin, stdout and stderr ride on the message
	Running uint64      `json:"running,omitempty"` // interrupt: the ID of a run
}

type verb string

const (
	verbStart     verb = "start"
	verbStop      verb = "stop"
	verbKill      verb = "kill"
	verbPause     verb = "pause"
	verbResume    verb = "resume"
	verbServices  verb = "services"
	verbRun       verb = "run"
	verbInterrupt verb = "interrupt"
)

// reply answers the order of its ID. The first message of a machine has ID 0
// and says that it takes orders, or why not.
type reply struct {
	ID       uint64       `json:"id"`
	Error    *remoteError `json:"error,omitempty"`
	Status   *uint32      `json:"status,omitempty"` // of run, as wait(2) gives it
	Services []Status     `json:"services,omitempty"`
}

// remoteError carries an error over the socket, with the number that
// errors.Is goes by.
type remoteError struct {
	Text  string        `json:"text"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

func newRemoteError(err error) *remoteError {
	if err == nil {
		return nil
	}
	remote := &remoteError{Text: err.Error()}
	errors.As(err, &remote.Errno)
	return remote
}

func (e *remoteError) Error() string { return e.Text }

func (e *remoteError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// wire is one end of the order socket: packets of JSON, with files. Any number
// of goroutines may send; one receives.
type wire struct {
	conn *net.UnixConn
	mu   sync.Mutex
	buf  []byte
}

// newWire takes over a socket.
func newWire(socket *os.File) (*wire, error) {
	defer func() { _ = socket.Close() }()
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("order socket is a %T: want a Unix socket", conn)
	}
	return &wire{conn: unixConn, buf: make([]byte, messageLimit)}, nil
}

func (w *wire) send(message any, files ...*os.File) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > messageLimit {
		return fmt.Errorf("message of %d bytes: want at most %d", len(text), messageLimit)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, file := range files {
			fds[i] = int(file.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _, err = w.conn.WriteMsgUnix(text, rights, nil)
	runtime.KeepAlive(files)
	return err
}

// receive waits for a message. It returns io.EOF when the other end is gone.
func (w *wire) receive(message any) ([]*os.File, error) {
	rights := make([]byte, unix.CmsgSpace(filesLimit*4))
	n, rightsLen, flags, _, err := w.conn.ReadMsgUnix(w.buf, rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	}
	files, err := parseRights(rights[:rightsLen])
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = fmt.Errorf("message of more than %d bytes or %d files", messageLimit, filesLimit)
	}
	if err == nil {
		err = json.Unmarshal(w.buf[:n], message)
	}
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	return files, nil
}

// parseRights takes the files out of a control message.
func parseRights(rights []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, message := range messages {
		fds, err := unix.ParseUnixRights(&message)
		if err != nil {
			continue // credentials and the like
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
