"""Facts as a graph (seed 000, appendix F, Definition 22): what one principal's links build within a day, as a report.

A subject and an object are nodes, a fact is a link between them. ``graph.hub``: one principal links one node to many
that others introduced. ``graph.hijack``: from a node that others built, one principal links to many of their own.
``graph.cluster``: one principal links many of their own nodes to each other.

The paper flags a degree that lies kappa deviations above the others. Whoever writes much says what is usual there: one
principal's links made two of another's a hub, and hid a hub of their own. So these are numbers of one principal's links
in 24 hours, which nobody else's move. They see no link whose end is introduced only later, and not who share the work.
"""

from collections.abc import Iterator

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.facts import Fact
from memsluice.events.models import Write
from memsluice.gate.checks.claims import digest
from memsluice.gate.policy.graph import GraphPolicy
from memsluice.gate.state import windows
from memsluice.gate.state.graph_rows import NodeRow
from memsluice.gate.state.kinds import INNER, LINKS, NODE, CountsRow
from memsluice.gate.state.rows import SEPARATOR, RowKind, TenantRows
from memsluice.gate.state.tags import tag

BUILDERS_MAX = 4
"""Principals of a node whose links are counted by name: the first ones."""
DAY = {"bucket_ms": 4 * windows.HOUR_MS, "buckets": 6}
HUB, HIJACK, CLUSTER = "graph.hub", "graph.hijack", "graph.cluster"


def look(rows: TenantRows, write: Write, facts: tuple[Fact, ...], policy: GraphPolicy) -> Iterator[Finding]:
    """Yield what a write's facts build, together with their principal's others of the day; nothing is changed."""
    limits = {HUB: policy.hub_links, HIJACK: policy.hijack_links, CLUSTER: policy.inner_links}
    most, lines = dict[str, int](), dict[str, list[int]]()
    for line, counts in enumerate(_grown(rows.fork(), write, facts, 0), 1):
        for code, links in counts.items():
            if links >= limits[code]:
                lines.setdefault(code, []).append(line)
                most[code] = max(most.get(code, 0), links)
    for code in sorted(lines):
        yield Finding(code, Decision.ACCEPT, {"lines": lines[code], "links": most[code], "least": limits[code]})


def learn(rows: TenantRows, write: Write, facts: tuple[Fact, ...], ends_ms: int) -> None:
    """Add a write's facts, until it ends (Unix ms): it landed as guidance."""
    for _ in _grown(rows, write, facts, ends_ms):
        pass


def _grown(rows: TenantRows, write: Write, facts: tuple[Fact, ...], ends_ms: int) -> Iterator[dict[str, int]]:
    """Add links; yield of each how many of its kind its principal has added within a day."""
    by = tag(write.principal)
    for fact in facts:
        ends = [SEPARATOR.join((write.namespace, digest(one))) for one in (fact.subject, fact.object)]
        if ends[0] == ends[1]:
            yield {}
            continue
        known = [rows.get(NODE, end) for end in ends]
        counts = dict[str, int]()
        if all(node is not None and node.by == by for node in known):
            counts[CLUSTER] = _count(rows, INNER, by)
        for end, node, other in zip(ends, known, reversed(known), strict=True):
            code = _code(node, other, by)
            if code is not None:
                counts[code] = max(_count(rows, LINKS, SEPARATOR.join((by, code, end))), counts.get(code, 0))
            rows.put(NODE, end, _linked(node, by, ends_ms))
        yield counts


def _code(node: NodeRow | None, other: NodeRow | None, by: str) -> str | None:
    """Return what many links like this one would be, seen from one of its ends."""
    if other is None:
        return None
    if other.by != by:
        return HUB if node is None or node.by == by else None
    return HIJACK if node is not None and any(one != by for one in node.builders) else None


def _linked(node: NodeRow | None, by: str, ends_ms: int) -> NodeRow:
    if node is None:
        return NodeRow(by=by, builders=(by,), expires_ms=ends_ms)
    builders = tuple(dict.fromkeys((*node.builders, by)))[:BUILDERS_MAX]
    return NodeRow(by=node.by, builders=builders, expires_ms=max(ends_ms, node.expires_ms))


def _count(rows: TenantRows, kind: RowKind[CountsRow], row_id: str) -> int:
    number, live = windows.count(rows, kind, row_id, rows.now_ms, **DAY)
    windows.add(rows, kind, row_id, rows.now_ms, live, **DAY)
    return number + 1
