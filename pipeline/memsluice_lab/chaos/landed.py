"""The rules of the store and its log: versions only grow, what was removed stays away, and both say the same."""

from collections.abc import Iterator, Mapping, Set

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import StoreRecord
from memsluice.events.models import Zone
from memsluice.recall.freshness import verified
from memsluice.topics import names
from memsluice_lab.chaos.checker import Reading, Violation
from memsluice_lab.chaos.compaction import ROLLED
from memsluice_lab.chaos.logs import Object, Picture


def store_violations(
    picture: Picture,
    reading: Reading,
    keyring: Keyring,
    *,
    now_ms: int,
    whole: bool = True,
    refused: Set[tuple[Object, int]] = frozenset(),
) -> Iterator[Violation]:
    """Yield what is wrong with the store and its log. ``whole``: every landing is through, so what is missing is lost.
    ``refused`` are objects and versions that the store does not take, which are dead letters: the version before each
    is what is asked for.

    What expires is left out once it has (``now_ms``, Unix ms): nobody promises when it leaves the store.
    """
    tenants = {tenant for tenant, _zone in picture.counts}
    last: dict[Object, StoreRecord] = {}
    for record in picture.of(names.STORE):
        if record.value is None or record.key == ROLLED:
            continue
        stored = verified(keyring, record.value)
        if stored is None:
            yield Violation("unsigned", f"{record.topic}[{record.partition}]@{record.offset}")
            continue
        if stored.tenant not in tenants:
            continue
        name = (stored.tenant, Zone(stored.zone), stored.object_id)
        before = last.get(name)
        if before is not None and _back(before, stored):
            what = f"@{record.offset}: {_said(stored)} after {_said(before)}"
            yield Violation("store", f"{name} went back {what}")
        last[name] = stored
    gone = refused - {(name, stored.version) for name, stored in last.items()}  # of those, some were taken later
    asked = {name: one for name, one in wanted(reading, gone).items() if name[0] in tenants}
    yield from _asked(last, asked, now_ms, whole=whole)
    yield from _lies(last, picture, now_ms)


def _back(before: StoreRecord, after: StoreRecord) -> bool:
    if after.version == before.version:
        return before.withdrawn and not after.withdrawn
    return after.version < before.version


def _expired(stored: StoreRecord, now_ms: int) -> bool:
    return stored.expires_ms is not None and stored.expires_ms <= now_ms


def _said(stored: StoreRecord) -> str:
    return f"{'withdrawal' if stored.withdrawn else 'version'} {stored.version}"


def wanted(reading: Reading, refused: Set[tuple[Object, int]] = frozenset()) -> dict[Object, tuple[int, bool]]:
    """Return, for every object that verdicts speak of, the last version that they ask for, but for those ``refused``,
    and whether it stays."""
    asked: dict[Object, tuple[int, bool]] = {}
    for verdict in reading.verdicts.values():
        moves = [(one.object_id, one.zone, False) for one in verdict.withdraws]
        if verdict.object_id is not None and verdict.zone is not None:
            moves.append((verdict.object_id, verdict.zone, True))
        for object_id, zone, stays in moves:
            name = (verdict.tenant, zone, object_id)
            if (name, verdict.sealed_offset) not in refused:
                asked[name] = max(asked.get(name, (-1, False)), (verdict.sealed_offset, stays))
    return asked


def _asked(
    last: Mapping[Object, StoreRecord], asked: Mapping[Object, tuple[int, bool]], now_ms: int, *, whole: bool
) -> Iterator[Violation]:
    for name, (version, stays) in asked.items():
        found = last.get(name)
        if found is None or found.version < version:
            if whole:
                yield Violation("lost", f"{name}: version {version} is not in the store log")
        elif found.version > version:
            yield Violation("doubled", f"{name}: {_said(found)}, and {version} was the last one asked for")
        elif stays is False and not found.withdrawn:
            yield Violation("store", f"{name} was removed and is there again")
        elif stays and found.withdrawn and not _expired(found, now_ms):
            yield Violation("lost", f"{name}: {_said(found)}, and it was to stay")
    for name in last.keys() - asked.keys():
        yield Violation("doubled", f"{name} landed and no verdict asked for it")


def _lies(last: Mapping[Object, StoreRecord], picture: Picture, now_ms: int) -> Iterator[Violation]:
    live = dict.fromkeys(picture.counts, 0)
    for name, stored in last.items():
        if not stored.withdrawn and _expired(stored, now_ms):
            live[name[0], name[1]] += name in picture.stored
            continue
        version = picture.stored.get(name)
        if (version is None) is not stored.withdrawn or (version is not None and version != stored.version):
            yield Violation("differs", f"{name}: the log says {_said(stored)}, the store has {version}")
        live[name[0], name[1]] += version is not None
    for partition, number in picture.counts.items():
        if number != live[partition]:
            yield Violation("differs", f"{partition} has {number} objects, {live[partition]} of them in the log")
