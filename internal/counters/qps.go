package counters

import "cmp"

// qpCounter is a counter that the queue pairs of a port have apart.
type qpCounter struct {
	port int
	name string
}

// QPSeries returns the series of a port that a counter of queue pairs is a part
// of, where the kernel binds these to counters of their own; name is the
// kernel's for it. It returns those that pods have a share of, under the
// driver's name for it and under the one for all drivers. They are the same
// pointers that [Reader.Read] gives, also where the port itself is not read by
// that counter. There are none for a counter that the tables do not know.
func (r *Reader) QPSeries(port int, name string) []*Series {
	key := qpCounter{port, name}
	list, ok := r.apart[key]
	if !ok {
		if r.apart == nil {
			r.apart = map[qpCounter][]*Series{}
		}
		list = r.qpSeries(key)
		r.apart[key] = list
	}
	return list
}

func (r *Reader) qpSeries(key qpCounter) (list []*Series) {
	c, where := known.find(statistics, r.driver, key.name), r.place(key.port)
	if c == nil || where == nil {
		return nil
	}
	for _, o := range c.shares {
		list = append(list, &where.slot(o.family, o.values, cmp.Or(c.scale, 1)).series)
	}
	return list
}

// sharesOf are the outputs of a row whose counter queue pairs have apart: all that
// pods have a share of. Second choices are none, as drivers that have them bind
// no queue pairs.
func (g *registry) sharesOf(c *counter) []output {
	var list []output
	for _, o := range c.outputs {
		if o.family.Pod != "" && !o.second {
			list = append(list, o)
		}
	}
	for _, feed := range c.apart {
		list = append(list, g.output(c.row, feed, 0))
	}
	return list
}
