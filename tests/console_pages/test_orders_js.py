"""The console's ``orders.js``: an order that a browser builds is the one that the gate's own programs read."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.console.signing.node import node
from tests.unhurried import UNHURRIED

from memsluice.envelope.codec import canonical, from_json
from memsluice.envelope.partition_orders import ACKNOWLEDGE, RESUME, Missing, PartitionOrder
from memsluice.events.models import Command

HEAD = 'import { canonical, commandOf, orderOf, signedWords, told as said } from "./orders.js";\n'
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, min_size=20, max_size=20))
@settings(max_examples=5, deadline=None, suppress_health_check=UNHURRIED)
def test_a_value_has_the_text_that_the_gate_gives_it(tmp_path: Path, values: list[Any]) -> None:
    """Keys in order, no blanks, nothing escaped that the gate does not escape: the same bytes."""
    texts = node(tmp_path, HEAD + "told = given.map(canonical);", values)
    assert [text.encode() for text in texts] == [canonical(value) for value in values]


@pytest.mark.parametrize("missing", [None, Missing("memory.events.v1", 4, 6)])
def test_an_order_about_a_partition_is_the_gate_s(tmp_path: Path, missing: Missing | None) -> None:
    """What the page says of a failure, with the person's reason and time, is the whole order and nothing else."""
    action = RESUME if missing is None else ACKNOWLEDGE
    order = PartitionOrder(action, "screen", 3, "f" * 32, missing, "mended: «ü»", 1_780_000_000_000)
    said = {name: value for name, value in asdict(order).items() if name not in ("why", "given_ms")}
    form = {"order": "partition", "said": canonical(said).decode()}
    script = "told = canonical(orderOf(given.form, given.why, given.at, 'id'));"
    text = node(tmp_path, HEAD + script, {"form": form, "why": order.why, "at": order.given_ms})
    assert text.encode() == canonical(asdict(order))


def test_a_command_of_a_form_is_read_as_one(tmp_path: Path) -> None:
    """An activation that a second person must sign holds for days, a dismissal for minutes; both are valid commands."""
    about = {"tenant": "*", "target": "memory.events.v1/1/2", "digest": "d" * 64}
    forms = [
        {"command": "activate", "send": "/proposals", "policy": "{}", **about},
        {"command": "dismiss", "send": "/commands", **about},
    ]
    script = "told = given.map((form) => commandOf(form, 'why', 1780000000000, '0b7a'));"
    made = [Command.model_validate(one) for one in node(tmp_path, HEAD + script, forms)]
    held_s = [(one.expires_at - one.time).total_seconds() for one in made]
    assert held_s == [3 * 86_400, 900]
    assert [one.action.value for one in made] == ["activate", "dismiss"]
    assert [from_json(one.policy) if one.policy else None for one in made] == [{}, None]


def test_what_a_form_has_signed_is_told_from_what_is_signed(tmp_path: Path) -> None:
    """A server that shows one policy, or one letter, and has another signed does not go unnoticed: every field that it
    chose stands above the button, as the browser reads it."""
    letters = [["memory.events.v1/1/2", "a" * 64], ["memory.events.v1/1/3", "b" * 64]]
    missing = {"topic": "memory.events.v1", "first": 4, "end": 6}
    forms = [
        {"command": "activate", "send": "/proposals", "tenant": "*", "target": "p", "digest": "d", "policy": "name: x"},
        {"order": "letters", "letters": canonical(letters).decode()},
        {
            "order": "partition",
            "said": canonical({"action": "acknowledge", "stage": "land", "missing": missing}).decode(),
        },
    ]
    command, replay, partition = node(tmp_path, HEAD + "told = given.map(signedWords);", forms)
    assert command.split("\n") == ["tenant: *", "action: activate", "target: p", "digest: d", "policy: name: x"]
    assert all(part in replay for letter in letters for part in letter)
    said = {"action: acknowledge", "stage: land", f"missing: {canonical(missing).decode()}"}
    assert set(partition.split("\n")) == said


def test_what_came_of_an_order_is_said_in_words(tmp_path: Path) -> None:
    """A decision, a letter that is still dead, a partition that runs, and one that nobody answered for."""
    answers = [
        {"letters": [
            {"letter": "a/1/2", "published": True, "reason": "", "decision": "accept", "reasons": []},
            {"letter": "a/1/3", "published": False, "reason": "unknown_key", "decision": None, "reasons": []},
            {"letter": "a/1/4", "published": True, "reason": "", "decision": None, "reasons": []},
        ]},
        {"stage": "screen", "partition": 3, "parked": False},
        {"stage": "screen", "partition": 3, "parked": None},
        {"items": [{"came": "refused", "told": "the digest is another"}]},
    ]  # fmt: skip
    assert node(tmp_path, HEAD + "told = given.map(said);", answers) == [
        "a/1/2: accept\na/1/3: still unknown_key, not published\na/1/4: published, no answer yet",
        "Partition 3 of screen runs again.",
        "The order was sent; no worker of screen has answered yet.",
        "refused: the digest is another",
    ]
