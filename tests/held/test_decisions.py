"""``memsluice quarantine`` for several held writes at once, for rejections taken back, and for notes and claims."""

import base64
import json
import re

import pytest
from tests.gate.test_shown import shown
from tests.held.desk import BAD, Office
from tests.held.test_replay import states
from typer.testing import CliRunner

from memsluice.cli.entries.trace import app as trace
from memsluice.envelope.registry import Role
from memsluice.keystore.store import issue_credential
from memsluice.topics.names import COMMANDS


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """A home whose log is empty."""
    return Office(tmp_path_factory.mktemp("desk") / "home")


def results(office: Office, *arguments: str) -> dict[str, tuple[str, str]]:
    """Run a decision and return its results and their outcomes by event id."""
    told = json.loads(office.run(*arguments, "--yes", "--json").stdout)
    return {one["event_id"]: (one["result"], one["outcome"]) for one in told["results"]}


def test_several_are_printed_whole_with_what_differs_and_signed_at_once(office: Office) -> None:
    """Before the question: every content with its reasons, then what differs; nothing is signed without a yes; then one
    result an entry, and what waited for no release is left out and said."""
    first, second = office.write(f"{BAD} One."), office.write(f"{BAD} Two two.", principal="bo", session="s-9")
    gone = office.write(f"{BAD} Three.")
    office.run("reject", gone, "--yes")
    before = len(office.records(COMMANDS))
    asked = office.run("release", first, second, gone, input="n\n")
    assert asked.exit_code == 1
    assert len(office.records(COMMANDS)) == before
    question = asked.stdout.index("Sign these 2 commands: release?")
    for part in (f"{BAD} One.", f"{BAD} Two two.", "held for", "wording.held", "3 of 3", "principal  1"):
        assert part in asked.stdout[:question].replace("⟦", "").replace("⟧", ""), part
    assert f"left out: {gone} is rejected" in asked.stdout
    done = office.run("release", first, second, gone, "--yes")
    assert done.exit_code == 8, done.output
    assert f"{first}  done: released" in done.stdout
    assert "2 decided about: 2 done" in done.stdout
    assert {one: states(office)[one] for one in (first, second, gone)} == {
        first: "released", second: "released", gone: "rejected",
    }  # fmt: skip


def test_what_is_signed_says_what_was_printed_and_by_what_it_stood(office: Office) -> None:
    """The command has the content's hash and the entry's own id: the gate holds both against what it has."""
    event_id = office.write(f"{BAD} Shown.")
    office.run("reject", event_id, "--yes")
    envelope = json.loads(office.records(COMMANDS)[-1].value or b"")
    payload = json.loads(base64.b64decode(envelope["payload"]))
    assert payload["parameters"] == {**shown(f"{BAD} Shown."), "decided_on": event_id}
    assert payload["held"]


def test_rejections_are_taken_back_together(office: Office) -> None:
    """Reopened they wait again, in every view; the trace names the command; what waits already is left out."""
    ids = [office.write(f"{BAD} Back {number}.") for number in range(3)]
    assert results(office, "reject", *ids[:2]) == dict.fromkeys(ids[:2], ("done", "rejected"))
    done = office.run("reopen", *ids, "--yes")
    assert done.exit_code == 8
    assert f"left out: {ids[2]} is pending" in done.stdout
    assert {states(office)[one] for one in ids} == {"pending"}
    home = ["--home", str(office.home.path)]
    (life,) = json.loads(CliRunner().invoke(trace, [ids[0], "--json", *home]).stdout)["lives"]
    assert life["now"] == "held"
    told = CliRunner().invoke(trace, [ids[0], *home], env={"COLUMNS": "200"}).stdout
    assert "held for review" in told
    assert ", reopen (" in told
    assert results(office, "release", ids[0]) == {ids[0]: ("done", "released")}
    assert office.run("reopen", ids[0], "--yes").exit_code == 3


def test_a_note_an_assignment_and_a_claim_are_told(office: Office) -> None:
    """`show`, `list` and `trace` say them, as text that acts on no terminal; the gate says who has it to another."""
    event_id = office.write(f"{BAD} Noted.")
    said = office.run("note", event_id, "Asked \u202eana\x1b[2J.", "--assign", "bea", "--claim", "15m")
    assert said.exit_code == 0, said.output
    assert "noted: it is claimed by reviewer until " in said.stdout
    shown = office.run("show", event_id).stdout
    assert "reviewer: Asked <U+202E>ana<U+001B>[2J." in shown
    assert re.search(r"^assigned +bea *$", shown, re.MULTILINE)
    assert re.search(r"^claimed +for \d+ min more by reviewer *$", shown, re.MULTILINE)
    assert "assigned to bea, claimed by reviewer" in office.run("list").stdout
    told = CliRunner().invoke(trace, [event_id, "--home", str(office.home.path)], env={"COLUMNS": "300"}).stdout
    assert "note: Asked <U+202E>ana<U+001B>[2J." in told
    issue_credential(office.keys, Role.REVIEWER, "operator", ["acme"], kid="second")
    office.keys.credential_path("reviewer").rename(office.keys.credential_path("reviewer").with_suffix(".away"))
    try:
        refused = office.run("reject", event_id, "--yes")
        assert refused.exit_code == 3
        assert "refused: review.claimed: " in refused.stdout
        assert "(reviewer has it until " in refused.stdout
        assert office.run("reject", event_id, "--yes", "--despite-claim").exit_code == 0
    finally:
        office.keys.credential_path("reviewer").with_suffix(".away").rename(office.keys.credential_path("reviewer"))
        office.keys.credential_path("second").unlink()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["note", "w-1"], "nothing to note"),
        (["note", "w-1", "x" * 513], "may have 512"),
        (["note", "w-1", "--claim", "9h"], "8 hours at most"),
        (["note", "w-1", "--claim", "soon"], "--claim"),
        (["note", "w-1", "--assign", ""], "--assign"),
        (["release", *(f"w-{n}" for n in range(101))], "too many at once"),
        (["release", "w-1", "w-2", "--offset", "3"], "--offset"),
        (["release", "w-1", "w-2", "--withdrawn"], "one entry at a time"),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_read(office: Office, words: list[str], told: str) -> None:
    """The option that is wrong is named, and nothing is published."""
    before = len(office.records(COMMANDS))
    assert told in str(office.run(*words).exception)
    assert len(office.records(COMMANDS)) == before
