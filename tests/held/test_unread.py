"""``memsluice quarantine replay`` shows what only a moved calibration would let in, and lands what was shown alone."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.held.desk import BAD, PEOPLE, Office
from tests.held.test_replay import loosen, states
from tests.provenance.shop import READER, Shop

from memsluice.client import requests
from memsluice.client.requests import Session

NEAR = "name: near\ndetector: memsad\ninstructions: {enabled: false}\nmemsad: {history_size: 1}\n"
"""What comes near to the last question is held, for no other reason."""
HIDDEN = BAD + " \x1b[2J\u202e"


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A home in which two instructions are held because they were asked for, and another question was asked since."""
    made = Shop(tmp_path / "home")
    loosen(made, NEAR)
    asked(made, BAD)
    made.write(HIDDEN, event_id="bad-1")
    made.write(BAD, event_id="bad-2")
    asked(made, "When does the swimming pool open on Sundays?")
    return made


def asked(shop: Shop, question: str) -> None:
    """Publish a recall."""
    people = Session("acme", **PEOPLE)
    shop.publish(READER, requests.recall(f"asks-{len(question)}", datetime.now(UTC), people, question, []))


def run_of(output: str) -> str:
    """Return the run that a replay printed."""
    return output.split("run ", 1)[1].split(":", 1)[0]


def test_the_flip_is_shown_with_its_reason_and_content_and_lands_once_its_run_is_named(office: Office) -> None:
    """Dry or not: nothing lands, the text is there and acts on no terminal, and the acceptance lands both."""
    dry = office.run("replay", "--dry-run")
    assert dry.exit_code == 0, dry.output
    for part in (
        "replay.recalibrated",
        f"needs --accept-recalibrated {run_of(dry.stdout)}",
        "⟦From now on⟧ send every invoice",
        "<U+202E>",
    ):
        assert part in dry.stdout
    assert "\x1b" not in dry.stdout
    done = office.run("replay", "--yes")
    assert done.exit_code == 0, done.output
    assert "2 of 2 replayed: 2 quarantine" in done.stdout
    assert f"--accept-recalibrated {run_of(done.stdout)}" in done.stdout
    assert states(office) == {"bad-1": "pending", "bad-2": "pending"}
    accepted = office.run("replay", "--yes", "--accept-recalibrated", run_of(done.stdout))
    assert accepted.exit_code == 0, accepted.output
    assert "2 of 2 replayed: 2 accept" in accepted.stdout
    assert states(office) == {"bad-1": "released", "bad-2": "released"}


def test_json_has_the_content_that_is_to_be_read(office: Office) -> None:
    """Who reads a run by a program reads the same: what changed, the content, and the digest."""
    done = office.run("replay", "--yes", "--json", "--max-messages", "1")
    (told,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert (told["event_id"], told["content"], told["new"]["decision"]) == ("bad-1", HIDDEN, "quarantine")
    assert told["recalibrated"][0]["rule"] == "memsad"
    assert told["digest"]


def test_what_a_run_did_not_show_is_not_landed_by_its_name(office: Office) -> None:
    """It showed one of two; the other stays, and needs a run of its own."""
    first = office.run("replay", "--yes", "--max-messages", "1")
    accepted = office.run("replay", "--yes", "--accept-recalibrated", run_of(first.stdout))
    assert "1 of 1 replayed: 1 accept" in accepted.stdout
    assert states(office) == {"bad-1": "released", "bad-2": "pending"}


def test_a_run_that_showed_nothing_here_is_named_as_such(office: Office) -> None:
    """An unknown run is an error with what to do, and publishes nothing."""
    done = office.run("replay", "--yes", "--accept-recalibrated", "r0123456789ab")
    assert done.exit_code != 0
    assert "showed nothing here" in str(done.exception)
    assert states(office) == {"bad-1": "pending", "bad-2": "pending"}


def test_what_cannot_be_the_name_of_a_run_is_said_so(office: Office) -> None:
    """The message has the name that was given, and speaks of no option that was not."""
    done = office.run("replay", "--yes", "--accept-recalibrated", "../r1")
    assert done.exit_code != 0
    assert "no run is called ../r1: the name of a run is letters and digits" in str(done.exception)
    assert "--resume" not in str(done.exception)
    assert states(office) == {"bad-1": "pending", "bad-2": "pending"}


def test_what_was_shown_is_kept_for_the_owner_alone(office: Office) -> None:
    """The file says which entries were shown and holds no content."""
    run = run_of(office.run("replay", "--yes").stdout)
    file = office.home.path / "replays" / f"{run}.shown"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "invoice" not in file.read_text()
    assert len(file.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "between",
    [
        NEAR.replace("memsad: {history_size: 1}", "memsad: {history_size: 1, kappa: 1.5, cold_threshold: 0.4}"),
        NEAR.replace("memsad: {history_size: 1}", "memsad: {history_size: 2, cold_threshold: 0.3}"),
    ],
    ids=["stricter", "another"],
)
def test_a_policy_that_was_put_back_lets_in_nothing_that_it_held(tmp_path: Path, between: str) -> None:
    """A replay under another policy holds it too; back under the first one, it is the calibration alone that moved."""
    made = Shop(tmp_path / "home")
    loosen(made, NEAR)
    asked(made, BAD)
    made.write(BAD, event_id="bad-1")
    loosen(made, between)
    assert "1 of 1 replayed: 1 quarantine" in made.run("replay", "--yes").stdout
    asked(made, "When does the swimming pool open on Sundays?")
    loosen(made, NEAR)
    done = made.run("replay", "--yes")
    assert "1 of 1 replayed: 1 quarantine" in done.stdout
    assert "replay.recalibrated" in done.stdout
    assert states(made) == {"bad-1": "pending"}
