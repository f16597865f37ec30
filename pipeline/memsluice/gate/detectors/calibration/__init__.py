"""Calibration: what is usual for a tenant, as one component with one interface and several strategies.

A stream of scores of writes that landed over a trusted channel says where the line lies. :mod:`.state` keeps them
(bounded, serialisable, idempotent per event id), :func:`.strategies.strategy` gives the rule that a policy names, and
its ``judge`` says of one more score whether it is beyond the line, and how well the tenant is known
(:class:`.base.Phase`).
"""
