"""The audit's pages: what is found, whose it is, and that one event is told as ``memsluice trace`` tells it."""

import re
from collections.abc import Iterator
from html import unescape

import orjson
import pytest
from tests.console_pages.place import Place
from tests.stages import holding
from typer.testing import CliRunner

from memsluice.cli.entries.trace import app as trace
from memsluice.cli.policy import app as policy
from memsluice.envelope.records import verdict_from_bytes
from memsluice.events.names import EVERYBODY
from memsluice.gate.policy.model import document
from memsluice.topics.names import AUDIT

NOTED, DISMISSED, BYTES_MAX = "Asked ana about Zurich-7731.", "Line 7732 was tested.", 31_337
"""What a reviewer wrote of a held write, and of a dead letter; a value of a policy that was activated."""


def said(html: str) -> str:
    """Return a page's text, its blanks made one."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_a_search_names_what_it_found_and_leads_to_the_trace(place: Place) -> None:
    """By reason's module: the held writes alone, each with a link to everything about it."""
    answer = place.browser("operator-all").get("/audit", params={"reason": "instructions"})
    assert answer.status_code == 200
    assert "/audit/event?id=held&amp;tenant=acme" in answer.text
    assert "id=landed&" not in answer.text


def test_one_event_is_told_as_the_command_tells_it(place: Place) -> None:
    """Every row that ``memsluice trace`` prints stands on the page, word for word."""
    page = said(place.browser("operator-all").get("/audit/event", params={"id": "held", "tenant": "acme"}).text)
    env = {"COLUMNS": "2000", "NO_COLOR": "1"}
    printed = CliRunner().invoke(trace, ["held", "--home", str(place.home.path)], env=env).stdout
    rows = [line[12:].strip() for line in printed.splitlines()[1:] if line[12:].strip() and "expires in" not in line]
    bare = page.replace(" ", "")
    assert len(rows) > 12
    assert [row for row in rows if re.sub(r"\s", "", row) not in bare] == []


@pytest.mark.parametrize("address", ["/audit", "/audit/event?id=elsewhere"])
def test_who_sees_some_tenants_is_shown_no_other(place: Place, address: str) -> None:
    """A reviewer of one tenant finds nothing of another, whose name no page of his says."""
    html = place.browser("narrow").get(address).text
    assert "globex" not in html
    assert place.browser("operator-all").get(address).text.count("globex") > 0


def test_another_tenant_is_refused_and_not_merely_empty(place: Place) -> None:
    """Naming a tenant that is not his is answered with 403 and says which field it is about."""
    for address in ("/audit?tenant=globex", "/audit/event?id=elsewhere&tenant=globex", "/calibration?tenant=globex"):
        answer = place.browser("narrow").get(address)
        assert answer.status_code == 403
        assert "tenant: you see nothing of globex" in said(answer.text)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("since=yesterday", "since: 'yesterday' is not a time"),
        ("decision=maybe", "decision: 'maybe' is none: write one of accept"),
        ("type=wish", "type: 'wish' is none"),
        ("before=x", "'x' is no place in the audit"),
        ("event=" + "x" * 300, "event: it has 300 characters, and at most 256 are read"),
    ],
)
def test_what_cannot_be_asked_names_the_field(place: Place, query: str, words: str) -> None:
    """A mistake is answered with 400 and the field's name, on a page."""
    answer = place.browser("operator-all").get(f"/audit?{query}")
    assert answer.status_code == 400
    assert words in said(answer.text)


def test_an_event_that_is_not_there_says_where_else_it_may_be(place: Place) -> None:
    """Not found is said with what was searched, and dead letters are named."""
    answer = place.browser("operator-all").get("/audit/event", params={"id": "nowhere"})
    assert answer.status_code == 404
    assert "among the" in said(answer.text)
    assert "dead-letters list" in said(answer.text)


def test_what_a_sender_chose_is_text_on_every_page(place: Place) -> None:
    """Markup in a session's name stands as text, a character that reorders is written out."""
    html = place.browser("operator-all").get("/audit/event", params={"id": "hostile", "tenant": "acme"}).text
    assert "<img" not in html
    assert "&lt;/script&gt;" in html
    assert "\u202e" not in html


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place where a reviewer wrote a note and dismissed a letter, and two operators activated a policy."""
    made = Place(tmp_path_factory.mktemp("written"))
    made.write(event_id="held")
    made.letter = made.misplaced("letter-1")
    done = [made.run("note", "held", NOTED), made.call("reject", made.letter, "--why", DISMISSED, "--yes")]
    file = made.home.path / "new.yaml"
    file.write_bytes(orjson.dumps({**document(holding.text()), "content_bytes_max": BYTES_MAX}))
    kids = ("--kid", "operator-all", "--kid", "operator-too")
    done.append(CliRunner().invoke(
        policy, ["activate", str(file), *kids, "--yes", "--loosen", "--home", str(made.home.path)]
    ))  # fmt: skip
    assert [one.exit_code for one in done] == [0, 0, 0], [one.output for one in done]
    yield made
    made.close()


def commands(place: Place) -> dict[str, str]:
    """Return the ids of the commands that the audit has, by their actions."""
    ring = place.keys.keyring()
    verdicts = [verdict_from_bytes(ring, one.key.decode(), one.value) for one in place.records(AUDIT)]
    return {one.action: one.event_id for one in verdicts if one.action}


@pytest.mark.parametrize(
    ("kid", "notes", "policies"),
    [("reader-all", False, False), ("reviewer-all", True, False), ("operator-all", True, True)],
)
def test_what_people_wrote_out_is_told_to_whom_their_role_shows_it(
    written: Place, kid: str, notes: bool, policies: bool
) -> None:
    """A note, why a letter was dismissed and a policy's text stand in a trace for who may read them, and for nobody
    else; that there was a note is told to everybody."""
    browser, ids = written.browser(kid), commands(written)
    traces = [("held", "acme"), (ids["note"], "acme"), (ids["dismiss"], EVERYBODY), (ids["activate"], EVERYBODY)]
    pages = [said(browser.get("/audit/event", params={"id": one, "tenant": of}).text) for one, of in traces]
    letters = [
        said(browser.get(path).text) for path in ("/dead-letters?all=yes", f"/dead-letters/letter?id={written.letter}")
    ]
    assert [NOTED in page for page in pages] == [notes, notes, False, False]
    assert [DISMISSED in page for page in (*pages, *letters)] == [False, False, notes, False, notes, notes]
    assert [str(BYTES_MAX) in page for page in pages] == [False, False, False, policies]
    assert ["not for your role" in page for page in pages] == [not notes, not notes, not notes, not policies]
    assert all("dismissed by reviewer-all" in page for page in letters)
