"""Seed 001's operational semantics as a small executable model: the oracle that the production core is compared with.

:mod:`.state` has S = (M, B), :mod:`.actions` the actions a, :mod:`.rules` the transitions of READ and WRITE,
:mod:`.orders` those of PROMOTE and the other commands, :mod:`.transition` S --a--> S'.
They are written from the paper and from the project's own design, import no module of the gate, and are meant to be
read beside the paper. What goes beyond the paper (five tiers, two zones, holding, expiry, sessions that the platform
opens, commands) is the design's, and said so where it comes in.

:mod:`.production` drives the real core and the real *screen* stage by the same actions, :mod:`.compare` holds both side
by side and checks Theorem 1, :mod:`.walk` makes random sequences from a seed.
"""
