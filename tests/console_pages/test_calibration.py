"""The calibration's page: the chart is the command's, drawn for eyes and said in words."""

import re
from xml.etree import ElementTree

import pytest
from tests.console_pages.place import Place
from tests.console_pages.test_audit import said
from tests.trace.test_calibration import gate, history

from memsluice.console.charts import drawn
from memsluice.operations.monitor import calibration_view as view


def test_a_tenant_without_a_scored_write_is_told_so(place: Place) -> None:
    """Where nothing was scored the page says so, and what it read."""
    text = said(place.browser("reader-all").get("/calibration", params={"tenant": "nobody"}).text)
    assert "No write of tenant nobody was scored, among the 0 records" in text


def test_a_tenant_s_chart_is_shown_with_its_facts(place: Place) -> None:
    """A reader sees the chart of a tenant: an image with a name, the phase in words, and the writes as a table."""
    html = place.browser("reader-all").get("/calibration", params={"tenant": "acme"}).text
    assert 'role="img" aria-labelledby="chart-' in html
    assert "<desc" in html
    assert "of 2 writes exceeded" in said(html) or "writes exceeded the threshold" in said(html)
    assert "style=" not in html


def test_the_chart_within_the_page_has_every_point_and_no_colour_alone() -> None:
    """It parses, has a shape a write, what is beyond is another shape, and no colour is written into it."""
    made = history(gate("memsad"))
    svg = str(drawn(view.picture(made, "memsad", 1_000), "said in words"))
    root = ElementTree.fromstring(svg)  # noqa: S314
    assert (len(root.findall("circle")), len(root.findall("polygon"))) == (7, 1)
    assert not re.search(r"#[0-9a-f]{6}|style=|<script", svg)
    assert root.findtext("desc") == "said in words"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("tenant=acme&last=0", "last: '0' is no number from 1 to 2000"),
        ("tenant=acme&last=many", "last: 'many' is no number"),
        ("tenant=acme&detector=best", "detector: write default or memsad"),
    ],
)
def test_what_cannot_be_asked_names_the_field(place: Place, query: str, words: str) -> None:
    """A mistake is answered with 400 and the field's name."""
    answer = place.browser("reader-all").get(f"/calibration?{query}")
    assert answer.status_code == 400
    assert words in said(answer.text)
