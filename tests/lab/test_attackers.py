"""Streams with an attacker put in: shares are kept, what was there stays, and nothing comes from the future."""

from typing import Any

import pytest

from memsluice.errors import ConfigError
from memsluice_lab import attackers

from .stream import line, small


def stream() -> list[dict[str, Any]]:
    """Return forty honest notes and twenty questions by turns."""
    lines: list[dict[str, Any]] = []
    for number in range(20):
        lines.append(line(len(lines), "query", "user", f"Which lantern hangs beside gate number {number}?"))
        for thing in ("lantern", "bench"):
            text = f"The {thing} number {number} was painted in the week after the market."
            lines.append(line(len(lines), "write", "user", text, parents=[len(lines) - 1] if thing == "bench" else []))
    return lines


def without(lines: list[dict[str, Any]]) -> list[str]:
    """Return the texts that no attacker inserted."""
    return [each["text"] for each in lines if each["principal"] != attackers.ATTACKER]


@pytest.mark.parametrize("form", ["whole", "half", "asked"])
def test_a_fifth_of_the_recalls_copies_entries_that_had_been_written(form: attackers.Form) -> None:
    """The share is of all recalls; each copy is of an honest entry before it; the stream itself is as it was."""
    lines = attackers.copied_recalls(stream(), 0.2, seed=1, form=form)
    assert without(lines) == [each["text"] for each in stream()]
    recalls = [each for each in lines if each["kind"] == "query"]
    own = [each for each in recalls if each["principal"] == attackers.ATTACKER]
    assert len(own) / len(recalls) == pytest.approx(0.2)
    for each in own:
        before = [past["text"] for past in lines[: each["seq"]] if past["kind"] == "write"]
        words = set(each["text"].rstrip("?").split()) - set(" ".join(attackers.OPENINGS).split())
        assert any(words <= set(text.split()) for text in before)
        assert (each["text"] in before) is (form == "whole")


def test_a_fifth_of_the_writes_tries_to_shift_what_is_usual() -> None:
    """The share is of all writes, each labelled so that it is told from the stream's own attacks."""
    lines = attackers.poison_calibration(stream(), 0.2, seed=1)
    assert without(lines) == [each["text"] for each in stream()]
    writes = [each for each in lines if each["kind"] == "write"]
    own = [each for each in writes if each["attack"] == attackers.CALIBRATION]
    assert len(own) / len(writes) == pytest.approx(0.2)
    assert {each["label"] for each in own} == {"attack"}
    assert lines == attackers.poison_calibration(stream(), 0.2, seed=1)


def test_places_and_parents_follow_what_is_inserted() -> None:
    """Every line has its place as seq, and names as parents the lines that it named before."""
    lines = attackers.copied_recalls(stream(), 0.2, seed=1)
    assert [each["seq"] for each in lines] == list(range(len(lines)))
    for each in lines:
        assert all(lines[seq]["kind"] == "write" for seq in each["parents"])
    assert sum(len(each["parents"]) for each in lines) == sum(len(each["parents"]) for each in stream())


def test_two_topics_are_one_tenant_one_after_the_other() -> None:
    """The second stream goes on in the first one's tenant, later, in sessions of its own, with its own parents."""
    lines = attackers.two_topics(small(), [{**each, "tenant": "Sailing"} for each in small()])
    assert len({each["tenant"] for each in lines}) == 1
    assert [each["time"] for each in lines] == sorted(each["time"] for each in lines)
    half = len(small())
    assert not {each["session"] for each in lines[:half]} & {each["session"] for each in lines[half:]}
    assert [seq - half for each in lines[half:] for seq in each["parents"]] == [6, 1]


def test_honest_leaves_out_the_sessions_that_attack() -> None:
    """What an attack session observed goes with it; parents that are gone are not named."""
    lines = attackers.honest(small())
    assert {each["label"] for each in lines} == {"benign"}
    assert "s4" not in {each["session"] for each in lines}
    assert sum(len(each["parents"]) for each in lines) == 1


def test_a_share_out_of_range_is_refused() -> None:
    """All of the recalls can't be an attacker's: there would be no stream left."""
    with pytest.raises(ConfigError):
        attackers.copied_recalls(stream(), 1.0, seed=1)
