package ethtool

// ShrinkArena leaves room for answers of n bytes only, right before the guard.
func (c *Client) ShrinkArena(n int) { c.arena = c.arena[len(c.arena)-n:] }
