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
	Plan    uint64          `json:"plan,omitempty"`    // number of its Plan, for later lines
	Planned uint64          `json:"planned,omitempty"` // number of an earlier line's Plan, which is this one's too
	Removed bool            `json:"removed,omitempty"`
}

// kept is an attachment, and its line.
type kept struct {
	attachment Attachment
	raw        json.RawMessage // of a line that is not of this version, else nil
	size       int64           // bytes of its lines, about
	plan       uint64          // number of the Plan; 0: no later line can have it
	planSize   int64           // bytes of the line with the Plan
	planLine   *kept           // that line, where raw builds on it
}

// written is a line as it is written: one of a large attachment is encoded once.
type written struct {
	Version int         `json:"v"`
	ID      string      `json:"id"`
	Put     *Attachment `json:"put,omitempty"`
	Plan    uint64      `json:"plan,omitempty"`
	Planned uint64      `json:"planned,omitempty"`
	Removed bool        `json:"removed,omitempty"`
}

// lineOf is the line of an attachment. A Plan, which is most of it, is written once.
func (m *memory) lineOf(a Attachment) written {
	w := written{Version: version, ID: a.ContainerID, Put: &a}
	before := m.all[a.ContainerID]
	switch {
	case a.Plan == nil:
	case before != nil && before.raw == nil && before.plan != 0 && before.attachment.Plan == a.Plan:
		a.Plan, w.Planned = nil, before.plan
	default:
		m.plans++
		w.Plan = m.plans
	}
	return w
}

// read is the attachment of a line. Of one that is not understood, there is the
// container ID at least.
func (l line) read(raw json.RawMessage) *kept {
	k := &kept{size: int64(len(raw)), plan: l.Plan, planSize: int64(len(raw))}
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
	live   int64  // bytes of lines that count
	plans  uint64 // the highest number of a Plan
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
		m.plans = max(m.plans, l.Plan, l.Planned)
		if l.Planned != 0 {
			k.keepPlan(l.Planned, m.all[l.ID])
		}
		m.set(l.ID, k)
	}
}

// keepPlan takes over the Plan of a number from an earlier line, if it is there.
func (k *kept) keepPlan(number uint64, before *kept) {
	if before == nil || before.plan != number {
		k.attachment.PlanLost = true
		return
	}
	k.attachment.Plan, k.attachment.PlanLost = before.attachment.Plan, before.attachment.PlanLost
	k.plan, k.planSize = number, before.planSize
	k.size += k.planSize
	if k.raw != nil {
		k.planLine = before.withPlan()
	}
}

// withPlan is the line that has the Plan of an attachment.
func (k *kept) withPlan() *kept {
	if k.planLine != nil {
		return k.planLine
	}
	return k
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
		return []any{written{Version: version, ID: k.attachment.ContainerID, Put: &k.attachment, Plan: k.plan}}
	case k.planLine == nil:
		return []any{k.raw}
	}
	return append(k.planLine.lines(), k.raw)
}
