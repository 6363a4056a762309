package top

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// Options say what is shown, and how.
type Options struct {
	Source   Source
	Interval time.Duration // between two scrapes
	Window   time.Duration // over which events are counted
	Choice   Choice
	HasColor bool
}

// Run shows the source on a terminal until the user quits or the context ends.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	return run(ctx, newProgram(ctx, o), profile(o.HasColor), in, out)
}

// run runs a model. The terminal is told how many colours it has: to find out,
// the library would start a program where it runs below tmux.
func run(ctx context.Context, m tea.Model, colors colorprofile.Profile, in io.Reader, out io.Writer) error {
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithColorProfile(colors), tea.WithFilter(sized)).Run()
	if wasEnded := errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil; !wasEnded {
		return err
	}
	return nil
}

func profile(hasColor bool) colorprofile.Profile {
	if hasColor {
		return colorprofile.ANSI
	}
	return colorprofile.ASCII
}

// sized gives a terminal a size that does not know its own and says 0, as
// serial consoles do.
func sized(_ tea.Model, msg tea.Msg) tea.Msg {
	m, ok := msg.(tea.WindowSizeMsg)
	if !ok {
		return msg
	}
	return tea.WindowSizeMsg{Width: cmp.Or(m.Width, usualWidth), Height: cmp.Or(m.Height, usualHeight)}
}

// program ties the screen to a terminal and to its source.
type program struct {
	ctx      context.Context //nolint:containedctx // Bubble Tea hands none to commands
	source   Source
	interval time.Duration
	history  History
	screen   *screen
}

func newProgram(ctx context.Context, o Options) *program {
	shown := newScreen(o.Source.Name(), newStyle(o.HasColor), o.Choice)
	shown.since = time.Now()
	return &program{
		ctx:      ctx,
		source:   o.Source,
		interval: o.Interval,
		history:  History{Window: o.Window},
		screen:   shown,
	}
}

// answer is what came of a scrape.
type answer struct {
	scrape *Scrape
	err    error
	at     time.Time
}

// due says that it is time for the next scrape.
type due struct{}

// Init asks for the first scrape.
func (p *program) Init() tea.Cmd { return p.scrape }

// scrape asks the source.
func (p *program) scrape() tea.Msg {
	s, err := scrape(p.ctx, p.source)
	return answer{scrape: s, err: err, at: time.Now()}
}

func scrape(ctx context.Context, source Source) (*Scrape, error) {
	asked := time.Now()
	text, err := source.Scrape(ctx)
	if err != nil {
		return nil, err
	}
	s, err := Parse(text, time.Now())
	if err != nil {
		return nil, err
	}
	s.asked = asked
	if _, s.isFresh = source.(InProcess); !s.isFresh && !s.isAgents {
		return nil, errNoAgent
	}
	return s, nil
}

// errNoAgent is the answer of a server that has metrics, but none of RDMA.
var errNoAgent = errors.New("this is no railhead agent: there is no " + buildInfo + " in its answer")

// Update takes a key, a size or an answer.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		if p.screen.press(m.String(), m.Text) {
			return p, tea.Quit
		}
	case tea.PasteMsg:
		p.screen.press("", m.Content)
	case tea.WindowSizeMsg:
		p.screen.resize(m.Width, m.Height)
	case due:
		return p, p.scrape
	case answer:
		p.take(m)
		return p, tea.Tick(p.interval, func(time.Time) tea.Msg { return due{} })
	}
	return p, nil
}

func (p *program) take(a answer) {
	if a.err != nil {
		p.screen.fail(a.err, a.at)
		return
	}
	p.history.Add(a.scrape)
	p.screen.show(p.history.Frame())
}

// View renders the screen.
func (p *program) View() tea.View {
	view := tea.NewView(p.screen.String())
	view.AltScreen = true
	return view
}
