"""``memsluice calibration show``: what is drawn is what was decided, and nothing else."""

import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree  # the picture is our own
from collections import deque
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from tests.gate.build import RING, TENANT, axis
from tests.trace.audit import Gate
from tests.trace.command import run
from tests.trace.conftest import Played

from memsluice.cli.render.calibration import ROWS, render
from memsluice.events.names import EventType
from memsluice.gate.policy import model as policies
from memsluice.operations.monitor.calibration import History
from memsluice.operations.monitor.calibration_view import HEIGHT, WIDTH, as_data, picture
from memsluice.operations.monitor.picture import SCALE


def gate(detector: str, **memsad: Any) -> Gate:
    """A gate that saw a question and eight writes, of which the last is next to the question."""
    base = policies.default().default
    part = {**base.memsad.model_dump(), "reference_size": 4, "calibration": {"strategy": "fixed"}, **memsad}
    changed = {"detector": detector, "memsad": part, "writes_per_day": {}}
    one = Gate(policies.Policy.model_validate({**base.model_dump(), **changed}))
    one.see("reader", EventType.RECALL, question="Which train?", vector=axis(0))
    for number in range(7):
        one.write(vector=axis(10 + number, towards=0, cosine=0.1 + 0.01 * (number % 3)))
    one.write(vector=axis(30, towards=0, cosine=0.9), id="near")
    return one


def history(one: Gate) -> History:
    """Return what the whole audit topic says."""
    found = History(TENANT, RING)
    for record in one.audit:
        found.take(record)
    return found


def drawn(found: History, detector: str) -> str:
    """Return the picture as it is printed on a narrow terminal."""
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None, highlight=False)
    console.print(render(found, detector, 1_000))  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_scored_write_is_a_point_and_every_phase_a_change() -> None:
    """MEMSAD with N = 4: four writes warming, then calibrated; the held one is beyond its line, the others are not."""
    found = history(gate("memsad"))
    assert found.deciding == "memsad"
    points = found.points["memsad"]
    assert [point.beyond for point in points] == [False] * 7 + [True]
    assert [(change.number, change.phase) for change in found.changes["memsad"]] == [(1, "warming"), (5, "calibrated")]
    assert points[-1].decision == "quarantine"


def test_the_default_detector_s_calibration_is_what_decides() -> None:
    """The default detector's line is its level: nothing landed yet is cold, and nothing is beyond by rank alone."""
    found = history(gate("default"))
    assert found.deciding == "default"
    assert {point.phase for point in found.points["default"]} == {"cold"}
    assert all(point.line == pytest.approx(-math.log10(0.02)) for point in found.points["default"])
    assert not any(point.beyond for point in found.points["default"])


def test_the_chart_shows_what_is_beyond_above_the_line() -> None:
    """One column a write, twelve rows: the held write's mark stands above the line's, the others' below."""
    text = drawn(history(gate("memsad")), "memsad")
    rows = [line[9:].ljust(8) for line in text.splitlines() if re.match(r"[ 0-9.-]{8} ", line)][:ROWS]
    assert len(rows) == ROWS
    places = [[row for row in range(ROWS) if rows[row][column] == "●"] for column in range(8)]
    lines = [[row for row in range(ROWS) if rows[row][column] == "─"] for column in range(8)]
    assert places[7][0] < lines[7][0]
    assert all(places[column][0] > lines[column][0] for column in range(7))
    assert "1 of 8 writes exceeded the threshold in force then" in text
    assert "calibrated from write 5 on" in text


def test_what_was_sent_again_or_forged_is_no_point() -> None:
    """A redelivered verdict counts once; a record that the gate did not sign is counted as such and says nothing."""
    one = gate("memsad")
    for record in list(one.audit):
        one.put(record.key or b"", record.value or b"", record.headers)
    one.put(TENANT.encode(), b"{}", ())
    found = history(one)
    assert found.totals["memsad"] == 8
    assert found.unverified == 1
    assert "1 audit records do not verify" in drawn(found, "memsad")


def test_the_picture_is_well_formed_and_has_every_point() -> None:
    """The SVG parses, has one dot a write, and its one red dot is the highest."""
    image = ElementTree.fromstring(picture(history(gate("memsad")), "memsad", 1_000).svg())  # noqa: S314
    dots = image.findall("{*}circle")
    assert len(dots) == 8
    (red,) = [dot for dot in dots if dot.get("fill") == "#c62828"]
    assert float(red.get("cy", "0")) == min(float(dot.get("cy", "0")) for dot in dots)


def test_the_png_is_whole_and_shows_the_same() -> None:
    """It decodes, and its one red dot is the last and the highest; the line and the words are there, too."""
    image = Image.open(io.BytesIO(picture(history(gate("memsad")), "memsad", 1_000).png()))
    seen = np.asarray(image)
    assert (image.format, "MEMSAD" in image.info["Title"]) == ("PNG", True)
    assert seen.shape == (HEIGHT * SCALE, WIDTH * SCALE, 3)
    red, blue, green, black = (
        np.argwhere((seen == tuple(bytes.fromhex(colour))).all(axis=2))
        for colour in ("c62828", "1565c0", "2e7d32", "000000")
    )
    assert red[:, 0].max() < blue[:, 0].min()
    assert red[:, 1].min() > blue[:, 1].max()
    assert len(green)
    assert len(black) > 500
    assert len(red) < 100 < len(blue)


def test_a_change_of_scale_is_not_drawn_over() -> None:
    """After a policy turns from ranks to distances, what was judged by ranks is on no axis with what follows."""
    one, other = (history(gate("memsad", **more)) for more in ({"calibration": {"strategy": "conformal"}}, {}))
    ranked, scored = one.points["memsad"], other.points["memsad"]
    assert {point.ranked for point in ranked} == {True}
    assert {point.line for point in ranked} == {None}
    assert [point.beyond for point in ranked] == [point.decision == "quarantine" for point in ranked]
    assert "not told, by ranks" in drawn(one, "memsad")
    other.points["memsad"] = deque([*ranked, *scored])
    other.totals["memsad"] = len(ranked) + len(scored)
    assert as_data(other, "memsad", 1_000)["points"] == as_data(history(gate("memsad")), "memsad", 1_000)["points"]
    assert "another strategy judged the writes before these" in drawn(other, "memsad")


def test_the_data_says_the_same() -> None:
    """As JSON: the phase, the line, the changes and the points that were asked for."""
    told = as_data(history(gate("memsad")), "memsad", 3)
    assert (told["phase"], told["scored"], len(told["points"])) == ("calibrated", 8, 3)
    assert told["points"][-1]["event_id"] == "near"


def test_the_demo_s_day_has_a_calibration(played: Played, tmp_path: Any) -> None:
    """On the log that a demo leaves: a chart, JSON that agrees with it, two pictures; a tenant that is none exits 1."""
    home = ("--home", str(played.home))
    drawing = tmp_path / "one.svg"
    other = tmp_path / "one.png"
    code, out, said = run("calibration", "show", "casa-lindqvist", "--svg", str(drawing), "--png", str(other), *home)
    assert (code, said) == (0, "")
    assert "default detector, conformal" in out
    assert drawing.read_text().startswith("<svg")
    assert Image.open(other).format == "PNG"
    code, out, _ = run("calibration", "show", "casa-lindqvist", "--json", *home)
    told = json.loads(out)
    assert (code, told["detector"], told["unverified"]) == (0, "default", 0)
    assert told["scored"] == len(told["points"]) > 0
    code, _, said = run("calibration", "show", "nobody", *home)
    assert code == 5
    assert "no write of tenant nobody was scored" in said
