"""A reviewer at the desk: real keys in a real browser, by a person's rules, and a witness who looks at the screen.

The reviewer knows what stood on the screen and nothing else. A page whose texts all deserve the same is decided as one,
once all of it was read; texts that deserve different things are decided one by one. The witness reckons apart from the
page's own scripts, by the geometry of every frame, which contents were in view before the key that decided.
"""

import json
import re
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from playwright.sync_api import Page, Route, ViewportSize, expect

from memsluice.errors import StateError

Verdict = Literal["release", "reject"]
Judge = Callable[[str], Verdict]
ALL_KEYS: dict[Verdict, str] = {"release": "Shift+R", "reject": "Shift+X"}
ONE_KEYS: dict[Verdict, str] = {"release": "r", "reject": "x"}
VIEWPORT: ViewportSize = {"width": 1_280, "height": 1_000}
SCREENS_MAX = 100
"""Screens of one page that are read before it is given up."""
PAGES_MAX = 1_000
WAIT_MS = 60_000
WITNESS = """
(() => {
  const rows = new Map();  // of each content, the pixel rows that were in view in any frame
  const heights = new Map();
  let then = new Map();  // … as it was when the last key went down on the page: what is decided had to be there before
  function look() {
    requestAnimationFrame(look);
    const bar = document.querySelector(".desk-bar")?.getBoundingClientRect();
    if (!bar || document.querySelector("dialog[open]")) return;
    const bottom = Math.min(innerHeight, bar.bottom > 0 && bar.top < innerHeight ? bar.top : innerHeight);
    for (const one of document.querySelectorAll("article.held-entry")) {
      const { top, height } = one.querySelector("pre.content").getBoundingClientRect();
      const name = one.dataset.event;
      if (!rows.has(name)) rows.set(name, new Set());
      heights.set(name, height);
      const last = Math.min(height, bottom - top);
      for (let row = Math.floor(Math.max(0, -top)); row <= last; row++) rows.get(name).add(row);
    }
  }
  requestAnimationFrame(look);
  addEventListener("keydown", () => {
    if (document.querySelector("dialog[open]")) return;
    then = new Map([...rows].map(([name, seen]) => [name, new Set(seen)]));
  }, true);
  globalThis.witnessed = (name, now) => [heights.get(name) ?? 0, [...(now ? rows : then).get(name) ?? []]];
})();
"""
"""Runs in a page before its own scripts. What is in view behind an open dialog does not count."""
_SETTLED = """
async (before) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const ended = () => scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
  for (let frames = 0; before !== null && scrollY === before && !ended() && frames < 600; frames++) await frame();
  let [same, last] = [0, scrollY];
  for (let frames = 0; same < 4 && frames < 600; frames++) {
    await frame();
    same = scrollY === last ? same + 1 : 0;
    last = scrollY;
  }
  return ended();
}
"""
_WAITING = """
() => [...document.querySelectorAll("article.held-entry")]
  .filter((one) => ["pending", "refused"].includes(one.dataset.state))
  .map((one) => [one.dataset.event, one.querySelector("pre.content").textContent])
"""
_WHOLE = re.compile(r"^(\d+) of \1 read$")
_GROUP = re.compile(r"/held/groups/")


@dataclass(frozen=True, slots=True)
class Decision:
    """What a command said that left the browser: about which write, what, the digest of what was shown; and whether
    the witness had seen the write's content whole before the key that decided."""

    event_id: str
    action: str
    shown: str
    seen: bool


