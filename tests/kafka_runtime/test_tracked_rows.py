"""State rows over a real RocksDB: what reads see before the changelog has confirmed it, and what is stored then."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from memsluice.events.records import RowChange
from memsluice.runtimes.kafka.apps import build_app
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.runtimes.kafka.tracked_table import TrackedTable, TrackedWrite

from .dummies import Count
from .harness import NOWHERE

FIRST_OFFSET = 40


class Changelog:
    """Plays the broker: gives offsets in order and confirms when told to."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[Any]] = []

    async def append(self, *_record: Any) -> "asyncio.Future[Any]":
        """Take a record of the changelog."""
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]

    def confirm(self) -> None:
        """Confirm everything sent."""
        for offset, future in enumerate(self.sent, FIRST_OFFSET):
            if not future.done():
                future.set_result(SimpleNamespace(offset=offset))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TrackedTable:
    """The table of a stage's app, its rows in a RocksDB of its own, its producer a stand-in."""
    spec = StageSpec(
        name="count", app_id="rows", user="admin", inputs=("in",), outputs=("out",), kind="stateful",
        stage=lambda: Count("out"),
    )  # fmt: skip
    folder: Path = tmp_path_factory.mktemp("rows")
    app = build_app(spec, NOWHERE, data_dir=folder)
    made = app.runner.table
    assert made is not None
    return made


def write(table: TrackedTable, *changes: tuple[bytes, bytes | None], settled: bool = True) -> TrackedWrite:
    """Write rows to partition 0 through a changelog; the local store gets them where ``settled``."""

    async def scene() -> TrackedWrite:
        table.app._producer = log = Changelog()
        made = await table.write(0, [RowChange(*change) for change in changes])
        if settled:
            log.confirm()
            table.settle(made)
        return made

    return asyncio.run(scene())


def clean(table: TrackedTable) -> None:
    """Remove every row and every unconfirmed change."""
    table.discard()
    write(table, *[(key, None) for key, _ in table.rows(0).scan(b"", 1_000)])


KEYS = st.sampled_from([b"a", b"a\0", b"a\0b", b"a\0c", b"ab", b"b", b"b\0"])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.sampled_from([b"1", b"2"])), max_size=6)


@given(stored=CHANGES, fresh=CHANGES, prefix=st.sampled_from([b"", b"a", b"a\0"]), after=st.none() | KEYS,
       limit=st.integers(0, 4))  # fmt: skip
def test_a_scan_is_that_of_a_plain_dictionary_confirmed_or_not(
    table: TrackedTable, stored: list[Any], fresh: list[Any], prefix: bytes, after: bytes | None, limit: int
) -> None:
    """Prefix, place to go on from, limit, deletions: what is not confirmed yet is scanned like what is."""
    clean(table)
    write(table, *stored)
    write(table, *fresh, settled=False)
    plain: dict[bytes, bytes | None] = dict([*stored, *fresh])
    there = sorted((key, value) for key, value in plain.items() if value is not None and key.startswith(prefix))
    expected = [row for row in there if after is None or row[0] > after][:limit]
    assert list(table.rows(0).scan(prefix, limit, after)) == expected
    assert all(table.rows(0).get(key) == value for key, value in plain.items())


@pytest.mark.parametrize("rows", [1, 3])
def test_a_confirmed_write_is_stored_with_the_offset_of_its_last_row(table: TrackedTable, rows: int) -> None:
    """Recovery goes on behind that offset: with another one it would repeat rows, or leave some out for good."""
    clean(table)
    made = write(table, *[(b"row%d" % number, b"value") for number in range(rows)], settled=False)
    for offset, future in enumerate(made.futures, FIRST_OFFSET):
        future.set_result(SimpleNamespace(offset=offset))
    table.settle(made)
    assert table.data.persisted_offset(TP(table.changelog_topic_name, 0)) == FIRST_OFFSET + rows - 1
    assert table.overlay(0) == {}
    assert [table.database(0).get(b"row%d" % number) for number in range(rows)] == [b"value"] * rows


def test_a_later_change_of_a_row_is_seen_while_an_older_one_is_stored(table: TrackedTable) -> None:
    """Settling an older write takes nothing from what was changed since."""
    clean(table)
    older = write(table, (b"row", b"old"), settled=False)
    write(table, (b"row", b"new"), settled=False)
    older.futures[0].set_result(SimpleNamespace(offset=FIRST_OFFSET))
    table.settle(older)
    assert table.rows(0).get(b"row") == b"new"
    assert table.database(0).get(b"row") == b"old"
