"""Dead letters in the console: who sees what of them, and that a replay takes a signed order, which counts once."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.console_pages.place import Place
from tests.console_pages.test_audit import said

from memsluice.clock import wall_ms
from memsluice.events.names import LETTER_ORDER
from memsluice.operations.commands.signing import TYPE as COMMAND
from memsluice.topics.names import DEAD_LETTER


def order(place: Place, *names: str, **changes: Any) -> dict[str, Any]:
    """Return an order about letters, as the page's script makes it of what the page says."""
    html = place.browser("operator-all").get("/dead-letters/letter", params={"id": names[0]}).text
    digest = said(html).split(" digest ")[1].split(" ")[0]
    letters = [[name, digest] for name in names]
    return {"id": uuid.uuid4().hex, "letters": letters, "why": "mended", "given_ms": wall_ms(), **changes}


@pytest.fixture
def morgue(tmp_path: Path) -> Any:
    """A place of one's own, whose one letter was sent to another partition than its tenant's."""
    made = Place(tmp_path)
    yield made, made.misplaced("letter-x")
    made.close()


def test_who_sees_all_tenants_sees_the_list_and_operators_alone_its_bytes(place: Place) -> None:
    """A reader of all sees reason and claims; the beginning of the value is on an operator's page alone."""
    reader, operator = (place.browser(kid).get("/dead-letters").text for kid in ("reader-all", "operator-all"))
    assert "claims tenant acme" in said(reader)
    assert "wrong_partition" in reader
    assert "Begins" not in reader
    assert ("&#34;payload&#34;" in reader, "&#34;payload&#34;" in operator) == (False, True)


def test_one_letter_s_bytes_are_an_operator_s_to_see(place: Place) -> None:
    """Key, headers, value and payload are not sent to anybody else, and the page says why."""
    address = f"/dead-letters/letter?id={place.letter}"
    reader, operator = (place.browser(kid).get(address).text for kid in ("reader-all", "operator-all"))
    assert "tea is in the second cupboard" in operator
    assert "second cupboard" not in reader
    assert "are shown to operators alone" in said(reader)


@pytest.mark.parametrize("address", ["/dead-letters", "/dead-letters/replay"])
def test_who_sees_some_tenants_sees_no_dead_letter(place: Place, address: str) -> None:
    """What a letter claims is nobody's word: whoever may not see all tenants gets none, and is told why."""
    answer = place.browser("operator").get(address)
    assert answer.status_code == 403
    assert "no tenant's, since nobody authenticated them" in said(answer.text)


def test_a_reader_has_nothing_replayed(place: Place) -> None:
    """Neither the page nor the address behind its button is a reader's."""
    browser = place.browser("reader-all")
    assert browser.get("/dead-letters/replay").status_code == 403
    assert browser.sent("/dead-letters/replays", b"{}").status_code == 403


def test_the_page_says_what_a_replay_would_come_to(place: Place) -> None:
    """A letter that was only misplaced is authentic now: the page names it, and what one would sign."""
    html = place.browser("operator-all").get("/dead-letters/replay").text
    assert "authentic: the gate would decide it" in said(html)
    assert 'data-order="letters"' in html
    assert place.letter in html


def test_a_signed_order_publishes_the_letter_once(morgue: Any) -> None:
    """The gate decides it then; the same order again is refused, and publishes nothing."""
    place, name = morgue
    data = place.signed(LETTER_ORDER, order(place, name), "operator-all")
    answer = place.browser("operator-all").sent("/dead-letters/replays", data)
    assert answer.status_code == 200, answer.text
    (told,) = answer.json()["letters"]
    assert (told["published"], told["decision"]) == (True, "accept")
    again = place.browser("operator-all").sent("/dead-letters/replays", data)
    assert (again.status_code, "carried out already" in again.text) == (400, True)
    assert len(place.records(DEAD_LETTER)) == 1


def test_an_order_that_comes_while_too_many_pages_read_is_refused_and_may_come_again(morgue: Any) -> None:
    """It reads whole partitions as a page does; what was not begun was not carried out."""
    place, name = morgue
    data = place.signed(LETTER_ORDER, order(place, name), "operator-all")
    with place.serving.heavy(), place.serving.heavy():
        answer = place.browser("operator-all").sent("/dead-letters/replays", data)
    assert (answer.status_code, "again soon" in answer.text) == (503, True)
    assert place.browser("operator-all").sent("/dead-letters/replays", data).status_code == 200


def refused(place: Place, who: str, data: bytes) -> str:
    """Send an order that must not be obeyed; return why it was not."""
    before = len(place.records("memory.events.v1"))
    answer = place.browser(who).sent("/dead-letters/replays", data)
    assert answer.status_code in (400, 403, 404), answer.text
    assert len(place.records("memory.events.v1")) == before
    return str(answer.json()["detail"])


def test_no_order_counts_but_the_visitor_s_own_over_these_bytes(place: Place) -> None:
    """Another's signature, a reviewer's, that of some tenants' operator, a changed byte, a command: nothing moves."""
    mine = order(place, place.letter)
    assert "another key than yours" in refused(place, "operator-all", place.signed(LETTER_ORDER, mine, "operator-too"))
    for kid in ("operator", "reviewer-all"):
        told = refused(place, "operator-all", place.signed(LETTER_ORDER, mine, kid))
        assert "only an operator for all tenants" in told
    changed = place.signed(LETTER_ORDER, mine, "operator-all").replace(b'"sig":"', b'"sig":"AA')
    assert "does not verify" in refused(place, "operator-all", changed)
    assert "does not verify" in refused(place, "operator-all", place.signed(COMMAND, mine, "operator-all"))
    two = place.signed(LETTER_ORDER, mine, "operator-all", "operator-too")
    assert "does not verify" in refused(place, "operator-all", two)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"given_ms": 1_000}, "signed too long ago"),
        ({"letters": []}, "names 1 to 100 letters"),
        ({"letters": [["memory.events.v1/0/999", "x"]]}, "there is no dead letter memory.events.v1/0/999"),
        ({"letters": "all"}, "it is no order"),
        ({"why": " "}, "say why"),
        ({"id": "../x"}, "letters and digits"),
        ({"more": 1}, "it is no order"),
    ],
)
def test_an_order_that_says_something_else_is_refused_in_words(
    place: Place, changes: dict[str, Any], words: str
) -> None:
    """Too old, empty, about no letter, without a reason, or with a field more: it says what is wrong."""
    data = place.signed(LETTER_ORDER, order(place, place.letter, **changes), "operator-all")
    assert words in refused(place, "operator-all", data)


def test_an_order_is_bound_to_the_letter_s_bytes(place: Place) -> None:
    """A digest that is not the letter's is refused before anything is published."""
    mine = order(place, place.letter, letters=[[place.letter, "0" * 64]])
    data = place.signed(LETTER_ORDER, mine, "operator-all")
    assert "another letter than the one that was signed" in refused(place, "operator-all", data)
