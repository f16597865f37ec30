"""What replay_ratio counts as decided once: it has to see a decision that was made twice."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.held.desk import BAD, Office

from memsluice.envelope.seals import close, open_
from memsluice.events.names import VERDICT
from memsluice.events.records import Record
from memsluice.topics.names import AUDIT
from memsluice_lab.figures import replaying


@dataclass(frozen=True)
class Message:
    """An audit record as the broker's client gives it."""

    record: Record

    def key(self) -> bytes | None:
        """Return its tenant."""
        return self.record.key

    def value(self) -> bytes | None:
        """Return its sealed verdict."""
        return self.record.value

    def headers(self) -> list[tuple[str, bytes | None]]:
        """Return its headers."""
        return list(self.record.headers)


def test_a_replay_that_is_decided_twice_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes again are a re-delivery; a second decision, of another offset, is a miss; so is another order."""
    office = Office(tmp_path / "home", ("acme",))
    for _ in range(2):
        office.write(BAD)
    assert office.run("replay", "--yes").exit_code == 0
    records = office.records(AUDIT)

    def effects(*found: Record) -> tuple[int, bool, int]:
        monkeypatch.setattr(replaying, "messages", lambda running, topic: [Message(record) for record in found])
        return replaying._effects(SimpleNamespace(store=office.keys))  # type: ignore[arg-type]

    def elsewhere(record: Record) -> Record:
        keyring = office.keys.keyring()
        verdict = open_(keyring, "acme", VERDICT, record.value or b"")
        moved = {**verdict, "offset": verdict["offset"] + 100}
        return Record(AUDIT, 0, 9, b"acme", close(keyring, verdict["seal_kid"], "acme", VERDICT, moved), (), 0)

    *held, first, second = records
    assert effects(*records, second) == (2, True, 2)
    assert effects(*records, elsewhere(second)) == (0, False, 2)
    assert effects(*held, second, first) == (2, False, 2)
    assert effects(*held, first) == (1, False, 2)
