"""Facts as a graph (seed 000, appendix F, Definition 22): what a fact contradicts, and what one writer's facts build.

A subject and an object are nodes, a fact is an edge. Five things are found of a write of kind ``facts``:

- ``graph.contradicts``: some independent principals agree on another object. Not of a relation by which such principals
  each said several things of one subject: those are many-valued.
- ``graph.corroborated``: so many others said the same; it speaks for the write.
- ``graph.hub``: z_deg(v) > kappa_deg, where one principal hung most of a node's edges to nodes that others introduced.
- ``graph.hijack``: of the last edges of a node that others built, too many lead to nodes which one principal prepared.
- ``graph.cluster``: a principal closes rings among nodes of his own, more in a day than people do.

What counts is what lies in guidance now: an entry that was taken out, tainted or has expired says nothing any more. The
label of a write does not go by it. Rows have digests and no words; a write adds few, and each keeps so much.
"""

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from msgspec import UNSET

from memsluice.envelope.verdict import Decision, Finding
from memsluice.errors import InputError
from memsluice.events.facts import Fact, parse
from memsluice.events.models import Kind, Write
from memsluice.gate.policy.graph import GraphPolicy
from memsluice.gate.state import windows
from memsluice.gate.state.kinds import (
    CLAIM,
    CLOSED,
    DEGREES,
    ENTRY,
    NODE,
    RELATION,
    ClaimRow,
    DegreesRow,
    Edge,
    NodeRow,
    RelationRow,
    Said,
)
from memsluice.gate.state.rows import SEPARATOR, TenantRows
from memsluice.gate.state.tags import tag

SAID_MAX, EDGES_MAX, MANY_MAX = 16, 32, 8
"""Statements of a claim, edges of a node and principals of a relation that are kept: the last ones."""
NODES_MIN, BUILT_MIN = 50, 3
"""Edges seen before degrees are compared, and edges of others that make a node theirs."""
FORGET = 1 / 1_000
"""Weight of the newest degree once so many were seen."""
_NEW, _OWN, _FOREIGN = range(3)
"""Of whom a node is that an edge leads to."""
AGE_MS = 365 * windows.DAY_MS
DAY = {"bucket_ms": windows.HOUR_MS, "buckets": 24}


@dataclass(slots=True)
class Found:
    """What a write's facts are, beside what is known: numbers of lines by code, and details. ``corroborated``: all."""

    lines: dict[str, list[int]] = field(default_factory=dict)
    numbers: dict[str, dict[str, float]] = field(default_factory=dict)
    corroborated: bool = False

    def mark(self, code: str, line: int, **numbers: float) -> None:
        """Note what one line is; of the numbers the highest stay."""
        self.lines.setdefault(code, []).append(line)
        known = self.numbers.setdefault(code, {})
        known.update({name: max(value, known.get(name, value)) for name, value in numbers.items()})

    def findings(self, asks: Decision) -> Iterator[Finding]:
        """Yield them; what speaks against the write asks for so much."""
        for code, lines in self.lines.items():
            decision = Decision.ACCEPT if code == "graph.corroborated" else asks
            yield Finding(code, decision, {"lines": sorted(set(lines)), **self.numbers[code]})


def look(rows: TenantRows, write: Write, policy: GraphPolicy) -> Found:
    """Return what a write's facts are beside those that lie in guidance; nothing is changed."""
    found, facts = Found(), _facts(write, policy)
    by, agreed = tag(write.principal), 0
    for line, fact in enumerate(facts, 1):
        others = _others(rows, fact, by)
        same = len(others.pop(_digest(fact.object), ()))
        most = max(map(len, others.values()), default=0)
        if same >= policy.agree:
            agreed += 1
        elif not same and most >= policy.agree and _single(rows, fact, policy):
            found.mark("graph.contradicts", line, principals=most)
    if facts and agreed == len(facts):
        found.corroborated = True
        found.mark("graph.corroborated", 1, principals=policy.agree)
        found.lines["graph.corroborated"] = list(range(1, len(facts) + 1))
    view = rows.fork()
    for line, fact in enumerate(facts, 1):
        _grow(view, fact, by, policy, line, found)
    return found


def learn(rows: TenantRows, write: Write, policy: GraphPolicy) -> None:
    """Take a write's facts into the graph: it landed as guidance."""
    by = tag(write.principal)
    for line, fact in enumerate(_facts(write, policy), 1):
        _say(rows, fact, by, write.id)
        _grow(rows, fact, by, policy, line, Found())


def _facts(write: Write, policy: GraphPolicy) -> tuple[Fact, ...]:
    if write.kind is not Kind.FACTS or policy.action == "off":
        return ()
    try:
        return parse(write.content)
    except InputError:  # which :mod:`.facts` says
        return ()


def _digest(*words: str) -> str:
    """Return 16 hex digits of words, whatever their case, width and spaces."""
    folded = [" ".join(unicodedata.normalize("NFKC", one).casefold().split()) for one in words]
    return blake2b(SEPARATOR.join(folded).encode(errors="replace"), digest_size=8).hexdigest()


def _live(rows: TenantRows, event_id: str) -> bool:
    entry = rows.get(ENTRY, event_id)
    return entry is not None and entry.landed and not entry.taint and entry.gone in (UNSET, None)


