"""A write of kind ``facts`` beside the tenant's other facts: what is told of it, and what it leaves."""

from collections.abc import Iterator

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Finding
from memsluice.errors import InputError
from memsluice.events.facts import Fact, parse
from memsluice.events.models import Kind, Write
from memsluice.gate.checks import claims, graph
from memsluice.gate.policy.model import DAY_MS, Policy
from memsluice.gate.state.rows import TenantRows

DAYS_MAX = 365
"""Days that facts are remembered whose entry never expires, or later than that."""


def look(rows: TenantRows, write: Write, policy: Policy) -> Iterator[Finding]:
    """Yield what a write's facts are beside those that lie in guidance; nothing is changed, nothing asked for."""
    facts = _facts(write, policy)
    if facts:
        yield from claims.look(rows, write, facts, policy.graph)
        yield from graph.look(rows, write, facts, policy.graph)


def learn(rows: TenantRows, entry: Sealed, policy: Policy) -> None:
    """Remember a write's facts for as long as it lies in guidance, DAYS_MAX at most."""
    write, identity = entry.payload, entry.identity
    assert isinstance(write, Write)
    assert identity is not None
    facts = _facts(write, policy)
    if facts:
        last = rows.now_ms + DAYS_MAX * DAY_MS
        ends_ms = min(policy.expires_ms(identity.tier, rows.now_ms) or last, last)
        claims.learn(rows, write, entry.position.offset, facts, ends_ms)
        graph.learn(rows, write, facts, ends_ms)


def _facts(write: Write, policy: Policy) -> tuple[Fact, ...]:
    if write.kind is not Kind.FACTS or policy.graph.action == "ignore":
        return ()
    try:
        return parse(write.content)
    except InputError:  # of which :mod:`.facts` tells
        return ()
