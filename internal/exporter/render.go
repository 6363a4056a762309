package exporter

import (
	"io"
	"slices"
	"sync"
)

// renderer writes pages family by family. Its buffers are used again.
type renderer struct {
	to    io.Writer // nil: all stays in out
	err   error     // of the writer; nothing is written after it
	out   []byte    // what is not written yet
	pages []*page
	heads []int32 // by family index: one more than its first run; 0 for none
	runs  []run
}

// pieceSize is how much is gathered before it is written: a whole exposition
// would be several megabytes.
const pieceSize = 32 << 10

// run is a run of rows of one family on a page, in a chain of all such runs.
type run struct {
	page, start, end int32
	next             int32 // one more than its index; 0 for none
}

// renderers pools what scrapes write with.
type renderers struct{ pool sync.Pool }

func (r *renderers) get() *renderer {
	if got, ok := r.pool.Get().(*renderer); ok {
		return got
	}
	return &renderer{}
}

// put takes a renderer back, with nothing that would keep old pages alive.
func (r *renderers) put(used *renderer) {
	used.to, used.err = nil, nil
	clear(used.pages)
	used.out, used.pages, used.runs = used.out[:0], used.pages[:0], used.runs[:0]
	r.pool.Put(used)
}

// render writes the pages: families in their order, and the series of each in the
// order of the pages.
func (r *renderer) render(families []*family, isOpen bool) {
	r.chain(len(families))
	for _, f := range families {
		if f.index >= len(r.heads) || r.heads[f.index] == 0 {
			continue
		}
		r.out = f.appendMetadata(r.out, isOpen)
		for i := r.heads[f.index]; i != 0; i = r.runs[i-1].next {
			run := &r.runs[i-1]
			r.write(r.pages[run.page].rows[run.start:run.end], isOpen)
		}
	}
}

func (r *renderer) write(rows []row, isOpen bool) {
	out := r.out
	for i := range rows {
		out = rows[i].line.appendTo(out, rows[i].value, isOpen)
	}
	r.out = out
	r.flushPiece()
}

// Write appends to the output. Where it cannot be written, that is told by err.
func (r *renderer) Write(b []byte) (int, error) {
	r.out = append(r.out, b...)
	r.flushPiece()
	return len(b), nil
}

func (r *renderer) flushPiece() {
	if len(r.out) >= pieceSize {
		r.flush()
	}
}

// flush writes what was gathered.
func (r *renderer) flush() {
	if r.to == nil {
		return
	}
	if r.err == nil {
		_, r.err = r.to.Write(r.out)
	}
	r.out = r.out[:0]
}

// chain links the runs of each family, from the last to the first, so that the
// heads are the first ones in the end.
func (r *renderer) chain(families int) {
	if cap(r.heads) < families {
		r.heads = make([]int32, families)
	}
	r.heads = r.heads[:families]
	clear(r.heads)
	rows := 0
	for _, p := range r.pages {
		rows += len(p.rows)
	}
	r.runs = slices.Grow(r.runs, rows) // each may be a run of its own
	for i, p := range slices.Backward(r.pages) {
		rows := p.rows
		for end := len(rows); end > 0; {
			f := rows[end-1].line.family
			start := end - 1
			for start > 0 && rows[start-1].line.family == f {
				start--
			}
			if f.index < families { // else it is younger than the list of families
				r.runs = append(r.runs, run{int32(i), int32(start), int32(end), r.heads[f.index]})
				r.heads[f.index] = int32(len(r.runs))
			}
			end = start
		}
	}
}
