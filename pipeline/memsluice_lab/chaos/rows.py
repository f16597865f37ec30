"""The rules of *screen*'s changelog: what a row said for good it says in every later version, and in the last one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from msgspec import UNSET

from memsluice.errors import StateError
from memsluice.events.models import Action, Command
from memsluice.events.records import Record
from memsluice.gate.state.kinds import CHAIN, ENTRY, EVENT, POSITION, SESSION, EntryRow
from memsluice.gate.state.rows import row_key
from memsluice_lab.chaos.checker import Reading, Said, Violation, tainted_since

Row = tuple[int, bytes]
"""Partition and key."""


def row_violations(changelog: Sequence[Record], said: Said, reading: Reading) -> Iterator[Violation]:
    """Yield every row that went back, and every last row that does not say what was decided."""
    last: dict[Row, bytes | None] = {}
    for record in changelog:
        row = (record.partition, record.key or b"")
        before = last.get(row)
        if before is not None and record.value is not None:
            yield from _step(record, before, record.value)
        last[row] = record.value
    latest = {row: value for row, value in last.items() if value is not None}
    yield from _last(latest, said, reading)


def _step(record: Record, before: bytes, after: bytes) -> Iterator[Violation]:
    tenant, _, rest = (record.key or b"").partition(b"\0")
    kind, _, row_id = rest.partition(b"\0")
    rule = _RULES.get(kind.decode())
    if rule is None:
        return
    try:
        broken = rule(before, after)
    except StateError as error:
        broken = str(error)
    if broken:
        where = f"{tenant.decode() or 'partition'} {kind.decode()} {row_id.decode('utf-8', 'replace')}"
        yield Violation("rows", f"[{record.partition}]@{record.offset} {where}: {broken}")


def _position(before: bytes, after: bytes) -> str:
    was, now = POSITION.load(before), POSITION.load(after)
    back = (now.offset if now.offset is not None else -1) < (was.offset if was.offset is not None else -1)
    return f"offset {now.offset} after {was.offset}" if back or now.clock_ms < was.clock_ms else ""


def _session(before: bytes, after: bytes) -> str:
    return "taint is gone" if SESSION.load(before).taint and not SESSION.load(after).taint else ""


def _entry(before: bytes, after: bytes) -> str:
    was, now = ENTRY.load(before), ENTRY.load(after)
    if _gone(was) and now.landed:
        return "lies in memory again after its withdrawal"
    if was.revoked and not now.revoked:
        return "its revocation is gone"
    return f"version {now.version} after {was.version}" if now.version < was.version else ""


def _gone(row: EntryRow) -> bool:
    return row.gone is not UNSET and row.gone is not None


def _chain(before: bytes, after: bytes) -> str:
    was, now = CHAIN.load(before), CHAIN.load(after)
    back = now.seq < was.seq or (now.seq == was.seq and now.digest != was.digest)
    return f"link {now.seq} after {was.seq}" if back else ""


def _event(before: bytes, after: bytes) -> str:
    was, now = EVENT.load(before), EVENT.load(after)
    same = (was.topic, was.offset) == (now.topic, now.offset)
    return "other content of the same record" if same and was.digest != now.digest else ""


_RULES: Mapping[str, Callable[[bytes, bytes], str]] = {
    POSITION.name: _position,
    SESSION.name: _session,
    ENTRY.name: _entry,
    CHAIN.name: _chain,
    EVENT.name: _event,
}


def _last(rows: Mapping[Row, bytes], said: Said, reading: Reading) -> Iterator[Violation]:
    """Yield what the last rows, which a recovery reads, lack of what was acknowledged and decided."""
    decided = {place: payload for place, payload in said.items() if place in reading.verdicts}
    partition_of = {payload.tenant: place[1] for place, payload in said.items()}
    for tenant, session in tainted_since(decided):
        value = rows.get((partition_of[tenant], row_key(tenant, SESSION.name, session)))
        if value is None or not SESSION.load(value).taint:
            yield Violation("rows", f"the last row of session {session} of {tenant} has no taint")
    ends: dict[tuple[int, str], int] = {}
    for topic, partition, offset in decided:
        ends[partition, topic] = max(offset, ends.get((partition, topic), offset))
    for (partition, topic), offset in ends.items():
        value = rows.get((partition, POSITION.key("", topic)))
        stands = POSITION.load(value).offset if value is not None else None
        if stands is None or stands < offset:
            yield Violation("rows", f"the last position of {topic}[{partition}] is {stands}, {offset} is decided")
    yield from _removed(rows, decided, reading, partition_of)
    yield from _chains(rows, reading, partition_of)


def _removed(
    rows: Mapping[Row, bytes], decided: Said, reading: Reading, partition_of: Mapping[str, int]
) -> Iterator[Violation]:
    for place, payload in decided.items():
        if isinstance(payload, Command) and payload.action is Action.WITHDRAW and reading.verdicts[place].withdraws:
            value = rows.get((partition_of[payload.tenant], row_key(payload.tenant, ENTRY.name, payload.target)))
            if value is not None and ENTRY.load(value).landed:
                yield Violation("rows", f"the last row of {payload.target} says that it lies in memory: it was removed")


def _chains(rows: Mapping[Row, bytes], reading: Reading, partition_of: Mapping[str, int]) -> Iterator[Violation]:
    ends: dict[str, tuple[int, bytes]] = {}
    for place, verdict in reading.verdicts.items():
        if verdict.chain_seq > ends.get(verdict.tenant, (-1, b""))[0]:
            ends[verdict.tenant] = (verdict.chain_seq, reading.audited[place])
    for tenant, (number, audited) in ends.items():
        if tenant not in partition_of:
            continue
        value = rows.get((partition_of[tenant], row_key(tenant, CHAIN.name)))
        row = CHAIN.load(value) if value is not None else None
        if row is None or (row.seq, row.digest) != (number, sha256(audited).hexdigest()):
            yield Violation("rows", f"the last chain row of {tenant} is not of its last audit record, {number}")
