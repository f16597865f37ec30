"""axe-core finds nothing serious on any page of the console, light and dark, at the desk and on a phone."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from memsluice_lab.desk import screens
from memsluice_lab.desk.consoles import Desk
from memsluice_lab.desk.screens import BYTES_MAX, FOLDER, LOOKS, SHOTS, go, missing, people, shown

GRAVE = ("serious", "critical")
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map(({ id, impact, nodes }) => [id, impact, nodes.map((one) => one.html.slice(0, 160))]);
}"""
SPOILED = """() => {
  for (const one of document.querySelectorAll("label")) one.remove();
  for (const one of document.querySelectorAll("input")) one.removeAttribute("placeholder");
  for (const one of document.querySelectorAll("h1")) one.style.color = "#ddd";
}"""
PAGES = {**LOOKS, "dark phone": (390, 844, "dark")}


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core. A page's policy keeps scripts out, and what the browser's driver evaluates is none."""
    cache = Path(os.environ.get("MEMSLUICE_CACHE") or Path.home() / ".cache" / "memsluice")
    found = sorted(cache.glob("axe-*.min.js"))
    if not found:
        pytest.skip("needs axe-core: scripts/fetch-axe")
    return found[-1].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A console over a home of made-up records: the one of the pictures in the docs."""
    with shown(tmp_path_factory.mktemp("shown") / "home") as made:
        yield made


@pytest.fixture(scope="module")
def looking(chromium: Browser, desk: Desk) -> dict[Any, Page]:
    """The browsers of an operator, a reviewer, and somebody who is not logged in."""
    return people(chromium, desk)


def judged(page: Page, axe: str) -> list[Any]:
    """Return what axe-core finds on a page that keeps people out."""
    page.evaluate(axe)
    return [one for one in page.evaluate(RUN) if one[1] in GRAVE]


def test_nothing_on_any_page_keeps_people_out(desk: Desk, looking: dict[Any, Page], axe: str) -> None:
    """Contrast, names, labels, roles, landmarks and order, on every page that the console has, at each look."""
    found, opened = [], set[str]()
    for shot in SHOTS:
        page = looking[shot.by]
        page.emulate_media(color_scheme="light")
        go(page, desk, shot)
        opened.add(page.url.removeprefix(desk.url))
        for look, (width, height, colours) in PAGES.items():
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=colours)
            found += [(shot.name, look, *one) for one in judged(page, axe)]
    assert found == []
    assert missing(desk, opened) == set()


def test_facts_have_room_on_a_phone(desk: Desk, looking: dict[Any, Page]) -> None:
    """A long name of a pattern does not squeeze what stands beside it into a column of single syllables."""
    page = looking[screens.REVIEWER]
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, desk, next(shot for shot in SHOTS if shot.name == "entry"))
    shares = page.evaluate(
        "[...document.querySelectorAll('dl.facts dd')].map((one) => one.clientWidth / one.parentElement.clientWidth)"
    )
    assert len(shares) > 5
    assert min(shares) > 0.5


def test_axe_is_at_work(desk: Desk, looking: dict[Any, Page], axe: str) -> None:
    """On a page whose text is made too pale and whose labels are taken away it finds both."""
    page = looking[screens.REVIEWER]
    page.emulate_media(color_scheme="light")
    page.goto(f"{desk.url}/held")
    page.evaluate(SPOILED)
    assert {"label", "color-contrast"} <= {one[0] for one in judged(page, axe)}


def test_a_page_without_a_picture_is_named(desk: Desk) -> None:
    """A new page of the console has to be named among those that are photographed and looked at."""
    assert missing(desk, {"/", "/held"}) >= {"/audit", "/login", "/held/groups/{group}"}


def test_the_docs_show_every_page() -> None:
    """Each page has a picture of its own in the docs, small, with words for who does not see it; and none is left
    over."""
    told = dict(re.findall(r"!\[([^\]]*)\]\(console/([a-z-]+)\.png\)", (FOLDER.parent / "console.md").read_text()))
    names = sorted(shot.name for shot in SHOTS)
    assert sorted(told.values()) == sorted(file.stem for file in FOLDER.glob("*.png")) == names
    assert [alt for alt in told if len(alt.split()) < 4] == []
    assert [file.name for file in FOLDER.glob("*.png") if file.stat().st_size > BYTES_MAX] == []
