"""Bugs in the stages: signatures, order, identity, taint, floors, the sweep."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace as changed

from memsluice.envelope.seals import Position
from memsluice.errors import InputError, StoreError, UnknownKey
from memsluice.events.models import Origin, Zone
from memsluice.events.names import EventType
from memsluice.gate.checks import authenticity, duplicates, monitor, placing, sessions
from memsluice.stages import land, screen, seal
from memsluice.stages.land import LandStage
from memsluice.stages.patience import Patience
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.stages.settling import Settling
from memsluice.stages.store_sweep import StoreSweep
from memsluice.stores import base
from memsluice.topics.names import ACCEPTED, SEALED
from memsluice_lab.simulation.planted_runtime import set_back

Patches = Iterator[Any]
"""What ``patch`` returned, one a change."""
WHOLE_LOG = 1_000_000
"""Records; more than any log of a history has."""


def verify_skipped() -> Patches:
    """*seal* looks at no signature."""
    yield patch.object(authenticity, "_verified", lambda envelope, received, keyring: envelope.payload)


def markers_not_written() -> Patches:
    """A dead letter leaves no marker in the tenant's order."""
    honest = SealStage.process

    def process(self: Any, batch: Any) -> Any:
        return [[one for one in outputs if one.topic != SEALED or one.key] for outputs in honest(self, batch)]

    yield patch.object(SealStage, "process", process)


def redelivery_unknown() -> Patches:
    """*screen* does not know what it decided before."""
    yield set_back()  # else nothing comes to *screen* twice
    yield patch.object(screen, "_delivered", lambda *_: False)
    yield patch.object(ScreenStage, "_has_its_row", lambda self, sealed, rows: False)


def unstable_id() -> Patches:
    """The id of an object depends on when it was worked out."""
    numbers = count()

    def made(**parts: Any) -> str:
        return f"{next(numbers):08x}-0000-5000-8000-000000000000"

    yield patch.object(placing, "object_id", made)
    yield patch.object(land, "expected_id", lambda admission: admission.object_id)
    yield patch.object(base, "expected_id", lambda admission: admission.object_id)


def deduplicated_by_wrong_key() -> Patches:
    """An event is known by its session, not by its id."""

    def row_id(sealed: Any, *, first: bool) -> str:
        return str(getattr(sealed.payload, "session", "") or sealed.payload.id)

    yield patch.object(duplicates, "event_row_id", row_id)


def taint_forgotten() -> Patches:
    """What a session saw does not reach what its agent writes."""
    honest = ScreenStage.process

    def process(self: Any, record: Any, rows: Any) -> Any:
        opened = self._opened

        def clean(keyring: Any, record: Any, rows: Any) -> Any:
            sealed, now_ms, delivered = opened(keyring, record, rows)
            if sealed.type == EventType.OBSERVATION and sealed.position.offset % 5 == 0:
                payload = sealed.payload.model_copy(update={"origin": Origin.OPEN})
                sealed = replace(sealed, payload=payload)
            return sealed, now_ms, delivered

        with patch.object(self, "_opened", clean):
            return honest(self, record, rows)

    yield patch.object(ScreenStage, "process", process)


def clock_runs_back() -> Patches:
    """Decisions go by the record's own time, not by the latest that was seen."""
    honest = ScreenStage._opened

    def opened(self: Any, keyring: Any, record: Any, rows: Any) -> Any:
        sealed, _, delivered = honest(self, keyring, record, rows)
        return sealed, sealed.position.append_ms, delivered

    yield patch.object(ScreenStage, "_opened", opened)


def live_taken_out() -> Patches:
    """*land* takes every fifth entry that was admitted out, as if it had been withdrawn."""
    honest = LandStage._verified

    def verified(self: Any, record: Any, keyring: Any, now_ms: int) -> Any:
        draft = honest(self, record, keyring, now_ms)
        if isinstance(draft, InputError) or draft[0].withdrawn or draft[0].version % 5:
            return draft
        stored = replace(draft[0], withdrawn=True, scope="", place=None)
        return stored, base.withdrawn(stored)

    yield patch.object(LandStage, "_verified", verified)


