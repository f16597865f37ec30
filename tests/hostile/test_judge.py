"""The judge of hostile inputs: what is planted, it finds. A campaign that can not fail would say nothing."""

import re
from typing import Any

import pytest

from memsluice.errors import InputError, MalformedEvent
from memsluice_lab.hostile import campaign
from memsluice_lab.hostile.judge import Judgement, Target, bounded, judge


def target(read: Any, **options: Any) -> Target:
    """Return a target whose input is a number."""
    return Target(
        "planted", 1, lambda chance: chance.randrange(100), read, options.pop("refusals", (InputError,)), **options
    )


def refuse(_: int) -> None:
    """Refuse as the project does."""
    raise MalformedEvent("no")


def crash(_: int) -> None:
    """Raise what no decoder may."""
    raise KeyError("secret")


def spin(_: int) -> None:
    """Take for ever."""
    while True:
        pass


def backtrack(_: int) -> Any:
    """Take for ever within one call of the interpreter's own."""
    return re.match(r"(a+)+$", "a" * 60 + "b")


def swell(_: int) -> int:
    """Take more memory than any input may."""
    return len(bytearray(2**40))


def test_what_is_read_and_what_is_refused() -> None:
    """Both are fine; a silent refusal counts as one."""
    assert judge(target(lambda given: given), 3).judgement is Judgement.READ
    assert judge(target(refuse), 3).judgement is Judgement.REFUSED
    assert judge(target(lambda _: None), 3).judgement is Judgement.REFUSED


@pytest.mark.parametrize("planted", [crash, spin, backtrack, swell])
def test_what_crashes_hangs_or_swells_fails(planted: Any) -> None:
    """An exception outside the tree, endless work in Python or in C, and memory without bound."""
    with bounded(memory_bytes=2**28):
        judged = judge(target(planted), 3, cpu_s=0.05)
    assert judged.judgement is Judgement.FAILED
    assert judged.why


def test_an_error_that_this_decoder_may_not_raise_fails() -> None:
    """A refusal is by the decoder's own errors: what stops a worker is none, even if it is of the tree."""
    assert judge(target(refuse, refusals=()), 3).judgement is Judgement.FAILED


def test_what_is_written_as_something_else_fails() -> None:
    """An accepted input must come back as it was read."""
    assert judge(target(lambda given: given, again=lambda given: given + 1), 3).judgement is Judgement.FAILED
    assert judge(target(lambda given: given, again=lambda given: given), 3).judgement is Judgement.WRITTEN


def test_a_campaign_counts_each_input_once_and_names_failures_by_number() -> None:
    """The figure's value is this count."""
    tally = campaign.run([target(crash), target(refuse)], 10, first=5)
    assert tally.of(Judgement.FAILED) == tally.of(Judgement.REFUSED) == 5
    assert {number for _, number, _ in tally.failures} <= set(range(5, 15))
    assert campaign.kinds(tally.failures) == {("planted", "KeyError"): 5}


def test_bounds_end_with_their_block() -> None:
    """What follows in the process is bounded no more."""
    with bounded(memory_bytes=2**28):
        pass
    assert judge(target(lambda _: len(bytearray(2**29))), 3).judgement is Judgement.READ
