package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// script is a source that answers with one text after the other, then with the
// last again.
func script(texts ...string) InProcess {
	return InProcess{Render: func(context.Context) ([]byte, error) {
		text := texts[0]
		texts = texts[min(1, len(texts)-1):]
		if message, ok := strings.CutPrefix(text, "error: "); ok {
			return nil, errors.New(message)
		}
		return []byte(text), nil
	}}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// The texts come a second apart.
		texts   []string
		want    Rate
		took    time.Duration
		wantErr string
	}{
		{"two samples", []string{rx + "0\n", rx + "5\n"}, known(5), time.Second, ""},
		{
			"an agent that samples seldom",
			[]string{rx + "0\n" + age + "1\n", rx + "0\n" + age + "2\n", rx + "6\n" + age + "0\n"},
			known(2), 2 * time.Second, "",
		},
		{"an agent that stands still", stuck(), Rate{}, 10 * time.Second, ""},
		{"an error at first", []string{"error: no such device"}, Rate{}, 0, "this node, without an agent: no such device"},
		{"an error later", []string{rx + "0\n", "error: no such device"}, Rate{}, time.Second, "no such device"},
		{"nonsense", []string{"<html>\n"}, Rate{}, 0, "text format"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f, err := Once(t.Context(), script(tt.texts...), time.Second)
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				switch {
				case tt.wantErr != "":
					if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
						t.Errorf("error %v does not say %s", err, tt.wantErr)
					}
				case err != nil:
					t.Error(err)
				case f.Devices[0].Receive != tt.want:
					t.Errorf("received %v, want %v", f.Devices[0].Receive, tt.want)
				}
			})
		})
	}
}

// stuck are answers whose samples only grow older.
func stuck() []string {
	var texts []string
	for i := range 20 {
		texts = append(texts, fmt.Sprintf("%s0\n%s%d\n", rx, age, i))
	}
	return texts
}

func TestOnceWithoutDevices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, err := Once(t.Context(), script("", ""), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.Print(&b, firstChoice, 80, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "there are no RDMA devices") {
			t.Errorf("it prints\n%s", b.String())
		}
	})
}

func TestOnceCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Once(ctx, script(rx+"0\n"), time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestMessages drives the program without a terminal.
func TestMessages(t *testing.T) {
	t.Parallel()
	p := newProgram(t.Context(), Options{
		Source: script(rx+"0\n", "error: gone", rx+"5\n"), Interval: time.Second, Window: DefaultWindow, Choice: firstChoice,
	})
	if !strings.Contains(p.View().Content, "waiting for the first answer") {
		t.Errorf("at first there is\n%s", p.View().Content)
	}
	for i, want := range []string{"1 device:", "AWAY for 0s, trying again: gone", "1 device:"} {
		if _, next := p.Update(p.scrape()); next == nil {
			t.Errorf("after answer %d there is no next", i)
		}
		if !strings.Contains(p.View().Content, want) {
			t.Errorf("after answer %d there is\n%s\nwant %s", i, p.View().Content, want)
		}
	}
	if _, cmd := p.Update(due{}); cmd == nil {
		t.Error("nothing is done when it is time")
	}
	p.Update(tea.WindowSizeMsg{Width: 60, Height: 12})
	checkSize(t, p.View().Content, 60, 12)
	_, cmd := p.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	if cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not end it")
	}
}

// TestUnknownSize has a console that does not know how large it is.
func TestUnknownSize(t *testing.T) {
	t.Parallel()
	p := newProgram(t.Context(), Options{Source: script(rx + "0\n"), Window: DefaultWindow, Choice: firstChoice})
	p.Update(p.scrape())
	for _, tt := range []struct{ told, want tea.WindowSizeMsg }{
		{tea.WindowSizeMsg{Width: 100, Height: 30}, tea.WindowSizeMsg{Width: 100, Height: 30}},
		{tea.WindowSizeMsg{}, tea.WindowSizeMsg{Width: 80, Height: 24}},
		{tea.WindowSizeMsg{Width: 132}, tea.WindowSizeMsg{Width: 132, Height: 24}},
	} {
		got := sized(p, tt.told)
		if got != tt.want {
			t.Errorf("the size %v is taken for %v, want %v", tt.told, got, tt.want)
		}
		p.Update(got)
		checkSize(t, p.View().Content, tt.want.Width, tt.want.Height)
	}
}

