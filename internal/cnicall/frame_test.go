package cnicall

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var exampleRequest = Request{
	Command: Add, ContainerID: "c1", NetNS: "/run/netns/a", IfName: "eth0",
	Args: "K8S_POD_NAME=p;X=<&>", Path: "/opt/cni/bin:/b", Plugin: "spiderpool",
	Config: json.RawMessage(`{"cniVersion":"1.1.0","name":"a","n":12345678901234567890,"html":"<&>"}`),
}

func TestRequestRoundTrip(t *testing.T) {
	t.Parallel()
	message, err := encodeRequest(exampleRequest, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	body, err := readMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	got, left, err := decodeRequest(body)
	if err != nil || left != 3*time.Second {
		t.Errorf("got %v, %v", left, err)
	}
	if d := cmp.Diff(exampleRequest, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		request Request
		want    string
	}{
		{"not UTF-8", Request{Command: Add, Args: "a=\xff"}, `CNI_ARGS "a=\xff": not UTF-8`},
		{"no JSON", Request{Command: Add, Config: json.RawMessage(`{`)}, "request: json:"},
		{"too long", Request{Command: Add, Args: strings.Repeat("x", MaxMessage)}, "want at most 4194304"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := encodeRequest(c.request, 0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReadMessageRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, want string }{
		{"nothing", "", "EOF"},
		{"half a header", "RHC\x01\x00", "unexpected EOF"},
		{"another protocol", "GET / HTTP/1.1", "not a peer of this protocol"},
		{"another version", "RHC\x02\x00\x00\x00\x00", "another version of the protocol: 2, want 1"},
		{"too long", "RHC\x01\xff\xff\xff\xff", "4294967295 bytes, want at most"},
		{"cut off", "RHC\x01\x00\x00\x00\x08{}", "ends after 2 of 8 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := readMessage(strings.NewReader(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := readMessage(strings.NewReader("RHC\x02\x00\x00\x00\x00")); !errors.Is(err, ErrProtocol) {
		t.Errorf("got %v, want ErrProtocol", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, request, answer, want string }{
		{"no verb", `{"containerID":"a"}`, "", "command: missing"},
		{"a time that was", `{"command":"ADD","milliseconds":-1}`, "", "milliseconds: -1"},
		{"for ever", `{"command":"ADD","milliseconds":9223372036854775807}`, "", "want 0 to 86400000"},
		{"not JSON", `x`, "", "request: invalid character"},
		{"both", "", `{"output":{},"error":{"code":7,"msg":""}}`, "want one of them"},
		{"no code", "", `{"error":{"msg":"m"}}`, "error.code: 0"},
		{"no answer", "", `[]`, "answer: json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var err error
			if c.answer != "" {
				_, err = decodeAnswer([]byte(c.answer))
			} else {
				_, _, err = decodeRequest([]byte(c.request))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// compact is JSON as it is after being sent.
func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzRequest: what can be read is a request that is read the same after being sent again.
func FuzzRequest(f *testing.F) {
	message, err := encodeRequest(exampleRequest, time.Minute)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Add([]byte("RHC\x01\x00\x00\x00\x11{\"command\":\"ADD\"}"))
	f.Add([]byte("RHC\x02\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := readMessage(bytes.NewReader(data))
		if err != nil {
			return
		}
		want, wantLeft, err := decodeRequest(body)
		if err != nil {
			return
		}
		again, err := encodeRequest(want, wantLeft)
		if err != nil {
			t.Fatalf("%+v cannot be sent: %v", want, err)
		}
		body, err = readMessage(io.MultiReader(bytes.NewReader(again), strings.NewReader("more")))
		if err != nil {
			t.Fatal(err)
		}
		got, left, err := decodeRequest(body)
		want.Config = compact(t, want.Config)
		if d := cmp.Diff(want, got); err != nil || left != wantLeft || d != "" {
			t.Errorf("%v, %v: (-want +got)\n%s", err, left, d)
		}
	})
}

// FuzzAnswer: an answer is an output, an error with a code or nothing, and is read
// the same after being sent again.
func FuzzAnswer(f *testing.F) {
	for _, a := range []Answer{{}, {Output: json.RawMessage(`{"a": [1]}`)}, {Error: &Error{Code: 11, Msg: "m", Details: "<d>"}}} {
		message, err := encodeAnswer(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := readMessage(bytes.NewReader(data))
		if err != nil {
			return
		}
		want, err := decodeAnswer(body)
		if err != nil {
			return
		}
		if want.Error != nil && (want.Error.Code == 0 || len(want.Output) > 0) {
			t.Fatalf("got %+v", want)
		}
		again, err := encodeAnswer(want)
		if err != nil {
			t.Fatalf("%+v cannot be sent: %v", want, err)
		}
		body, err = readMessage(bytes.NewReader(again))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeAnswer(body)
		want.Output = compact(t, want.Output)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v: (-want +got)\n%s", err, d)
		}
	})
}
