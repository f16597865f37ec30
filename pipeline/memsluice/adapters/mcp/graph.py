"""The reference memory server's graph in one session's documents: each entity, and each relation, is a document.

What is shown spells out what is hidden or moves other text, and names that a client gives are compared so: whoever
copies what it was shown means that very thing, and no two entities look alike.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import ValidationError

from memsluice.adapters.mcp.shapes import Addition, Deletion, Entity, Kept, Relation
from memsluice.errors import BatchNotRemembered, MemsluiceError, NotFound, StateError
from memsluice.events.models import Zone
from memsluice.memory.documents import Document
from memsluice.memory.outcome import Outcome
from memsluice.memory.shelf import Shelf, entry_of
from memsluice.recall.prompt import shown

ENTITIES, RELATIONS = ("entities",), ("relations",)
BUSY_S = 30.0
"""How long a call that writes waits for those before it."""
Thing = Entity | Relation
Result = Outcome | MemsluiceError
Triple = tuple[str, ...]
_K = TypeVar("_K")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Found:
    """A thing that was read, where it is kept, and the write that it came of."""

    thing: Thing
    kept: Kept
    event_id: str = ""


@dataclass(slots=True)
class Change:
    """What a call wrote: each thing, or its deletion, and what became of that. ``left``: what only guidance has, which
    this session does not change; ``missing``: names of what there is not; ``done``: how many of what was asked."""

    things: list[Thing] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    done: int = 0


class Graph:
    """Safe for several threads: a call that writes waits for those before it.

    ``mine`` is what is read and written; ``above``, where ``mine`` is outside data, the guidance that is read beside it
    and never changed. Of one name there may be an entity in each.
    """

    def __init__(self, mine: Shelf, above: Shelf | None = None) -> None:
        self._mine = mine
        self._above = above
        self._lock = threading.Lock()

    def read(self, matches: Callable[[Entity], bool] | None = None) -> list[Found]:
        """Return the entities that match, the oldest first, and the relations that begin or end at one; or all there
        is. Raises StoreError beyond 1,000, and ProducerError."""
        names: set[str] = set()

        def wanted(thing: Thing) -> bool:
            if matches is None:
                return True
            if isinstance(thing, Relation):
                return bool(names & {shown(thing.from_), shown(thing.to)})
            if found := matches(thing):
                names.add(shown(thing.name))
            return found

        return self._found(wanted)

    def create_entities(self, entities: Sequence[Entity]) -> Change:
        """Write entities of names that there are not."""
        with self._turn():
            known = self._entities(one.name for one in entities)
            new = {name: some[0] for name, some in _grouped(entities, lambda one: shown(one.name)) if name not in known}
            return self._written([(one, ()) for one in new.values()])

    def create_relations(self, relations: Sequence[Relation]) -> Change:
        """Write relations that there are not. Raises NotFound where one begins or ends at no entity."""
        with self._turn():
            ends = self._entities(name for one in relations for name in (one.from_, one.to))
            for at, one in enumerate(relations):
                for end, name in (("from", one.from_), ("to", one.to)):
                    if shown(name) not in ends:
                        raise NotFound(f"argument relations[{at}].{end} is the name of no entity; nothing was written")
            known = self._relations(relations)
            new = {name: some[0] for name, some in _grouped(relations, _triple) if name not in known}
            return self._written([(one, ()) for one in new.values()])

    def add_observations(self, additions: Sequence[Addition]) -> tuple[Change, list[list[str]]]:
        """Write entities anew with what they have not; return, too, what is new of each addition.

        Raises NotFound where one names no entity.
        """
        with self._turn():
            known = self._entities(one.entityName for one in additions)
            changed: dict[str, tuple[Entity, Sequence[str]]] = {}
            new: list[list[str]] = []
            for at, addition in enumerate(additions):
                name = shown(addition.entityName)
                if name not in known:
                    raise NotFound(f"argument observations[{at}].entityName is no entity's; nothing was written")
                entity, parents = changed.get(name) or self._to_change(known[name])
                there = {text for one in known[name] for text in _entity(one).observations} | {*entity.observations}
                new.append([text for text in dict.fromkeys(addition.contents) if text not in there])
                if new[-1]:
                    more = entity.model_copy(update={"observations": [*entity.observations, *new[-1]]})
                    changed[name] = more, parents
            return self._written(list(changed.values())), new

    def delete_entities(self, names: Sequence[str]) -> Change:
        """Mark entities, and the relations that begin or end at them, as deleted."""
        with self._turn():
            asked = {shown(name) for name in names}
            found = self._found(lambda thing: bool(asked & _ends(thing)))
            change = self._deleted(found)
            there = [(shown(one.thing.name), one) for one in found if isinstance(one.thing, Entity)]
            change.missing = [name for name in dict.fromkeys(names) if shown(name) not in dict(there)]
            change.done = sum(self._is_mine(one) for _, one in there)
            return change

    def delete_observations(self, deletions: Sequence[Deletion]) -> Change:
        """Write entities anew without some of their observations."""
        with self._turn():
            known = self._entities(one.entityName for one in deletions)
            changed: dict[str, tuple[Entity, Sequence[str]]] = {}
            missing, left, done = list[str](), list[str](), 0
            for deletion in deletions:
                name, gone = shown(deletion.entityName), {shown(text) for text in deletion.observations}
                if name not in known:
                    missing.append(deletion.entityName)
                    continue
                entity, parents = changed.get(name) or self._to_change(known[name])
                kept = [text for text in entity.observations if shown(text) not in gone]
                if len(kept) < len(entity.observations):
                    done += len(entity.observations) - len(kept)
                    changed[name] = entity.model_copy(update={"observations": kept}), parents
                above = [text for one in known[name] if not self._is_mine(one) for text in _entity(one).observations]
                if gone & {shown(text) for text in above}:
                    left.append(deletion.entityName)
            change = self._written(list(changed.values()))
            change.missing, change.left, change.done = missing, left, done
            return change

    def delete_relations(self, relations: Sequence[Relation]) -> Change:
        """Mark relations as deleted."""
        with self._turn():
            found = self._relations(relations)
            change = self._deleted([one for some in found.values() for one in some])
            change.done = sum(any(self._is_mine(one) for one in some) for some in found.values())
            return change

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=BUSY_S):
            raise StateError(f"this person's graph is busy with earlier calls for {BUSY_S:g} s; nothing was written")
        try:
            yield
        finally:
            self._lock.release()

    def _is_mine(self, found: Found) -> bool:
        return found.kept == _kept(self._mine)

    def _to_change(self, found: Sequence[Found]) -> tuple[Entity, Sequence[str]]:
        """Return the entity to write anew, and its parents: where only guidance has it, one beside it, still empty."""
        for one in found:
            if self._is_mine(one):
                return _entity(one), [one.event_id]
        return _entity(found[0]).model_copy(update={"observations": []}), [found[0].event_id]

    def _entities(self, names: Iterable[str]) -> dict[str, list[Found]]:
        """Return the entities of these names by the name as it is shown."""
        asked = {shown(name) for name in names}
        found = self._found(lambda thing: isinstance(thing, Entity) and shown(thing.name) in asked)
        return dict(_grouped(found, lambda one: _name(one.thing)))

    def _relations(self, relations: Iterable[Relation]) -> dict[Triple, list[Found]]:
        """Return those of these relations that there are."""
        asked = {_triple(one) for one in relations}
        found = self._found(lambda thing: isinstance(thing, Relation) and _triple(thing) in asked)
        return dict(_grouped(found, lambda one: _triple(one.thing)))

    def _found(self, wanted: Callable[[Thing], bool]) -> list[Found]:
        """Return what is wanted, guidance first; entities are asked about before relations."""
        return [one for shelf in (self._above, self._mine) if shelf is not None for one in _of(shelf, wanted)]

    def _deleted(self, found: Sequence[Found]) -> Change:
        """Mark as deleted what is mine of it; say what is not."""
        mine = [one for one in found if self._is_mine(one)]
        change = self._written([(one.thing, [one.event_id]) for one in mine], deleted=True)
        change.left = [_name(one.thing) for one in found if not self._is_mine(one)]
        return change

    def _written(self, some: Sequence[tuple[Thing, Sequence[str]]], *, deleted: bool = False) -> Change:
        """Write things made from their parents, or marks in their place, and wait for all."""
        change = Change([thing for thing, _ in some])
        entries = [entry_of(_document(thing, deleted=deleted), parents) for thing, parents in some]
        try:
            change.results += self._mine.memory.write_all(entries) if entries else []
        except BatchNotRemembered as error:
            change.results += [one for one in error.results if isinstance(one, Outcome | MemsluiceError)]
        return change


def _of(shelf: Shelf, wanted: Callable[[Thing], bool]) -> list[Found]:
    def choose(living: Sequence[Document]) -> list[Document]:
        things = [(one, thing) for one in living if (thing := _thing(one)) is not None]
        ordered = sorted(things, key=lambda pair: isinstance(pair[1], Relation))
        return [one for one, thing in ordered if wanted(thing)]

    kept = _kept(shelf)
    found = [(_thing(one), one.event_id) for one in reversed(shelf.chosen(choose))]
    return [Found(thing, kept, event_id) for thing, event_id in found if thing is not None]


def _kept(shelf: Shelf) -> Kept:
    return "data" if shelf.memory.zone is Zone.EXTERNAL else "memory"


def _document(thing: Thing, *, deleted: bool) -> Document:
    if isinstance(thing, Entity):
        value: dict[str, Any] = {"entityType": thing.entityType, "observations": thing.observations}
        return Document(ENTITIES, thing.name, None if deleted else value)
    key = sha256(json.dumps(thing.triple()).encode()).hexdigest()[:32]  # its words stand in the value alone
    return Document(RELATIONS, key, None if deleted else thing.model_dump(by_alias=True))


def _thing(one: Document) -> Thing | None:
    """Return what a document is; None for one that somebody else put there."""
    try:
        if one.path == ENTITIES:
            return Entity.model_validate({**(one.value or {}), "name": one.key})
        return Relation.model_validate(one.value) if one.path == RELATIONS else None
    except ValidationError:
        return None


def _entity(found: Found) -> Entity:
    assert isinstance(found.thing, Entity)
    return found.thing


def _name(thing: Thing) -> str:
    return shown(thing.name if isinstance(thing, Entity) else " ".join(thing.triple()))


def _ends(thing: Thing) -> set[str]:
    return {shown(thing.name)} if isinstance(thing, Entity) else {shown(thing.from_), shown(thing.to)}


def _triple(thing: Thing) -> Triple:
    assert isinstance(thing, Relation)
    return tuple(map(shown, thing.triple()))


def _grouped(some: Iterable[_T], name: Callable[[_T], _K]) -> Iterable[tuple[_K, list[_T]]]:
    """Return things by a name of theirs, in the order in which each name comes first."""
    found: dict[_K, list[_T]] = {}
    for one in some:
        found.setdefault(name(one), []).append(one)
    return found.items()
