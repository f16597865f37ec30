"""Facts beside the facts of others (seed 000's synonym gap, appendix F): contradiction and corroboration, as a report.

``claims.contradicts``: some independent principals say another object of the same subject by the same relation,
and more of them than say the same. ``claims.corroborated``: so many say the same, and more than say anything else.
Nothing is held for it and nothing let go: two principals who speak first could otherwise lock everybody else out.

What counts is each principal's last word that lies in guidance now, in the namespace, and not for a session alone. Rows
have digests of words without a key: whoever reads a worker's state can test guesses, as they can by its other rows.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

from msgspec import UNSET

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.facts import Fact
from memsluice.events.models import Visibility, Write
from memsluice.gate.policy.graph import GraphPolicy
from memsluice.gate.state.graph_rows import ClaimRow, RelationRow, Said
from memsluice.gate.state.kinds import CLAIM, ENTRY, RELATION
from memsluice.gate.state.placement import overtaken
from memsluice.gate.state.rows import SEPARATOR, TenantRows
from memsluice.gate.state.tags import tag
from memsluice.gate.unicode import normalise

SAID_MAX, EACH_MAX, MANY_MAX, TOLD_MAX = 24, 4, 8, 4
"""Statements of a claim that are kept, one principal's of them, principals of a relation; entries that are named."""
_OWN = (
    *("i", "me", "my", "mine", "myself", "we", "us", "our", "he", "him", "his", "she", "her", "they", "them", "their"),
    *("it", "this", "that", "somebody", "someone", "user", "person", "customer", "client", "name"),
)
"""First or last words of subjects that are somebody else in everybody's mouth: nobody contradicts another there."""
_REDACTED, _ARTICLE = "[redacted:", "the "


def look(rows: TenantRows, write: Write, facts: tuple[Fact, ...], policy: GraphPolicy) -> Iterator[Finding]:
    """Yield what a write's facts are beside those of others; nothing is changed."""
    against, same, principals = dict[int, tuple[str, ...]](), list[int](), 0
    for line, fact in enumerate(facts, 1):
        others = _others(rows, write, fact)
        mine = others.pop(digest(fact.object), set())
        most = max(others.values(), key=len, default=set())
        if len(most) >= policy.agree and len(most) > len(mine) and _single(rows, fact, policy):
            against[line] = tuple(sorted(one.entry for one in most))
            principals = max(principals, len(most))
        elif len(mine) >= policy.agree and len(mine) > len(most):
            same.append(len(mine))
    if against:
        entries = sorted({entry for some in against.values() for entry in some})[:TOLD_MAX]
        detail = {"lines": sorted(against), "principals": principals, "against": entries}
        yield Finding("claims.contradicts", Decision.ACCEPT, detail)
    if facts and len(same) == len(facts):
        yield Finding("claims.corroborated", Decision.ACCEPT, {"principals": min(same)})


def learn(rows: TenantRows, write: Write, offset: int, facts: tuple[Fact, ...], ends_ms: int) -> None:
    """Remember what a write says that landed as guidance, until it ends (Unix ms); ``offset`` is that of the intake."""
    if write.visibility is Visibility.SESSION:
        return
    by, objects = tag(write.principal), dict[str, set[str]]()
    for fact in facts:
        name = _claim(write, fact)
        if name is None:
            continue
        row = rows.get(CLAIM, name)
        new = Said(digest(fact.object), write.id, offset, by)
        said = (*(one for one in (() if row is None else row.said) if one != new), new)
        rows.put(CLAIM, name, ClaimRow(said=_kept(rows, said), expires_ms=max(ends_ms, row.expires_ms if row else 0)))
        objects.setdefault(name, set()).add(new.object)
        if len(objects[name]) > 1:  # one write says several things of one subject: that is no correction
            _many(rows, fact, new, ends_ms)


def digest(*words: str) -> str:
    """Return 12 hex digits of words as screening reads them, whatever their case, an article or an end."""
    read = (normalise(one).strip(" .,;:!?\"'").removeprefix(_ARTICLE) for one in words)
    return blake2b(SEPARATOR.join(read).encode(errors="replace"), digest_size=6).hexdigest()


def live(rows: TenantRows, event_id: str, offset: int) -> bool:
    """Whether the entry of this place in the intake lies in guidance now."""
    row = rows.get(ENTRY, event_id)
    if row is None or row.offset != offset or not row.landed or row.taint or row.gone not in (UNSET, None):
        return False
    return not overtaken(rows, event_id, row)


def _claim(write: Write, fact: Fact) -> str | None:
    """Return the id of what is said of a subject by a relation; None where it is nobody else's to say."""
    words = normalise(fact.subject).replace("'", " ").split()
    if _REDACTED in fact.object or not words or words[0] in _OWN or words[-1] in _OWN:
        return None
    return SEPARATOR.join((write.namespace, digest(fact.subject, fact.relation)))


def _others(rows: TenantRows, write: Write, fact: Fact) -> dict[str, set[Said]]:
    """Return what others say, by object: the last word of each."""
    name = _claim(write, fact)
    row = None if name is None else rows.get(CLAIM, name)
    by, last = tag(write.principal), dict[str, Said]()
    for said in () if row is None else row.said:
        if said.by != by and live(rows, said.entry, said.offset):
            last[said.by] = said
    others = dict[str, set[Said]]()
    for said in last.values():
        others.setdefault(said.object, set()).add(said)
    return others


def _single(rows: TenantRows, fact: Fact, policy: GraphPolicy) -> bool:
    """Whether a relation says one thing of a subject: fewer principals than agree say several in one entry."""
    row = rows.get(RELATION, digest(fact.relation))
    many = () if row is None else row.many
    return len({one.by for one in many if live(rows, one.entry, one.offset)}) < policy.agree


def _many(rows: TenantRows, fact: Fact, said: Said, ends_ms: int) -> None:
    name = digest(fact.relation)
    row = rows.get(RELATION, name)
    many = (*(one for one in (() if row is None else row.many) if one.by != said.by), said)
    ends_ms = max(ends_ms, row.expires_ms if row else 0)
    rows.put(RELATION, name, RelationRow(many=many[-MANY_MAX:], expires_ms=ends_ms))


def _kept(rows: TenantRows, said: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return as many as are kept: the last few of each principal; beyond, what lies there no more goes first, then the
    oldest of whoever said the most. So it takes SAID_MAX other principals to push somebody's one statement out."""
    places = Counter[str]()
    kept = list[Said]()
    for one in reversed(said):
        places[one.by] += 1
        if places[one.by] <= EACH_MAX:
            kept.insert(0, one)
    if len(kept) > SAID_MAX:
        kept = [one for one in kept[:-1] if live(rows, one.entry, one.offset)] + kept[-1:]
    while len(kept) > SAID_MAX:
        counts = Counter(one.by for one in kept)
        most = max(counts.values())
        kept.remove(next(one for one in kept if counts[one.by] == most))
    return tuple(kept)
