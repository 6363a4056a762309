// Package granter decides centrally which node has which addresses, and commits
// it: one Round reads what all leases ask for and give back, writes each ledger
// that changes once, by compare-and-swap, and then tells the nodes by their
// leases' statuses. Never does it take an address by time, and never does it
// tell a node of an address before the ledger says so.
//
// Why nothing is given twice, whoever else believes to be the leader:
//
//   - A write of a ledger is the commit of a grant (R1). Each grant has an epoch
//     of its own (R3), so a return names one grant and no later one (R2a).
//   - A status adds or withdraws grants only if the ledger that says so was
//     proven current after the lease was read (R1).
//   - What is taken from a node that did not give it back (fenced, gone, replaced)
//     is withdrawn from its lease first (R9): that write proves the lease read
//     was the newest, and makes what a paused leader still has to publish
//     conflict.
//   - What a ledger says is a node's and its status does not show is granted
//     again, under a new epoch, before it is published: whether it was published
//     and withdrawn before, perhaps by another leader, does not matter then.
//   - An address of overlapping pools is granted out of one ledger only: each
//     says what it gives, none gives what another one gives or holds, and one
//     that gives more than before publishes nothing of it until all ledgers were
//     read after that write. Of two leaders that saw different pools, at least
//     one finds the other's, then.
//   - A ledger that was deleted in spite of its finalizer is made again from what
//     is remembered and what statuses show, and grants nothing before each lease
//     was written and no node has a lease that the view lacks.
//
// What is left, and why that is accepted:
//
//   - Such a ledger is deleted while no leader runs that remembers it. What
//     nobody was told of is lost with it: addresses that identities keep while
//     they are on no node (they get others), and quarantine (the addresses are
//     free, but for those of pods that the view has as taken). If a leader is
//     paused between its write of that very ledger and the status, for longer
//     than another one takes to create it anew and to grant out of it, both may
//     publish one address. That takes an administrator who removes a finalizer,
//     the loss of one leader and the pause of another within one round.
//   - A ledger is being made again, and neither the view nor any other ledger
//     knows of a node whose lease is there. That takes a node that joined within
//     the delay of the watches of both Node and lease, besides the deletion.
//   - Two leaders that saw different pools granted an address out of two ledgers
//     before either had read the other's: it is published by neither, and is of
//     no use until one of the pools does not have it any more. Two pools that
//     both have an address: the ledger that gave it first goes on to.
//   - A quarantined address that no pool has any more stays in the ledger of its
//     pool, be that gone: a pool that comes later and has it takes it over. Until
//     then the ledger is there, unless an administrator deletes it, or releases
//     what is in it: that is the word that nobody uses it, and is believed.
//   - As long as one ledger cannot be read, a node that was installed anew is not
//     told of anything: what that ledger may say of its name is its predecessor's.
//   - What a node holds that is there and has no lease stays its: an agent makes
//     its lease again, or the node is fenced, or goes.
package granter
