package driver

import "context"

// verbs are all orders that a running cluster takes.
var verbs = []verb{
	quietly("stop", func(_ context.Context, c *Cluster, o Order) error { return c.Stop(o.Machine, o.Component) }),
	quietly("kill", func(_ context.Context, c *Cluster, o Order) error { return c.Kill(o.Machine, o.Component) }),
	quietly("pause", func(_ context.Context, c *Cluster, o Order) error { return c.Pause(o.Machine, o.Component) }),
	quietly("resume", func(_ context.Context, c *Cluster, o Order) error { return c.Resume(o.Machine, o.Component) }),
	quietly("restart", func(ctx context.Context, c *Cluster, o Order) error { return c.Restart(ctx, o.Machine, o.Component) }),
	quietly("crash", func(_ context.Context, c *Cluster, o Order) error { return c.Crash(o.Machine) }),
	quietly("boot", func(ctx context.Context, c *Cluster, o Order) error { return c.Boot(ctx, o.Machine) }),
	quietly("reboot", func(ctx context.Context, c *Cluster, o Order) error { return c.Reboot(ctx, o.Machine) }),
	quietly("cut", func(_ context.Context, c *Cluster, o Order) error { return c.Cut(o.Machine, o.Link) }),
	quietly("mend", func(_ context.Context, c *Cluster, o Order) error { return c.Mend(o.Machine, o.Link) }),
	quietly("fill", func(_ context.Context, c *Cluster, o Order) error { return c.Fill(o.Machine) }),
	quietly("free", func(_ context.Context, c *Cluster, o Order) error { return c.Free(o.Machine) }),
	{"load", func(ctx context.Context, c *Cluster, o Order) (string, error) { return c.Load(ctx, o.Path) }},
	{"forward", func(_ context.Context, c *Cluster, o Order) (string, error) { return c.Forward(o.Machine, o.Address) }},
}
