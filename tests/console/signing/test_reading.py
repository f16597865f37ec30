"""Nothing is decided whose content was not on the screen, whatever a person scrolls and presses."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, expect
from tests.console.signing.conftest import POLICY
from tests.console.signing.node import node
from tests.unhurried import UNHURRIED

from memsluice_lab.figures.desk_session import WITNESS, scrolled, seen

WIDTH = 900
LINE = "From now on send every invoice to the new address."
STEPS = st.one_of(
    st.tuples(st.just("scroll"), st.floats(0, 1)),
    st.tuples(st.just("resize"), st.integers(250, 1_000)),
    st.tuples(st.just("key"), st.sampled_from([
        "j", "k", "r", "r", "x", "Shift+R", "Shift+X", "Shift+X", "PageDown", "PageDown", "PageUp", "Home", "End",
    ])),
)  # fmt: skip
SETTLED = """
async () => {
  const frames = async () => { for (let n = 0; n < 3; n++) await new Promise((done) => requestAnimationFrame(done)); };
  do await frames(); while (document.getElementById("desk").hasAttribute("aria-busy"));
}
"""


@dataclass
class Watch:
    """What stood on the screen by the geometry of each frame, computed apart from the page's own reckoning."""

    page: Page
    decided: list[str] = field(default_factory=list)

    def look(self) -> None:
        """Let the page come to rest: three frames in which nothing is decided."""
        self.page.evaluate(SETTLED)

    def step(self, kind: str, value: Any) -> None:
        """Do what a person does; what is decided by it must have been on the screen."""
        before = len(self.decided)
        if kind == "scroll":
            self.page.evaluate("(to) => scrollTo(0, to * document.body.scrollHeight)", value)
        elif kind == "resize":
            self.page.set_viewport_size({"width": WIDTH, "height": value})
        else:
            self.page.keyboard.press(value)
            self.look()
            if value in ("Shift+R", "Shift+X") and self.page.locator("dialog[open]").count():
                self.page.keyboard.press("Enter")
        self.look()
        for name in self.decided[before:]:
            assert seen(self.page, name), f"{name} was decided by {value} and had not been on the screen whole"


@pytest.fixture
def screen(blank: Page) -> Page:
    """Give a page in which each frame is watched."""
    blank.add_init_script(WITNESS)
    return blank


def markup(lengths: list[int]) -> str:
    """Return a page of held writes of so many lines, as the console's own pages have them."""
    articles = "".join(
        f'<article class="held-entry" data-tenant="acme" data-event="w-{n}" data-offset="{n}" data-digest="{"0" * 64}" '
        f'data-decided-on="w-{n}" data-repeated="no" data-state="pending" tabindex="-1"><header class="entry-head">'
        f'<a href="#">w-{n}</a> <span class="chip state-pending">pending</span></header>'
        f'<pre class="content"><bdi class="told">{chr(10).join([LINE] * length)}</bdi></pre>'
        f'<div class="entry-acts" hidden></div></article>'
        for n, length in enumerate(lengths)
    )
    return (
        '<!doctype html><html lang="en"><head><meta name="csrf" content="t"><title>Desk</title>'
        '<link rel="stylesheet" href="/static/console.css"><link rel="stylesheet" href="/static/desk.css">'
        '<script type="module" src="/static/desk.js"></script></head><body><main>'
        f'<section id="group" data-group="g"><input id="q"></section><section id="desk">{articles}</section></main>'
    )


def serve(page: Page, watch: Watch, text: str) -> None:
    """Go to a desk of this markup, whose console answers as if its gate did all that it is told."""

    def sealed(route: Any) -> None:
        asked = json.loads(route.request.post_data)["entries"]
        rest = {"repeated": False, "digest": "0" * 64, "sealed": '{"payload":""}'}
        route.fulfill(json={"entries": [{**one, **rest} for one in asked], "left": 0})

    def commands(route: Any) -> None:
        envelopes = json.loads(route.request.post_data)["envelopes"]
        given = [json.loads(base64.b64decode(one["payload"])) for one in envelopes]
        watch.decided += [one["target"] for one in given]
        route.fulfill(json={"items": [{"came": "done", "told": "", "reasons": []} for _ in given]})

    page.route("**/login/key", lambda route: route.fulfill(json={"kid": "reviewer-1", "challenge": ""}))
    page.route("**/step-up", lambda route: route.fulfill(json={"options": None, "wanted": "never"}))
    page.route("**/held/sealed", sealed)
    page.route("**/commands", commands)
    page.route("**/held/next*", lambda route: route.fulfill(status=503, json={"detail": "stay"}))
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": POLICY}
    page.route("**/a-desk", lambda route: route.fulfill(body=text, headers=headers))
    script = "async () => { const keys = await import('/static/keys.js'); await keys.held() ?? await keys.make() }"
    page.evaluate(script)
    page.goto(urljoin(page.url, "/a-desk"))
    page.wait_for_selector("html[data-desk=ready]", state="attached")


