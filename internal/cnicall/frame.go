package cnicall

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxMessage is how many bytes a request or an answer may have. The largest are
// lists of what is still attached, at 110 bytes an attachment.
const MaxMessage = 4 << 20

// protocol is the version of what goes over the socket. A field that one side may
// do without changes no version.
const protocol = 1

// A message is four bytes, of which the last is the version, its length in four
// bytes, and JSON. Versions to come keep these eight bytes.
const headerLength = 8

// ErrProtocol is of a peer that speaks another version of the protocol: program
// and agent are of releases that do not fit.
var ErrProtocol = errors.New("another version of the protocol")

// wireRequest is a request with what its client leaves the agent in time.
type wireRequest struct {
	Request

	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// encodeRequest returns a request as it is sent; left is how long its client
// waits, 0 for ever.
func encodeRequest(r Request, left time.Duration) ([]byte, error) {
	for _, s := range []struct{ name, value string }{
		{"CNI_COMMAND", r.Command},
		{"CNI_CONTAINERID", r.ContainerID},
		{"CNI_NETNS", r.NetNS},
		{"CNI_IFNAME", r.IfName},
		{"CNI_ARGS", r.Args},
		{"CNI_PATH", r.Path},
		{"name of the program", r.Plugin},
	} {
		if !utf8.ValidString(s.value) {
			return nil, fmt.Errorf("%s %q: not UTF-8", s.name, s.value)
		}
	}
	return encode("request", wireRequest{r, left.Milliseconds()})
}

// decodeRequest takes the JSON of a request apart.
func decodeRequest(body []byte) (Request, time.Duration, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return Request{}, 0, fmt.Errorf("request: %w", err)
	}
	if w.Command == "" {
		return Request{}, 0, errors.New("request: command: missing, want a verb of CNI")
	}
	if w.Milliseconds < 0 || w.Milliseconds > int64(maxDuration/time.Millisecond) {
		return Request{}, 0, fmt.Errorf("request: milliseconds: %d, want 0 to %d", w.Milliseconds, maxDuration/time.Millisecond)
	}
	return w.Request, time.Duration(w.Milliseconds) * time.Millisecond, nil
}

// maxDuration is the longest that a client may say it waits.
const maxDuration = 24 * time.Hour

func encodeAnswer(a Answer) ([]byte, error) {
	if err := a.valid(); err != nil {
		return nil, err
	}
	if a.Error != nil {
		a.Error = &Error{Code: a.Error.Code, Msg: cut(a.Error.Msg), Details: cut(a.Error.Details)}
	}
	return encode("answer", a)
}

// MostText is how many bytes of a text of an error are sent. Runtimes put it into
// logs and Events.
const MostText = 16 << 10

// cut is a text, or as much of a longer one as is sent, with a note of it.
func cut(text string) string {
	if len(text) <= MostText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:MostText], ""), len(text))
}

func decodeAnswer(body []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return Answer{}, fmt.Errorf("answer: %w", err)
	}
	return a, a.valid()
}

func (a Answer) valid() error {
	switch {
	case a.Error == nil:
		return nil
	case len(a.Output) > 0:
		return errors.New("answer: an output and an error, want one of them")
	case a.Error.Code == 0:
		return errors.New("answer: error.code: 0, want a code of the CNI specification")
	}
	return nil
}

// encode returns a message. It leaves characters as they are, which
// json.Marshal would not.
func encode(what string, value any) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, headerLength))
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	message := b.Bytes()
	length := len(message) - headerLength
	if length > MaxMessage {
		return nil, fmt.Errorf("%s: %d bytes, want at most %d", what, length, MaxMessage)
	}
	copy(message, header(protocol, length))
	return message, nil
}

func header(version byte, length int) []byte {
	return binary.BigEndian.AppendUint32([]byte{'R', 'H', 'C', version}, uint32(length))
}

// readMessage reads the JSON of a message. It allocates as data comes, so that a
// length alone costs nothing.
func readMessage(r io.Reader) ([]byte, error) {
	var head [headerLength]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(head[:]), "RHC") {
		return nil, fmt.Errorf("message: begins with %q, want %q: not a peer of this protocol", head[:3], "RHC")
	}
	if head[3] != protocol {
		return nil, fmt.Errorf("message: %w: %d, want %d", ErrProtocol, head[3], protocol)
	}
	length := binary.BigEndian.Uint32(head[4:])
	if length > MaxMessage {
		return nil, fmt.Errorf("message: %d bytes, want at most %d", length, MaxMessage)
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, int64(length)))
	if err == nil && n < int64(length) {
		err = fmt.Errorf("message: ends after %d of %d bytes: %w", n, length, io.ErrUnexpectedEOF)
	}
	return b.Bytes(), err
}
