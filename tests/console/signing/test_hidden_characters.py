"""What is not seen is spelled out by one rule, on the server and in the browser alike.

Whichever of the two does not know a character yet hides it: a text is not signed that the browser cannot show.
"""

import unicodedata
from collections.abc import Iterable
from urllib.parse import urljoin

from playwright.sync_api import Page
from tests.console.signing.conftest import POLICY
from tests.hostile_text.texts import TEXTS

from memsluice.console.rendering import whole
from memsluice.escaping import MARKS_MAX, parts

POINTS = 0x11_0000
MOVED_MAX = 8
"""Marks that Unicode has counted otherwise since the older of the two versions."""
HIDDEN, UNKNOWN, MARK = 1, 2, 4
KINDS = """
async (points) => {
  const { hides } = await import("/static/sending.js");
  const bits = (letter) => hides(letter) + 2 * /\\p{Cn}/u.test(letter) + 4 * /[\\p{Mn}\\p{Me}]/u.test(letter);
  const runs = [];
  for (let point = 0; point < points; point++) {
    const kind = bits(String.fromCodePoint(point));
    if (kind !== runs.at(-1)?.[1]) runs.push([point, kind]);
  }
  return runs;
}
"""
"""What the browser makes of every code point, as runs: the first one, and HIDDEN, UNKNOWN and MARK of all in it."""
SPELLED = """
async (texts) => {
  const { spelled } = await import("/static/sending.js");
  const { displayed } = await import("/static/reading.js");
  const served = [...document.querySelectorAll("pre")].map((one) => {
    try { return displayed(one) } catch (error) { return error.message }
  });
  const made = texts.map((text) =>
    [...spelled(text).childNodes].map((one) => [one.textContent, one.nodeType === Node.ELEMENT_NODE]));
  return { served, made };
}
"""
ACUTE, RING, SIGN, ZWJ, SELECTOR = "\u0301", "\u20dd", "\u0903", "\u200d", "\ufe0f"
PILES = [
    *(f"e{ACUTE * many}!" for many in range(2 * MARKS_MAX)),
    ACUTE * (MARKS_MAX + 2), f"a{ACUTE * MARKS_MAX}\n{ACUTE * MARKS_MAX}", f"a{(ACUTE + ZWJ) * 5}", f"a{RING * 5}b",
    f"a{(ACUTE * MARKS_MAX + SIGN) * 3}", f"a{SELECTOR}{ACUTE * 4}", f"a{ACUTE}{SELECTOR}{ACUTE * 4}{SELECTOR}",
    f"a{ACUTE * 4}\u202e{ACUTE * 4}", f"\U0001f469{ZWJ}\U0001f467{SELECTOR}{ACUTE * 5}", "",
]  # fmt: skip


def kind(letter: str) -> int:
    """Return what the server makes of a character."""
    category = unicodedata.category(letter)
    ((_, hidden),) = parts(letter)
    return (hidden and letter != "\n") + UNKNOWN * (category == "Cn") + MARK * (category in ("Mn", "Me"))


def test_the_browser_hides_what_the_server_hides(blank: Page) -> None:
    """Of all code points: both agree on each that both know; of a newer Unicode, who does not know it yet hides it.
    Which are combining marks is the same, but for the few that Unicode makes marks with a place of their own."""
    runs = blank.evaluate(KINDS, POINTS)
    ends = [first for first, _ in runs[1:]] + [POINTS]
    wrong, moved, agreed = [], 0, 0
    for (first, browser), end in zip(runs, ends, strict=True):
        for point in range(first, end):
            server = kind(chr(point))
            if (browser | server) & UNKNOWN:
                right = all(one & HIDDEN for one in (browser, server) if one & UNKNOWN)
            else:
                right, agreed = (browser ^ server) & HIDDEN == 0, agreed + 1
                moved += browser != server
            wrong += [] if right else [f"U+{point:04X}: {browser} in the browser, {server} on the server"]
    assert wrong == []
    assert moved <= MOVED_MAX
    assert agreed > 250_000


def serve(page: Page, body: str) -> None:
    """Go to a page of this body, under the policy of the console."""
    html = f'<!doctype html><html lang="en"><title>Texts</title><body>{body}</body></html>'
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": POLICY}
    page.route("**/texts", lambda route: route.fulfill(body=html, headers=headers))
    page.goto(urljoin(page.url, "/texts"))


def test_texts_are_spelled_alike(blank: Page) -> None:
    """Marks that pile up, and every hostile text: the browser spells what the server spells, and reads back from the
    server's page what stands in it."""
    texts = [*PILES, *TEXTS.values()]
    serve(blank, "".join(f'<pre class="content">{whole(text)}</pre>' for text in texts))
    told = blank.evaluate(SPELLED, texts)
    assert told["served"] == texts
    assert [joined(pieces) for pieces in told["made"]] == [
        joined((f"U+{ord(piece):04X}", True) if hidden and piece != "\n" else (piece, False) for piece, hidden in found)
        for found in map(parts, texts)
    ]


def test_a_page_that_lets_marks_pile_up_is_not_signed(blank: Page) -> None:
    """Also where a server that lies puts them into elements of their own: what lies over other lines is not read."""
    piece = ACUTE * MARKS_MAX
    serve(blank, f"<pre><bdi>a{piece}<mark>{piece}</mark></bdi></pre>")
    assert blank.evaluate(SPELLED, [])["served"] == [
        "the page shows something that cannot be seen: load it again, or in a newer browser"
    ]


def joined(pieces: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return pieces with those that are not spelled out in one, and without empty ones."""
    found: list[tuple[str, bool]] = []
    for text, spelt in pieces:
        if found and not spelt and not found[-1][1]:
            found[-1] = (found[-1][0] + text, False)
        elif text:
            found.append((text, spelt))
    return found
