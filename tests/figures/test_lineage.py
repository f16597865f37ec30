"""The rows that the lineage figures are measured on, and the bound that is stated for them."""

import random

import pytest

from memsluice.errors import StateError
from memsluice_lab.figures import Setting, lineage
from memsluice_lab.figures.lineage import BYTES_BOUND, entries, largest_row, lineage_us, sampled


def test_no_lineage_row_is_larger_than_stated() -> None:
    """An event whose ids and parents are all as long as the wire lets them be leaves a row within the bound."""
    assert max(len(key) + len(value) for key, value in entries(2_000, sampled(), random.Random(1))) < largest_row()
    assert largest_row() <= BYTES_BOUND


def test_the_sample_has_rows_of_every_kind() -> None:
    """Clean and tainted, with causes and without: what is timed is what real decisions leave."""
    rows = sampled()
    assert {row["taint"] for row in rows} == {True, False}
    assert {row["tier"] for row in rows} == {3, 4, 5}
    assert any(row["causes"] for row in rows)


def test_lineage_is_timed_on_parents_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number of parents has its time, and a parent that the store does not have ends the measurement."""
    monkeypatch.setattr(lineage, "WRITES", 20)
    monkeypatch.setattr(lineage, "ROUNDS", 1)
    measured = lineage_us(Setting(None, print), 2_000)
    spent = {name: float(text.split(" ")[0]) for name, text in measured.rows if name.endswith(" parents")}
    assert list(spent) == ["0 parents", "1 parents", "2 parents", "4 parents", "16 parents", "64 parents"]
    assert all(microseconds > 0 for microseconds in spent.values())
    monkeypatch.setattr(lineage, "entries", lambda *_: iter(()))
    with pytest.raises(StateError, match="was not found"):
        lineage_us(Setting(None, print), 2_000)
