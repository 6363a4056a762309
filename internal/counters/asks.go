package counters

import "slices"

// Asks tells whether Read of a tier asks a source, one that ReadError names:
// who opens sockets for each Read opens no more than it needs. What was found
// to be lacking is asked for now and then, so the answer is another at times.
func (r *Reader) Asks(source string, tier Tier) bool {
	return slices.ContainsFunc(r.groups, func(g *group) bool { return g.kernel == source && g.tiers.has(tier) && g.rest == 0 }) ||
		slices.ContainsFunc(r.others, func(q question) bool { return q.kernel == source && q.tier == tier && q.rest == 0 })
}