def floor_dropped() -> Patches:
    """*land* does not ask the log which version of an object was the last."""
    yield set_back(ACCEPTED, WHOLE_LOG)  # else an entry that was withdrawn since hardly ever comes to *land* twice
    yield patch.object(LandStage, "_floors", lambda *_: {})


def read_back_skipped() -> Patches:
    """*land* believes the store that it took what was written."""
    yield patch.object(Settling, "_not_given_back", lambda *_: {})


def refused_with_the_one_before() -> Patches:
    """*land* gives up the versions that came before a refused one in its batch, as if that one had landed."""
    honest = Settling.settle

    def settle(self: Any, items: Any, now_ms: int) -> Any:
        older = {n: base.UpsertResult(item.object_id, base.StoreAnswer.OLDER) for n, item in items.items()}
        return older | honest(self, {number: items[number] for number in base.newest(items.items())}, now_ms)

    yield patch.object(Settling, "settle", settle)


def published_before_written() -> Patches:
    """*land* says that an object lies in the store though the store did not answer."""

    def once(self: Any, action: Any) -> Any:
        try:
            return action()
        except StoreError:
            return None

    honest = Settling.settle

    def settle(self: Any, items: Any, now_ms: int) -> Any:
        with patch.object(Patience, "until_answered", once):
            outcomes = honest(self, items, now_ms)
        landed = base.StoreAnswer.LANDED
        return {number: replace(one, outcome=landed) if one.outcome is base.StoreAnswer.UNAVAILABLE else one
                for number, one in outcomes.items()}  # fmt: skip

    yield patch.object(Settling, "settle", settle)


def sweep_skips() -> Patches:
    """The sweep leaves a zone out."""
    honest = StoreSweep.begin_round

    def begin(self: Any) -> None:
        honest(self)
        self._round = iter(
            [at for at in ([self._at] if self._at else []) + list(self._round) if at[1] is Zone.GUIDANCE]
        )
        self._at = next(self._round, None)

    yield patch.object(StoreSweep, "begin_round", begin)


def position_shifted() -> Patches:
    """A sealed record names the intake offset before its own."""
    honest = SealStage._authenticated

    def authenticated(self: Any, record: Any, keyring: Any, registry: Any) -> Any:
        draft = honest(self, record, keyring, registry)
        if draft.sealed is not None and record.offset % 50 == 49:
            at = draft.sealed.position
            draft.sealed = replace(draft.sealed, position=Position(at.topic, at.partition, at.offset - 1, at.append_ms))
        return draft

    yield patch.object(SealStage, "_authenticated", authenticated)


def genuine_refused() -> Patches:
    """*seal* does not know the key of every twentieth write, and does not look again."""
    honest = seal.establish

    def establish(record: Any, *given: Any) -> Any:
        authentic = honest(record, *given)
        if record.offset % 20 == 19 and authentic.type is EventType.WRITE:
            raise UnknownKey("planted")
        return authentic

    yield patch.object(seal, "establish", establish)


def admission_refused() -> Patches:
    """*land* takes every seventh admission for none that the gate signed."""
    honest = LandStage._verified

    def verified(self: Any, record: Any, keyring: Any, now_ms: int) -> Any:
        draft = honest(self, record, keyring, now_ms)
        if isinstance(draft, InputError) or draft[0].withdrawn or draft[0].version % 7:
            return draft
        return InputError("planted", code=land.SEAL_REASON)

    yield patch.object(LandStage, "_verified", verified)


def refused_taints_nothing() -> Patches:
    """What a session saw taints it only where nothing is wrong with its record."""
    yield patch.object(sessions, "unverified", lambda rows, sealed, session, policy, now_ms: session)


def recalls_taint_nothing() -> Patches:
    """What a session was given by its memory does not taint it."""
    yield patch.object(sessions, "recalled", lambda rows, recall, session, policy, now_ms: session)


def persons_not_bound() -> Patches:
    """What others than agents write lands as guidance, whatever it was made from."""
    honest = monitor.check_write

    def check_write(rows: Any, write: Any, identity: Any, tau: Any, policy: Any, **more: Any) -> Any:
        bound = tau if identity.channel == "agent" else changed(tau, taint=False)
        return honest(rows, write, identity, bound, policy, **more)

    yield patch.object(monitor, "check_write", check_write)