def _others(rows: TenantRows, fact: Fact, by: str) -> dict[str, set[str]]:
    """Return who else says what of a fact's subject by its relation: principals by object."""
    row, found = rows.get(CLAIM, _digest(fact.subject, fact.relation)), dict[str, set[str]]()
    for said in () if row is None else row.said:
        if said.by != by and _live(rows, said.entry):
            found.setdefault(said.object, set()).add(said.by)
    return found


def _single(rows: TenantRows, fact: Fact, policy: GraphPolicy) -> bool:
    """Whether a relation says one thing of a subject: fewer principals than agree said several."""
    row = rows.get(RELATION, _digest(fact.relation))
    return row is None or len(row.many) < policy.agree


def _say(rows: TenantRows, fact: Fact, by: str, event_id: str) -> None:
    claim, relation = _digest(fact.subject, fact.relation), _digest(fact.relation)
    row, new = rows.get(CLAIM, claim), Said(_digest(fact.object), event_id, by)
    known = () if row is None else row.said
    ends_ms = rows.now_ms + AGE_MS
    own = (one for one in known if one.by == by and one.object != new.object)
    if any(one.entry == event_id or _live(rows, one.entry) for one in own):
        many = rows.get(RELATION, relation)
        names = dict.fromkeys((*(() if many is None else many.many), by))
        rows.put(RELATION, relation, RelationRow(many=tuple(names)[:MANY_MAX], expires_ms=ends_ms))
    kept = (*(one for one in known if (one.by, one.object) != (by, new.object)), new)
    rows.put(CLAIM, claim, ClaimRow(said=_fair(kept), expires_ms=ends_ms))


def _fair(said: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return as many as are kept: of whoever said the most the oldest goes first, so nobody pushes out another."""
    kept = list(said)
    while len(kept) > SAID_MAX:
        counts = {one.by: sum(other.by == one.by for other in kept) for one in kept}
        loudest = max(counts.values())
        kept.remove(next(one for one in kept if counts[one.by] == loudest))
    return tuple(kept)


def _grow(rows: TenantRows, fact: Fact, by: str, policy: GraphPolicy, line: int, found: Found) -> None:
    """Add an edge, and mark what its ends have become."""
    ends = _digest(fact.subject), _digest(fact.object)
    if ends[0] == ends[1]:
        return
    known = [rows.get(NODE, end) for end in ends]
    if any(edge.to == ends[1] for edge in (() if known[0] is None else known[0].edges)):
        return  # said before, perhaps in other words
    if all(node is not None and node.by == by for node in known):
        _closed(rows, by, policy, line, found)
    for at, node in enumerate(known):
        other = known[1 - at]
        leads = _NEW if other is None else _OWN if other.by == by else _FOREIGN
        edge = Edge(by=by, ms=rows.now_ms, to=ends[1 - at], leads=leads)
        edges = (*(() if node is None else node.edges), edge)[-EDGES_MAX:]
        degree = 1 if node is None else node.degree + 1
        now = NodeRow(by=by if node is None else node.by, degree=degree, edges=edges, expires_ms=rows.now_ms + AGE_MS)
        _marked(now, by, _degree_z(rows, degree), policy, line, found, rows.now_ms)
        rows.put(NODE, ends[at], now)


def _closed(rows: TenantRows, by: str, policy: GraphPolicy, line: int, found: Found) -> None:
    number, live = windows.count(rows, CLOSED, by, rows.now_ms, **DAY)
    windows.add(rows, CLOSED, by, rows.now_ms, live, **DAY)
    if number >= policy.rings_per_day:
        found.mark("graph.cluster", line, rings=number + 1)


def _degree_z(rows: TenantRows, degree: int) -> float:
    """Return how far a degree lies above those of other nodes, in deviations of logarithms.

    A node counts once for each doubling of its degree: few large ones are not most of what is usual.
    """
    row, value = rows.get(DEGREES, "0") or DegreesRow(seen=0, mean=0.0, square=0.0), math.log(degree)
    spread = math.sqrt(max(row.square - row.mean**2, 0.0))
    if degree & (degree - 1) == 0:
        weight = max(1 / (row.seen + 1), FORGET)
        mean, square = row.mean + weight * (value - row.mean), row.square + weight * (value**2 - row.square)
        rows.put(DEGREES, "0", DegreesRow(seen=row.seen + 1, mean=round(mean, 6), square=round(square, 6)))
    return (value - row.mean) / spread if row.seen >= NODES_MIN and spread > 0 else 0.0


def _marked(node: NodeRow, by: str, z: float, policy: GraphPolicy, line: int, found: Found, now_ms: int) -> None:
    own = [edge for edge in node.edges if edge.by == by]
    foreign = sum(edge.leads == _FOREIGN for edge in own)
    if z > policy.kappa_degree and 2 * len(own) > len(node.edges) and 2 * foreign > len(own):
        found.mark("graph.hub", line, degree=node.degree, z=round(z, 2))
    built = node.degree - len(own)
    leading = sum(edge.leads == _OWN and edge.ms > now_ms - windows.DAY_MS for edge in own)
    share = leading / len(node.edges)
    if node.by != by and built >= BUILT_MIN and share > policy.contamination:
        found.mark("graph.hijack", line, share=round(share, 2))