// TestTyped says what keys type into a filter, and what they do elsewhere.
func TestTyped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		msg    tea.Msg
		filter string // where one is typed
		want   string // on the screen where none is
	}{
		{"letter", tea.KeyPressMsg{Code: 'u', Text: "u"}, "u", "B/s"},
		{"letter that is not ASCII", tea.KeyPressMsg{Code: 'é', Text: "é"}, "é", "bit/s"},
		{"capital", tea.KeyPressMsg{Code: 'g', ShiftedCode: 'G', Mod: tea.ModShift, Text: "G"}, "G", "> mlx5_0"},
		{"space", tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}, " ", "FROZEN"},
		{"paste", tea.PasteMsg{Content: "u p"}, "u p", "bit/s"},
		{"alt and a letter", tea.KeyPressMsg{Code: 'u', Mod: tea.ModAlt}, "", "bit/s"},
		{"ctrl and a letter", tea.KeyPressMsg{Code: 'f', Mod: tea.ModCtrl}, "", "> mlx5_0"},
		{"arrow", tea.KeyPressMsg{Code: tea.KeyDown}, "", ">!mlx5_3"},
		{"tab", tea.KeyPressMsg{Code: tea.KeyTab}, "", "[pods]"},
		{"key let go", tea.KeyReleaseMsg{Code: 'u', Text: "u"}, "", "bit/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t.Context(), Options{Source: script(""), Window: DefaultWindow, Choice: firstChoice})
			p.screen.show(node(t))
			p.Update(tt.msg)
			if text := p.View().Content; !strings.Contains(text, tt.want) {
				t.Errorf("%q is not on the screen:\n%s", tt.want, text)
			}
			p.screen = screenOf(t, node(t), 80, 24, "/")
			p.Update(tt.msg)
			if p.screen.filter != tt.filter {
				t.Errorf("the filter is %q, want %q", p.screen.filter, tt.filter)
			}
		})
	}
}

// watched is a program that notes what it shows: to the terminal itself only
// cells are written that changed.
type watched struct {
	*program

	mu    sync.Mutex
	shown string
	news  chan struct{}
}

func (w *watched) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := w.program.Update(msg)
	return w, cmd
}

func (w *watched) View() tea.View {
	view := w.program.View()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown = view.Content
	select {
	case w.news <- struct{}{}:
	default:
	}
	return view
}

// wait returns once a text is shown.
func (w *watched) wait(t *testing.T, text string) {
	t.Helper()
	for {
		w.mu.Lock()
		shown := w.shown
		w.mu.Unlock()
		if strings.Contains(shown, text) {
			return
		}
		select {
		case <-w.news:
		case <-w.ctx.Done():
			t.Fatalf("%q is not shown, but\n%s", text, shown)
		}
	}
}

// session is a whole program that runs, with what is typed to it and what it
// writes. It ends with the test, or after a time that none should take.
type session struct {
	*watched

	keys   *io.PipeWriter
	out    bytes.Buffer // may be read once it ended
	ended  chan error
	cancel context.CancelFunc
}

func begin(t *testing.T, o Options) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	in, keys := io.Pipe()
	context.AfterFunc(ctx, func() { keys.Close() }) // nobody reads any more
	s := &session{
		watched: &watched{program: newProgram(ctx, o), news: make(chan struct{}, 1)},
		keys:    keys, ended: make(chan error, 1), cancel: cancel,
	}
	go func() { s.ended <- run(ctx, s.watched, profile(o.HasColor), in, &s.out) }()
	return s
}

// TestRun runs the whole program: it is looked at and typed to.
func TestRun(t *testing.T) {
	t.Parallel()
	s := begin(t, Options{
		Source:   script(readFile(t, "node-0s.prom"), readFile(t, "node-10s.prom")),
		Interval: time.Millisecond, Window: DefaultWindow, Choice: firstChoice,
	})
	for _, step := range []struct{ text, key string }{
		{"mlx5_3", "G"},
		{"> mlx5_0", "\x1b[H"},                     // home
		{">!mlx5_5", "/\x1b[200~rail0\x1b[201~\r"}, // pasted
		{"filter rail0", "\x1b"},
		{"mlx5_3", "p"},
		{"llama-70b-worker-0", "w"},
		{"JobSet train/llama-70b", "?"},
		{"any key: the columns", "x"},
		{"any key: back", "x"},
		{"DaemonSet data/loader", "q"},
	} {
		s.wait(t, step.text)
		if _, err := s.keys.Write([]byte(step.key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	written := s.out.String()
	const into, outOf = "\x1b[?1049h", "\x1b[?1049l"
	if first, last := strings.Index(written, into), strings.LastIndex(written, outOf); first < 0 || last < first {
		t.Errorf("the screen of before is not given back: %q", written)
	}
}

// TestRunCanceled wants the end of the context to be no error.
func TestRunCanceled(t *testing.T) {
	t.Parallel()
	s := begin(t, Options{Source: script(rx + "0\n"), Interval: time.Hour, Window: DefaultWindow, Choice: firstChoice})
	s.wait(t, "mlx5_0")
	s.cancel()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
