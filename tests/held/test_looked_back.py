"""What look back took out, as an operator sees it and gets it back: the command line on the embedded runtime."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.encoders import minilm
from tests.provenance.shop import READER, Shop

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.events.models import Action, Zone
from memsluice.gate.policy.model import parse
from memsluice_lab.world_embedded import EmbeddedWorld

POLICY = """name: eager
wording: {action: report}
detect: {threshold: 2.0, signals: [coverage, nearness, repetition]}
"""
"""A note that says the same thing over and over is just below this, and above it once its question is asked."""
NOTE = (
    "The harbour book says who paints the lighthouse gallery railing, and who paints the lighthouse gallery railing, "
    "and who paints the harbour book."
)
ASKED = "Who paints the lighthouse gallery railing?"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A home where a recall took out an agent's note ``note``."""
    shop = Shop(tmp_path / "home")
    shop.home.policy_file.parent.mkdir(exist_ok=True)
    shop.home.policy_file.write_text(POLICY)
    shop.opened("s-1")
    shop.write(NOTE, event_id="note", source="agent")
    shop.write("Ana takes the early train on Mondays.", event_id="other")
    people = Session("acme", "helper", "ana", "s-1")
    shop.publish(READER, requests.recall("asks", datetime.now(UTC), people, ASKED, []))
    return shop


def test_it_is_counted_listed_and_let_in_again(shop: Shop) -> None:
    """``stats`` counts it, ``list --withdrawn`` shows by which recall, ``release --withdrawn`` signs what it shows."""
    assert shop.now("note") == "withdrawn"
    assert shop.now("other") == "guidance"
    for command in ("stats", "list"):
        assert "look back withdrew 1 entry that had landed" in shop.run(command).output
    assert json.loads(shop.run("stats", "--json").stdout)["withdrawn"] == 1
    (told,) = json.loads(shop.run("list", "--withdrawn", "--json").stdout)["entries"]
    assert (told["event_id"], told["recall"], told["principal"], told["state"]) == ("note", "asks", "ana", "withdrawn")
    assert "by recall asks of ana" in shop.run("list", "--withdrawn").output
    done = shop.run("release", "note", "--withdrawn", "--yes")
    assert done.exit_code == 0, done.output
    for said in (
        "withdrawn → guidance",
        "nobody → principal",
        "lighthouse gallery",
        "done: the entry that a recall withdrew is in memory again",
    ):
        assert said in done.output
    assert shop.now("note") == "guidance"
    (told,) = json.loads(shop.run("list", "--withdrawn", "--json").stdout)["entries"]
    assert told["state"] == "released"
    assert json.loads(shop.run("stats", "--json").stdout)["withdrawn"] == 0


def test_what_was_not_taken_out_has_no_such_release(shop: Shop) -> None:
    """The command says so before anybody signs; without the option it looks among what is held, and says where else."""
    assert "look back did not withdraw entry other" in str(
        shop.run("release", "other", "--withdrawn", "--yes").exception
    )
    for verb in ("show", "release"):
        said = str(shop.run(verb, "note").exception)
        assert "look back withdrew it" in said
        assert "release note --withdrawn" in said
        assert "look back" not in str(shop.run(verb, "other").exception)
    assert shop.run("release", "note", "--yes").exit_code == 1
    assert shop.now("note") == "withdrawn"


def test_what_is_let_in_again_is_recalled_and_stays() -> None:
    """A real recall is given it, then its own question takes it out of the store, and after a reviewer's release it is
    given again, however often it is asked for."""
    world = EmbeddedWorld(["acme"], minilm(), parse(POLICY))
    ana = Session("acme", "helper", "ana", "s-1")
    world.observe(ana)
    note = world.write("agent", ana, NOTE)
    world.write("user", ana, "Ana takes the early train.")
    given = [len(world.ask(ana, ASKED).entries) for _ in range(2)]
    assert given == [2, 1]
    released = world.said("acme", world.order("acme", Action.RELEASE, note))
    assert (released.decision, released.zone) == ("accept", Zone.GUIDANCE)
    assert [len(world.ask(ana, ASKED).entries) for _ in range(3)] == [2, 2, 2]
    world.close()
