"""The chart of what some cores land, and the figure that it is drawn from."""

from pathlib import Path

import orjson
import pytest

from memsluice_lab.cores_chart import COLOURS, drawn, recorded
from memsluice_lab.figures.cores import _scaling
from memsluice_lab.profile.bursts import Costs

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _costs(landed: int, seconds: float) -> Costs:
    return Costs(landed, landed, seconds, {}, 0.9, 0.1, {}, {})


def test_the_least_of_all_counts_is_the_figure_and_the_chart_reads_its_rows() -> None:
    """A machine whose second core brings little is not excused by its first four; medians, not the best rounds."""
    found = {1: [_costs(30, 1.0), _costs(10, 1.0), _costs(20, 1.0)], 2: [_costs(36, 1.0)] * 3, 4: [_costs(60, 1.0)] * 3}
    measured = _scaling(found)
    assert measured.value == pytest.approx(60 / 80)
    one = {"name": "cores_scaling", "machine_class": "AVX2", "rows": measured.rows}
    assert recorded(orjson.dumps({"measurements": [one, {"name": "other"}]})) == {"AVX2": {1: 20.0, 2: 36.0, 4: 60.0}}


def test_every_class_of_machine_has_its_line() -> None:
    """One class more than there are colours is drawn like the others, not left out."""
    names = [f"class {number}" for number in range(len(COLOURS) + 1)]
    picture = drawn({name: {1: 10.0, 2: 18.0} for name in names}).svg()
    assert [name for name in names if name not in picture] == []


def test_the_chart_of_the_docs_is_what_was_recorded() -> None:
    """Whoever measures anew draws anew: the picture and the table beside it are of one run."""
    by_class = recorded((DOCS / "figures.json").read_bytes())
    assert by_class
    assert (DOCS / "cores.svg").read_text(encoding="utf-8") == drawn(by_class).svg()
