"""Nothing escapes from the console's pages; and the count of what escapes can come out bad."""

from collections.abc import Iterator
from typing import Any

import pytest
from markupsafe import Markup, escape
from playwright.sync_api import Browser
from tests.encoders import minilm

from memsluice.console import security
from memsluice.console.rendering import environment
from memsluice.envelope.registry import Role
from memsluice.errors import StateError
from memsluice_lab.desk import escapes as counting
from memsluice_lab.desk.consoles import Desk, served
from memsluice_lab.desk.escapes import Escapes, escapes_of, watched
from memsluice_lab.desk.hostile_home import decorated, filled
from memsluice_lab.desk.texts import VECTORS, contents
from memsluice_lab.desk.walking import Visit
from memsluice_lab.figures.registry import get

COUNT = len(VECTORS)
"""Each vector once, in its plainest form."""
MOST = {"audit": 4, "story": 2, "entry": 6, "letter": 4, "group": 40}
LISTS = (Visit("/held?q=state:any"), Visit("/held/entries?q=state:any"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A console over a home in which everything that somebody else chose is hostile."""
    home = filled(tmp_path_factory.mktemp("hostile"), minilm(), COUNT)
    with served(home.home.path) as made:
        made.serving.kept["encoder"] = minilm()
        decorated(home, made)
        yield made


def test_nothing_escapes_from_any_page(desk: Desk, chromium: Browser) -> None:
    """Each hostile content on each page, for an operator and a reviewer, at the desk and on a phone: nothing runs,
    nothing is asked elsewhere, no element or link is made of it, nothing is too wide, nothing hidden acts."""
    escapes = escapes_of(chromium, desk, COUNT, forms=3, most=MOST)
    assert sorted(escapes.found) == []
    assert get("console_escapes").holds(len(escapes.found))


def of_lists(chromium: Browser, desk: Desk, name: str) -> Escapes:
    """Return what escapes from the lists of held writes, for a reviewer of this name."""
    escapes = Escapes()
    with watched(chromium, desk, name, Role.REVIEWER, escapes) as watch:
        for visit in LISTS:
            watch.visit(visit)
    return escapes


def unsafe(text: object, *_: Any) -> Markup:
    """Render a text as HTML: what a template must never do."""
    return Markup(f'<bdi class="told">{text}</bdi>')  # noqa: S704 the slip that is to be found


def raw(text: object, *_: Any) -> Markup:
    """Render a text escaped, with the characters that act left in it."""
    return Markup('<bdi class="told">{}</bdi>').format(str(text))


def linked(text: object, *_: Any) -> Markup:
    """Render a text with links made of it."""
    return Markup('<bdi class="told"><a href="//{}">{}</a></bdi>').format(escape(str(text))[:20], "link")


SLIPS = {
    "unsafe": (unsafe, {"an element within a content", "an element of a content", "a link out", "a script"}),
    "raw": (raw, {"a character that acts"}),
    "linked": (linked, {"an element within a content", "a link out"}),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_template_that_renders_contents_otherwise_is_found(
    desk: Desk, chromium: Browser, slip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the filters for hostile texts are broken the count is not 0, and says in what way."""
    broken, kinds = SLIPS[slip]
    for name in ("hostile", "whole"):
        monkeypatch.setitem(environment().filters, name, broken)
    found = of_lists(chromium, desk, slip)
    assert kinds <= set(found.kinds())


def test_a_script_that_runs_and_a_request_that_leaves_are_found(
    desk: Desk, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the policy of what a page may load, contents that are rendered unsafely run, and ask elsewhere."""
    monkeypatch.setitem(security.HEADERS, "Content-Security-Policy", "default-src *; script-src * 'unsafe-inline'")
    for name in ("hostile", "whole"):
        monkeypatch.setitem(environment().filters, name, unsafe)
    found = of_lists(chromium, desk, "nopolicy")
    assert {"a script ran", "a request that leaves"} <= set(found.kinds())


def test_a_page_that_is_too_wide_is_found(desk: Desk, chromium: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """A style that does not break long words makes pages wider than a phone: that is counted."""
    find = counting.Watch.visit

    def unbroken(watch: counting.Watch, visit: Visit) -> str:
        watch.page.route("**/static/console.css", lambda route: route.fulfill(body="", content_type="text/css"))
        return find(watch, visit)

    monkeypatch.setattr(counting.Watch, "visit", unbroken)
    found = of_lists(chromium, desk, "wide")
    assert {size for _, size, what in found.found if what.startswith("overflow")} >= {"phone"}


def test_a_page_that_no_walk_opens_stops_the_count(
    desk: Desk, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new page of the console must be opened by the walk, and each of the desk's dialogs: else there is no count."""
    monkeypatch.setattr(counting, "pages", lambda _app: {"/held", "/new/page"})
    monkeypatch.setattr(counting, "_walked", lambda _watch, _walk: [])
    with pytest.raises(StateError, match="/new/page"):
        escapes_of(chromium, desk, COUNT, forms=1)
    monkeypatch.setattr(counting, "pages", lambda _app: set())
    with pytest.raises(StateError, match="opened no dialog"):
        escapes_of(chromium, desk, COUNT, forms=1)


def test_contents_are_as_many_as_are_asked_for_and_differ() -> None:
    """A thousand contents are a thousand different ones, and of any number all kinds are among them."""
    found = contents(1_000)
    assert len(set(found)) == 1_000
    assert len(set(contents(COUNT)) & set(VECTORS)) > COUNT - 5
