"""``python -m memsluice_lab.desk.screens``: photograph every page of the console, light, dark and on a phone.

It fills a home with made-up records, serves its console, opens each page in a real Chromium, and writes one picture a
page to ``docs/console``: what is shown there is what the console of this tree shows.
"""

import argparse
import re
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsluice.encoder import load_encoder
from memsluice.envelope.registry import Role
from memsluice.errors import StateError
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.desk.consoles import Desk, chromium, person, send, served
from memsluice_lab.desk.plausible_home import CLINIC, TRAVEL, decorated, filled
from memsluice_lab.desk.walking import page_of, pages
from memsluice_lab.figures.dependencies import TOP

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

FOLDER = TOP / "docs" / "console"
NOBODY, REVIEWER, OPERATOR = None, Role.REVIEWER, Role.OPERATOR
OTHER_POLICY = "published-rolling"
ASKED = {
    "tenant": TRAVEL, "question": "Which seat does Mira want?", "agent": "concierge", "principal": "mira",
    "session": "mira-noon", "as": "reader", "k": "3",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shot:
    """One page: its picture's name, who looks, where it is, and the link on that page (a pattern) that is followed."""

    name: str
    by: Role | None
    path: str
    link: str = ""
    fields: tuple[tuple[str, str], ...] | None = None


SHOTS = (
    Shot("login", NOBODY, "/login"),
    Shot("overview", OPERATOR, "/"),
    Shot("groups", REVIEWER, "/held"),
    Shot("group", REVIEWER, "/held?q=reason:wording", r"/held/groups/[^\"]+"),
    Shot("entries", REVIEWER, "/held/entries"),
    Shot("entry", REVIEWER, "/held/entries?q=reason:wording", r"/held/entries/[^\"]+"),
    Shot("story", REVIEWER, f"/held/story/{TRAVEL}/w-0015"),
    Shot("dead-letters", OPERATOR, "/dead-letters"),
    Shot("dead-letter", OPERATOR, "/dead-letters", r"/dead-letters/letter\?[^\"]+"),
    Shot("dead-letter-replay", OPERATOR, "/dead-letters/replay"),
    Shot("proposals", OPERATOR, "/proposals"),
    Shot("proposal", OPERATOR, "/proposals", r"/proposals/[0-9a-f]+"),
    Shot("proposal-new", REVIEWER, f"/proposals/new?tenant={TRAVEL}&entry=lights&action=declassify"),
    Shot("policies", OPERATOR, "/policies"),
    Shot("policy-compare", OPERATOR, f"/policies/compare?before=in-force&tenant={TRAVEL}&after=shipped:{OTHER_POLICY}"),
    Shot("policy-end", OPERATOR, f"/policies/end?tenant={CLINIC}"),
    Shot("calibration", OPERATOR, f"/calibration?tenant={TRAVEL}"),
    Shot("audit", OPERATOR, f"/audit?tenant={TRAVEL}"),
    Shot("trace", OPERATOR, f"/audit/event?id=w-0015&tenant={TRAVEL}"),
    Shot("recall", OPERATOR, "/recall", fields=tuple(ASKED.items())),
    Shot("health", OPERATOR, "/health"),
    Shot("keys", REVIEWER, "/keys"),
)
"""Every page that the console has; a test says when one is missing."""
LOOKS: dict[str, tuple[int, int, Any]] = {
    "light": (1100, 760, "light"),
    "dark": (1100, 760, "dark"),
    "phone": (390, 844, "light"),
}
"""How a page is looked at: size of the window, and the colours that are asked for."""
HIGH = 460
"""Pixels that each picture of a sheet is high."""
COLOURS = 64
BYTES_MAX = 100_000


@contextmanager
def shown(home: Path) -> Iterator[Desk]:
    """Give a console over a home of made-up records."""
    encoder = MemoEncoder(load_encoder())
    made = filled(home, encoder)
    with served(home) as desk:
        desk.serving.kept["encoder"] = encoder
        decorated(made, desk)
        yield desk


def people(browser: "Browser", desk: Desk) -> "dict[Role | None, Page]":
    """Return the browsers of everybody who looks; nobody's is one that is not logged in."""
    found: dict[Role | None, Page] = {
        role: person(browser, desk, name, role)[1] for name, role in (("olga", Role.OPERATOR), ("rita", Role.REVIEWER))
    }
    return {**found, NOBODY: browser.new_context().new_page()}


def go(page: "Page", desk: Desk, shot: Shot) -> None:
    """Open a page. Raises StateError where it is not there."""
    answer: Response | None
    if shot.fields is not None:
        answer = send(page, desk.url, shot.path, shot.fields)
    else:
        answer = page.goto(f"{desk.url}{shot.path}")
        if shot.link:
            found = re.search(f'href="({shot.link})"', page.content())
            if found is None:
                raise StateError(f"{shot.path} has no link like {shot.link}")
            answer = page.goto(desk.url + unescape(found[1]))
    if answer is None or not answer.ok:
        raise StateError(f"{shot.name}: {shot.path} answered {None if answer is None else answer.status}")
    page.wait_for_load_state("load")


def missing(desk: Desk, opened: set[str]) -> set[str]:
    """Return the pages of a console that are not among the addresses that were opened."""
    return pages(desk.app) - {page_of(desk.app, address) for address in opened}


def sheet(browser: "Browser", pictures: dict[str, bytes], name: str) -> bytes:
    """Return pictures side by side, as one."""
    shown = "".join(
        f'<img alt="{look}" src="data:image/png;base64,{b64encode(data).decode()}">' for look, data in pictures.items()
    )
    style = f"body{{margin:8px;display:flex;gap:8px;background:#888;width:max-content}}img{{height:{HIGH}px}}"
    with browser.new_context(viewport={"width": 1_640, "height": HIGH + 16}) as context:
        page = context.new_page()
        page.set_content(f"<!doctype html><title>{name}</title><style>{style}</style><body>{shown}</body>")
        return small(page.locator("body").screenshot())


def small(data: bytes) -> bytes:
    """Return a picture with few colours, in which a page looks the same and takes a third of the bytes."""
    from PIL import Image

    written = BytesIO()
    Image.open(BytesIO(data)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        written, "PNG", optimize=True
    )
    return written.getvalue()


def take(browser: "Browser", desk: Desk, folder: Path) -> Iterator[tuple[str, int]]:
    """Write a picture of every page; yield name and size. Raises StateError for a page that cannot be shown."""
    folder.mkdir(parents=True, exist_ok=True)
    looking, opened = people(browser, desk), set[str]()
    for shot in SHOTS:
        page = looking[shot.by]
        pictures = {}
        go(page, desk, shot)
        for look, (width, height, colours) in LOOKS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=colours)
            pictures[look] = page.screenshot(animations="disabled")
        page.set_viewport_size({"width": 1100, "height": 760})
        opened.add(page.url.removeprefix(desk.url))
        data = sheet(browser, pictures, shot.name)
        (folder / f"{shot.name}.png").write_bytes(data)
        yield shot.name, len(data)
    if left := missing(desk, opened):
        raise StateError(f"there is no picture of {', '.join(sorted(left))}: name them in SHOTS")


def main(arguments: list[str] | None = None) -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder: Path = parser.parse_args(arguments).folder
    with (
        tempfile.TemporaryDirectory(prefix="memsluice-screens-") as place,
        shown(Path(place) / "home") as desk,
        chromium() as browser,
    ):
        for name, size in take(browser, desk, folder):
            print(f"{name}.png {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
