"""What escapes from the pages of a console that show hostile contents: counted in a real browser, page by page."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from memsluice.envelope.registry import Role
from memsluice.errors import StateError
from memsluice_lab.desk.consoles import Desk, person, send
from memsluice_lab.desk.hostile_home import POLICY_FILE, TENANTS
from memsluice_lab.desk.texts import COMPUTED, contents
from memsluice_lab.desk.walking import Visit, Walk, beginning, page_of, pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

SIZES = {"desktop": (1280, 900), "phone": (360, 740)}
CANARY, PROBE = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("canary.js", "probe.js"))
MOST: Mapping[str, int] = {"audit": 60}
"""How many pages of a kind are opened where nobody says so; of the others all."""
FEW = 3
DIALOGS = 5
"""Groups on which the desk's own dialogs are opened, where the contents in them are put together by a script."""
OPENING = ("?", "Shift+X", "n")
"""Keys that open one: all the keys, what is about to be decided, a note."""
_EXPECTED = ("Failed to load resource", "Content Security Policy", "Content-Security-Policy")
"""Messages of the browser that tell of an error page, or of what the page's own listener notes."""


@dataclass
class Escapes:
    """What was found, each once: the page, the size of its window, and what is wrong."""

    found: set[tuple[str, str, str]] = field(default_factory=set)
    opened: Counter[str] = field(default_factory=Counter)
    """How often each page of the console was opened and answered with itself, by its path."""
    loads: int = 0
    dialogs: Counter[str] = field(default_factory=Counter)
    """How often each key of the desk opened its dialog."""

    def kinds(self) -> Counter[str]:
        """Return how many there are of each kind."""
        return Counter(what.partition(":")[0] for _, _, what in self.found)


class Watch:
    """A browser whose pages are watched: what they ask for, say, open and run. One belongs to one person."""

    def __init__(self, context: "BrowserContext", page: "Page", desk: Desk, escapes: Escapes) -> None:
        self.page, self._desk, self._escapes, self._where = page, desk, escapes, ""
        context.add_init_script(CANARY)
        context.on("request", self._asked)
        context.on("page", lambda other: self._note(f"a window was opened: {other.url}"))
        page.on("dialog", self._dialog)
        page.on("download", lambda one: self._note(f"a download: {one.url}"))
        page.on("pageerror", lambda error: self._note(f"a script failed: {error}"))
        page.on("console", lambda told: self._said(told.text) if told.type == "error" else None)

    def _note(self, what: str, size: str = "") -> None:
        self._escapes.found.add((self._where, size, what))

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((f"{self._desk.url}/", "data:,")):
            self._note(f"a request that leaves: {request.url[:120]}")

    def _dialog(self, dialog: Any) -> None:
        self._note(f"a dialog: {dialog.message[:120]}")
        dialog.dismiss()

    def _said(self, text: str) -> None:
        if not any(one in text for one in _EXPECTED):
            self._note(f"the browser complains: {text[:160]}")

    def visit(self, visit: Visit) -> str:
        """Open a page at every size, note what is wrong, return its text. Raises StateError where it does not load."""
        self._where, url = visit.told(), f"{self._desk.url}{visit.path}"
        if visit.fields is None:
            answer = self.page.goto(url)
        else:
            answer = send(self.page, self._desk.url, visit.path, visit.fields)
            url = self.page.url
        if answer is None or answer.status >= 500:
            raise StateError(f"{visit.told()} answered {'nothing' if answer is None else answer.status}")
        if answer.status == 200 and (path := page_of(self._desk.app, self.page.url)):
            self._escapes.opened[path] += 1
        self._escapes.loads += 1
        self.probe()
        html = self.page.content()
        if self.page.url != url:
            self._note(f"the page went elsewhere: {self.page.url[:120]}")
        return html

    def probe(self) -> None:
        """Look at the page at every size."""
        for size, (width, height) in SIZES.items():
            self.page.set_viewport_size({"width": width, "height": height})
            for what in self.page.evaluate(PROBE, COMPUTED):
                self._note(what, size if what.startswith("overflow") else "")

    def dialogs(self, path: str) -> None:
        """Open the desk's dialogs on a group's page, and decide about what stands first, if it was read."""
        self.page.goto(f"{self._desk.url}{path}")
        self.page.locator("html[data-desk=ready]").wait_for()
        for key in (*OPENING, "x"):
            self._where = f"{path} ({key})"
            self.page.keyboard.press(key)
            self._escapes.dialogs[key] += self.page.locator("dialog[open]").count()
            self.probe()
            self.page.keyboard.press("Escape")


@contextmanager
def watched(browser: "Browser", desk: Desk, name: str, role: Role, escapes: Escapes) -> Iterator[Watch]:
    """Give the watched browser of somebody who has logged in."""
    context, page = person(browser, desk, name, role)
    page.set_default_timeout(120_000)
    try:
        yield Watch(context, page, desk, escapes)
    finally:
        context.close()


def escapes_of(
    browser: "Browser", desk: Desk, count: int, *, forms: int = 10, most: Mapping[str, int] = MOST
) -> Escapes:
    """Return what escapes, over every page that the lists of the console lead to, for people of three roles.

    ``forms`` texts are sent by each form; ``most`` is how many pages of a kind are opened at most. Raises StateError
    where a page of the console, or a dialog, was not opened at all: then the count would be of something else.
    """
    escapes, some = Escapes(), contents(count)
    texts = some[:: max(1, count // forms)][:forms]
    with browser.new_context() as context:
        watch = Watch(context, context.new_page(), desk, escapes)
        for text in texts:
            watch.visit(Visit(f"/login?next={quote(text[:200], safe='')}"))
    with watched(browser, desk, "rita", Role.REVIEWER, escapes) as watch:
        groups = _walked(watch, Walk(beginning(False, POLICY_FILE, texts, TENANTS), most))
        for path in groups[:DIALOGS]:
            watch.dialogs(path)
    with watched(browser, desk, "olga", Role.OPERATOR, escapes) as watch:
        few = dict.fromkeys(("entry", "group", "story"), FEW)  # the same pages, which the reviewer has opened
        _walked(watch, Walk(beginning(True, POLICY_FILE, texts, TENANTS), {**most, **few}))
    with watched(browser, desk, "rolf", Role.READER, escapes) as watch:
        seen = map(Visit, ("/", "/held?q=state:any", "/held/entries?q=state:any", "/audit", "/keys"))
        _walked(watch, Walk(seen, dict.fromkeys(("entry", "group", "story", "audit", "letter"), FEW)))
    if missed := pages(desk.app) - set(escapes.opened):
        raise StateError(f"these pages of the console were not opened: {', '.join(sorted(missed))}")
    if shut := [key for key in OPENING if not escapes.dialogs[key]]:
        raise StateError(f"these keys of the desk opened no dialog on {len(groups)} groups: {', '.join(shut)}")
    return escapes


def _walked(watch: Watch, walk: Walk) -> list[str]:
    """Open every page of a walk, and return those of groups."""
    groups = []
    for visit in walk:
        walk.found(watch.visit(visit))
        if visit.path.startswith("/held/groups/"):
            groups.append(visit.path)
    return groups
