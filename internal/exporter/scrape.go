package exporter

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/common/expfmt"
)

// serveMetrics answers a scrape from memory: it waits for no device.
func (e *Exporter) serveMetrics(w http.ResponseWriter, req *http.Request) {
	format := negotiate(req.Header)
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept-Encoding")
	if !acceptsGzip(req.Header) {
		_ = e.expose(w, format) // the client went away
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := e.gzips.get(w)
	defer e.gzips.put(z)
	_ = e.expose(z, format)
	_ = z.Close()
}

// WriteText writes what a scrape would get, in the text format of Prometheus.
func (e *Exporter) WriteText(w io.Writer) error {
	return e.expose(w, expfmt.NewFormat(expfmt.TypeTextPlain))
}

// expose writes all series and the exporter's own metrics, as they are now: what
// is read while they are written is not among them. The error is that of the
// writer.
func (e *Exporter) expose(w io.Writer, format expfmt.Format) error {
	r := e.renderers.get()
	defer e.renderers.put(r)
	now := e.config.Now()
	r.to = w
	r.pages = append(e.store.pages(now, r.pages), e.statusPage(now))
	r.render(e.catalog.families(), format.FormatType() == expfmt.TypeOpenMetrics)
	if err := e.self.encode(r, format); err != nil {
		e.config.Logger.Error("the exporter's own metrics are not complete", "error", err)
	}
	r.flush()
	return r.err
}

// negotiate returns the format that a client likes best of the two that there
// are. Whoever would like protobuf better, gets its next choice.
func negotiate(h http.Header) expfmt.Format {
	var texts []string
	for choice := range strings.SplitSeq(h.Get("Accept"), ",") {
		if !strings.Contains(choice, expfmt.ProtoType) {
			texts = append(texts, choice)
		}
	}
	return expfmt.NegotiateIncludingOpenMetrics(http.Header{"Accept": {strings.Join(texts, ",")}})
}

// acceptsGzip tells whether a client understands gzip, by Accept-Encoding (RFC
// 9110, section 12.5.3).
func acceptsGzip(h http.Header) bool {
	for choice := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, parameters, _ := strings.Cut(choice, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, isWeighed := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !isWeighed || err == nil && weight > 0
	}
	return false
}

// gzips pools compressors, which are large.
type gzips struct{ pool sync.Pool }

// get returns one of the fastest level: the network to a scraper is near, and
// series compress well at any.
func (g *gzips) get(w io.Writer) *gzip.Writer {
	if z, ok := g.pool.Get().(*gzip.Writer); ok {
		z.Reset(w)
		return z
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
	return z
}

// put takes one back, without the response that it wrote to.
func (g *gzips) put(z *gzip.Writer) {
	z.Reset(io.Discard)
	g.pool.Put(z)
}
