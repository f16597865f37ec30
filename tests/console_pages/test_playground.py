"""The recall playground: it answers as the recall service does to the key that is chosen, and leaves no trace."""

from dataclasses import replace
from typing import Any

import pytest
from tests.console_pages.place import Place
from tests.console_pages.test_audit import said
from tests.encoders import minilm

from memsluice.envelope.keys import KeyState
from memsluice.envelope.registry import Role
from memsluice.keystore.store import issue_credential
from memsluice.topics.names import EVENTS

ASKED = {
    "tenant": "acme", "question": "When does the train leave?", "agent": "helper", "principal": "ana",
    "session": "s-9", "as": "reader-all",
}  # fmt: skip


@pytest.fixture(autouse=True)
def encoder(place: Place) -> None:
    """The encoder that the home's entries were made with, loaded once for all tests."""
    place.serving.kept["encoder"] = minilm()


def ask(place: Place, kid: str = "operator-all", **changes: str) -> Any:
    """Ask by the form."""
    return place.browser(kid).sent("/recall", {**ASKED, **changes})


def test_it_shows_what_a_reader_would_be_given_and_publishes_nothing(place: Place) -> None:
    """The landed entry is shown whole with its tier and a link to its trace; the log is as it was."""
    before = len(place.records(EVENTS))
    html = ask(place).text
    assert "The early train leaves at seven." in html
    assert "/audit/event?id=landed&amp;tenant=acme" in html
    assert "Nothing was withheld." in said(html)
    assert len(place.records(EVENTS)) == before


def test_the_question_is_in_no_address(place: Place) -> None:
    """A question in the address is not asked: the form sends it in its body alone."""
    html = place.browser("operator-all").get("/recall", params=ASKED).text
    assert "The early train" not in html
    assert 'method="post" action="/recall"' in html


def test_what_the_key_may_not_ask_is_refused_as_the_service_refuses_it(place: Place) -> None:
    """A reader of one tenant gets nothing of another; a key that is no reader's gets nothing at all."""
    other = ask(place, tenant="globex", **{"as": "reader"})
    assert (other.status_code, "upstairs" in other.text) == (403, False)
    none = ask(place, **{"as": "agent"})
    assert (none.status_code, "agent is no reader's key" in said(none.text)) == (400, True)


@pytest.mark.parametrize("kid", ["reader-all", "reviewer-all"])
def test_it_is_operators_alone(place: Place, kid: str) -> None:
    """Readers and reviewers are refused by the server, whether they load the page or send the form."""
    assert place.browser(kid).get("/recall").status_code == 403
    assert ask(place, kid).status_code == 403


def test_an_operator_of_some_tenants_asks_of_these_alone(place: Place) -> None:
    """Another tenant's memory is refused, whatever the chosen key may ask."""
    narrow = place.browser("operator-acme").sent("/recall", {**ASKED, "tenant": "globex"})
    assert narrow.status_code == 403
    assert "upstairs" not in narrow.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question": ""}, "question: "),
        ({"question": "x" * 5_000}, "question: "),
        ({"tenant": "no/such tenant"}, "tenant: "),
        ({"k": "0"}, "k: '0' is no number from 1 to"),
        ({"zone": "moon"}, "zone: 'moon' is none"),
    ],
)
def test_what_cannot_be_asked_names_the_field(place: Place, changes: dict[str, str], words: str) -> None:
    """A mistake is answered with 400 and the field's name, and never with the question."""
    answer = ask(place, **changes)
    assert answer.status_code == 400
    assert words in said(answer.text)
    assert "x" * 100 not in answer.text


def test_a_reader_s_key_that_was_revoked_asks_nothing(place: Place) -> None:
    """What the service would refuse at the door is refused here: the key's state counts, not its entry alone."""
    issue_credential(place.keys, Role.READER, "agent", ["acme"], kid="reader-gone")
    assert "The early train" in ask(place, **{"as": "reader-gone"}).text
    ring = place.keys.load_keyring()
    place.keys.save_keyring(ring.with_key(replace(ring.get("reader-gone"), state=KeyState.REVOKED)))
    answer = ask(place, **{"as": "reader-gone"})
    assert (answer.status_code, "revoked" in said(answer.text)) == (403, True)
