package boards

import "railhead/hack/dashboards/grafana"

// pageWidth is the width of Grafana's grid.
const pageWidth = 24

// page puts panels beside each other from left to right and numbers them.
type page struct {
	next   int // the id of the next panel
	x, y   int // where the next one goes
	height int // of the highest in this line
}

// header begins a row.
func (p *page) header(title string) grafana.Panel {
	p.endLine()
	closed := false
	row := grafana.Panel{
		ID: p.next, Type: "row", Title: title,
		GridPos:   grafana.GridPos{H: 1, W: pageWidth, X: 0, Y: p.y},
		Collapsed: &closed, Panels: &[]grafana.Panel{},
	}
	p.next++
	p.y++
	return row
}

// place gives a panel its number and place.
func (p *page) place(panel *grafana.Panel) {
	if p.x+panel.GridPos.W > pageWidth {
		p.endLine()
	}
	panel.ID = p.next
	panel.GridPos.X, panel.GridPos.Y = p.x, p.y
	p.next++
	p.x += panel.GridPos.W
	p.height = max(p.height, panel.GridPos.H)
}

// endLine lets the next panel begin at the left, below all others.
func (p *page) endLine() {
	p.x, p.y, p.height = 0, p.y+p.height, 0
}