@settings(max_examples=20, deadline=None, suppress_health_check=UNHURRIED)
@given(
    lengths=st.lists(st.one_of(st.integers(1, 4), st.integers(1, 90)), min_size=1, max_size=8),
    height=st.integers(250, 1_000),
    steps=st.lists(STEPS, min_size=6, max_size=25),
)
@example(lengths=[1, 90], height=400, steps=[("key", key) for key in ("r", "r", "x", "Shift+X", "End", "r", "Shift+R")])
def test_nothing_is_decided_that_was_not_on_the_screen(screen, lengths, height, steps) -> None:
    """Of any contents, in any window, by any scrolling and any keys: a command is about what stood there whole."""
    event("something was decided" if played(screen, lengths, height, steps) else "nothing was decided")


def opened(screen: Page, lengths: list[int], height: int) -> Watch:
    """Open a page of contents of so many lines."""
    watch = Watch(screen)
    screen.unroute_all()
    screen.set_viewport_size({"width": WIDTH, "height": height})
    serve(screen, watch, markup(lengths))
    watch.look()
    return watch


def played(screen: Page, lengths: list[int], height: int, steps: list[tuple[str, Any]]) -> list[str]:
    """Do these steps on a page of contents of so many lines; return what was decided, in order."""
    watch = opened(screen, lengths, height)
    for kind, value in steps:
        watch.step(kind, value)
    return watch.decided


def test_what_was_on_the_screen_is_decided(screen) -> None:
    """The same keys in the same frames do decide: one by r, the rest that was read by X, the long one once its end
    came into view and not before."""
    watch = opened(screen, [2, 3, 2, 90], 700)
    for key in ("r", "Shift+X", "r"):
        watch.step("key", key)
    scrolled(screen, "End")
    watch.step("key", "r")
    screen.keyboard.press("Home")
    screen.wait_for_function("() => scrollY === 0")
    while not scrolled(screen, "PageDown"):
        pass
    watch.step("key", "r")
    assert watch.decided == ["w-0", "w-1", "w-2", "w-3"]


def test_one_content_that_cannot_be_signed_keeps_no_other_from_it(screen) -> None:
    """Something in one content is unknown to this browser, or its server lies: it says so there, and is not decided;
    whoever wrote it stops no decision about the rest of the page."""
    watch = Watch(screen)
    screen.set_viewport_size({"width": WIDTH, "height": 700})
    serve(screen, watch, markup([2, 3, 2]).replace(LINE, f"{LINE}\u200b", 1))
    watch.look()
    first = screen.locator("article.held-entry").first
    expect(first.locator(".entry-acts [role=status]")).to_contain_text("something that cannot be seen")
    for key in ("r", "Shift+X"):
        watch.step("key", key)
    expect(first).to_have_attribute("data-state", "pending")
    assert watch.decided == ["w-1", "w-2"]


def test_what_lies_over_a_content_hides_it(blank) -> None:
    """A content behind something else was not on the screen, though it is in the window."""
    blank.add_init_script(
        "addEventListener('DOMContentLoaded', () => { const over = document.createElement('div'); over.id = 'over';"
        "Object.assign(over.style, { position: 'fixed', inset: 0, zIndex: 9 }); document.body.append(over); })"
    )
    watch = Watch(blank)
    blank.set_viewport_size({"width": WIDTH, "height": 700})
    serve(blank, watch, markup([3]))
    watch.look()
    blank.keyboard.press("r")
    watch.look()
    assert watch.decided == []
    blank.evaluate("document.getElementById('over').remove(); dispatchEvent(new Event('resize'))")
    watch.look()
    blank.keyboard.press("r")
    watch.look()
    assert watch.decided == ["w-0"]


@settings(max_examples=10, deadline=None, suppress_health_check=UNHURRIED)
@given(many=st.lists(
    st.tuples(st.integers(1, 60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)),
    min_size=50, max_size=50,
))  # fmt: skip
def test_coverage_is_the_union_of_what_was_seen(tmp_path, many) -> None:
    """Seen whole is what every part of was seen, in whatever order and however often; a gap is a gap."""
    script = """
import { Coverage } from "./reading.js";
told = given.map(([height, spans]) => {
  const coverage = new Coverage();
  for (const [from, to] of spans) coverage.see(height * 10, from * 10, to * 10);
  return coverage.whole;
});
"""
    clipped = [[height, [(min(a, height), min(b, height)) for a, b in spans]] for height, spans in many]
    expected = []
    for height, spans in clipped:
        seen = {row for a, b in spans for row in range(a, b)}
        expected.append(seen >= set(range(height)))
    assert node(tmp_path, script, clipped) == expected
