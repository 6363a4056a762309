package record

import "encoding/json"

// version is that of the lines which this release writes. Later ones change what
// is within Put, and leave the rest: so this release knows whose a line is, and
// whether it is gone.
const version = 1

// line is a line of the journal. With neither Put nor Removed it says something
// that only a later release understands.
type line struct {
	Version int             `json:"v"`
	ID      string          `json:"id,omitempty"` // of the container
	Put     json.RawMessage `json:"put,omitempty"`
	Planned bool            `json:"planned,omitempty"` // the Plan is that of the line before
	Removed bool            `json:"removed,omitempty"`
}

// kept is an attachment, and its line.
type kept struct {
	attachment Attachment
	raw        json.RawMessage // of a line that is not of this version, else nil
	size       int64           // bytes of its lines, about
	planned    *kept           // by the line with its Plan, where that is another
}

// written is a line as it is written: one of a large attachment is encoded once.
type written struct {
	Version int         `json:"v"`
	ID      string      `json:"id"`
	Put     *Attachment `json:"put,omitempty"`
	Planned bool        `json:"planned,omitempty"`
	Removed bool        `json:"removed,omitempty"`
}

// lineOf is the line of an attachment. A Plan, which is most of it, is written once.
func (m *memory) lineOf(a Attachment) written {
	w := written{Version: version, ID: a.ContainerID, Put: &a}
	if before := m.all[a.ContainerID]; a.Plan != nil && before != nil && before.raw == nil && before.attachment.Plan == a.Plan {
		a.Plan, w.Planned = nil, true
	}
	return w
}

// read is the attachment of a line. Of one that is not understood, there is the
// container ID at least.
func (l line) read(raw json.RawMessage) *kept {
	k := &kept{size: int64(len(raw))}
	if err := json.Unmarshal(l.Put, &k.attachment); err != nil {
		k.attachment, k.raw = Attachment{}, raw
	}
	k.attachment.ContainerID = l.ID
	if l.Version > version {
		k.attachment.Newer, k.raw = l.Version, raw
	}
	return k
}

// memory is what the lines of a journal come to.
type memory struct {
	all    map[string]*kept // by container ID
	others []json.RawMessage
	live   int64 // bytes of lines that count
}

func newMemory() *memory { return &memory{all: map[string]*kept{}} }

// apply adds what a line says.
func (m *memory) apply(raw json.RawMessage) {
	var l line
	switch err := json.Unmarshal(raw, &l); {
	case err != nil || l.ID == "" || l.Put == nil && !l.Removed:
		m.others = append(m.others, raw)
		m.live += int64(len(raw))
	case l.Removed:
		m.remove(l.ID)
	default:
		k := l.read(raw)
		if before := m.all[l.ID]; l.Planned && before != nil {
			k.keepPlan(before)
		}
		m.set(l.ID, k)
	}
}

// keepPlan takes over the Plan of an earlier line.
func (k *kept) keepPlan(before *kept) {
	k.attachment.Plan = before.attachment.Plan
	if k.planned = before.planned; k.planned == nil {
		k.planned = before
	}
	k.size += k.planned.size
}

func (m *memory) set(id string, k *kept) {
	m.remove(id)
	m.all[id] = k
	m.live += k.size
}

func (m *memory) remove(id string) {
	if k := m.all[id]; k != nil {
		m.live -= k.size
		delete(m.all, id)
	}
}

// lines are those that come to the same: what is not understood first.
func (m *memory) lines() []any {
	var list []any
	for _, raw := range m.others {
		list = append(list, raw)
	}
	for _, k := range m.sorted() {
		list = append(list, k.lines()...)
	}
	return list
}

// lines are those that come to the same: of a line that stays as it is, also that
// with its Plan.
func (k *kept) lines() []any {
	switch {
	case k.raw == nil:
		return []any{written{Version: version, ID: k.attachment.ContainerID, Put: &k.attachment}}
	case k.planned == nil:
		return []any{k.raw}
	}
	return append(k.planned.lines(), k.raw)
}