@dataclass
class Session:
    """One sitting of a reviewer who goes by a judge of texts. ``pages`` counts those that were decided on, and
    ``one_by_one`` those of them whose texts deserved different things."""

    page: Page
    judge: Judge
    keys: int = 0
    clicks: int = 0
    pages: int = 0
    one_by_one: int = 0
    seconds: float = 0.0
    decided: list[Decision] = field(default_factory=list)

    @property
    def actions(self) -> int:
        """How often the reviewer pressed a key or the mouse."""
        return self.keys + self.clicks

    def press(self, key: str) -> None:
        """Press a key, which counts."""
        self.keys += 1
        self.page.keyboard.press(key)

    def clear(self, url: str) -> None:
        """Decide all that waits, from the list of groups on, until the desk is back there. Raises StateError."""
        self.page.add_init_script(WITNESS)
        self.page.route("**/commands", self._note)
        self.page.goto(f"{url}/held")
        began = time.perf_counter()
        self.press("j")
        self.press("Enter")
        self.page.wait_for_url(_GROUP)
        for _ in range(PAGES_MAX):
            self._read()
            self._decide()
            if not _GROUP.search(self.page.url):
                break
        self.seconds = time.perf_counter() - began

    def _read(self) -> None:
        """Read the page to its end. Raises StateError where the desk does not count it as read then."""
        expect(self.page.locator("html[data-desk=ready]")).to_have_count(1, timeout=WAIT_MS)
        before, ended = None, False
        for _ in range(SCREENS_MAX):
            ended = self.page.evaluate(_SETTLED, before)
            if _WHOLE.match(self.page.locator(".desk-count").inner_text()):
                return
            if ended and before is not None:
                break
            before = self.page.evaluate("scrollY")
            self.press("Space")
        raise StateError(f"the desk says {self.page.locator('.desk-count').inner_text()!r} at the end of a page")

    def _decide(self) -> None:
        """Decide what waits on the page, which was read, and wait for the desk to go on by itself."""
        there = self.page.url
        texts = dict(self.page.evaluate(_WAITING))
        for name in texts:
            if not seen(self.page, name, now=True):
                raise StateError(f"the desk counts {name} as read, and it was not on the screen whole")
        deserved = {name: self.judge(text) for name, text in texts.items()}
        self.pages += 1
        if len(set(deserved.values())) == 1:
            self.press(ALL_KEYS[next(iter(deserved.values()))])
            expect(self.page.locator("dialog[open]")).to_have_count(1)
            self.press("Enter")
        else:
            self.one_by_one += 1
            for _ in texts:
                name = self.page.locator("article.held-entry:focus").get_attribute("data-event") or ""
                self.press(ONE_KEYS[deserved[name]])
                self.page.wait_for_function(_DONE, arg=name, timeout=WAIT_MS)
        self.page.wait_for_url(lambda url: url != there, timeout=WAIT_MS)

    def _note(self, route: Route) -> None:
        """Note what leaves the browser, as it leaves it."""
        sent: dict[str, Any] = json.loads(route.request.post_data or "{}")
        for envelope in sent["envelopes"]:
            command = json.loads(b64decode(envelope["payload"]))
            shown = command["parameters"].get("shown", "")
            was_seen = seen(self.page, command["target"])
            self.decided.append(Decision(command["target"], command["action"], shown, was_seen))
        route.continue_()


_DONE = """
(name) => {
  const one = [...document.querySelectorAll("article.held-entry")].find(({ dataset }) => dataset.event === name);
  return !one || (one.dataset.state !== "pending" && !document.getElementById("desk").hasAttribute("aria-busy"));
}
"""


def scrolled(page: Page, key: str) -> bool:
    """Press a key that scrolls, and wait until the page stands still; whether it stands at its end."""
    before = page.evaluate("scrollY")
    page.keyboard.press(key)
    return bool(page.evaluate(_SETTLED, before))


def seen(page: Page, name: str, *, now: bool = False) -> bool:
    """Whether the witness had all rows of a write's content, but for two at each edge, before the last key (or now)."""
    height, rows = page.evaluate("([name, now]) => witnessed(name, now)", [name, now])
    near = {row + by for row in rows for by in (-2, -1, 0, 1, 2)}
    return bool(rows) and set(range(int(height))) <= near
