"""The review on a terminal, over a home as it is: groups, reading, deciding, taking back."""

import re
from pathlib import Path

from tests.docs.blocks import agrees
from tests.terminal.conftest import EACH, GROUPS
from tests.terminal.desk import joined, press, reading, reviewing, run, shows, states, until

from memsluice.terminal.groups import Groups

OPEN = f"{EACH} of {EACH} read"


def test_groups_are_listed_and_opened_and_every_member_stands_there_whole(home: Path) -> None:
    """Whoever opens a group reads each content and why it is held, without another key."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await shows(pilot, f"{GROUPS} groups", f"{EACH} × wording.held")
            await press(pilot, "j", "enter")
            shown = joined(await shows(pilot, OPEN, "✓ 1 ", f"✓ {EACH} "))
            ((topic, _), *_) = vouchers = re.findall(r"Voucher (\d\d)-(\d{3})\.", shown)  # which is second: by when
            assert set(vouchers) == {(topic, f"{number:03d}") for number in range(EACH)}
            assert shown.count("it tells agents what to do more than its reach and tier allow") == EACH
            await press(pilot, "escape")
            await shows(pilot, f"{GROUPS} groups")
            assert isinstance(app.screen, Groups)

    run(test)


def test_a_decision_goes_on_to_the_next_one_and_behind_the_last_to_the_next_group(home: Path) -> None:
    """One key a write: nobody looks for what is next."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            first = reading(app).group.id
            for _ in range(EACH):
                assert reading(app).group.id == first
                await press(pilot, "x")
            await shows(pilot, OPEN, f"{EACH} wait")
            assert reading(app).group.id != first
            await press(pilot, "r")
            await shows(pilot, "release: 1 done")

    run(test)
    after = states(home)
    assert sorted(after.values()) == ["pending"] * (GROUPS * EACH - EACH - 1) + ["rejected"] * EACH + ["released"]
    assert {one for one, state in after.items() if state == "rejected"} == {f"w-2-{n}" for n in range(EACH)}


def test_what_is_passed_by_stays_as_it_is(home: Path) -> None:
    """s goes on without deciding: to the next write, behind the last one of a group to the next group, then back."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter")
            groups = set()
            for _ in range(GROUPS):
                await shows(pilot, OPEN)
                groups.add(reading(app).group.id)
                for number in range(EACH):
                    assert reading(app).sheet.current == number
                    await press(pilot, "s")
            await shows(pilot, f"{GROUPS} groups")
            assert isinstance(app.screen, Groups)
            assert len(groups) == GROUPS

    run(test)
    assert set(states(home).values()) == {"pending"}


def test_a_group_is_decided_at_once_after_a_look_at_what_differs(home: Path) -> None:
    """Before many are signed their number, what differs and what is left out are shown; Esc signs nothing."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            await press(pilot, "X")
            await shows(
                pilot, f"Reject {EACH} held writes of acme", "signed by reviewer", "What differs in them",
                f"{EACH} × wording.held: it tells agents",
            )  # fmt: skip
            await press(pilot, "escape")
            await shows(pilot, OPEN)
            assert not app.runs
            await press(pilot, "X", *"never", "enter")
            await shows(pilot, "reject: 4 done")
            await press(pilot, "l")
            await until(pilot, lambda screen: screen.count("rejected") == EACH)

    run(test)
    assert sorted(states(home).values()).count("rejected") == EACH


def test_a_rejection_is_taken_back_and_a_release_is_not(home: Path) -> None:
    """u undoes what was rejected last, once; of a release there is nothing to take back."""

    async def test() -> None:
        async with reviewing(home) as (_, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            await press(pilot, "x", "x", "r", "u")
            await shows(pilot, "taken back: 1 of 1 wait again", "it was taken back: it waits again")
            await press(pilot, "u", "u")
            await shows(pilot, "nothing was rejected here that could be taken back")

    run(test)
    assert sorted(states(home).values()).count("rejected") == 0
    assert sorted(states(home).values()).count("released") == 1


def test_what_was_taken_back_can_be_decided_again(home: Path) -> None:
    """The write stands by the reopening then: a decision bound to how it stood before would be stale."""

    async def test() -> None:
        async with reviewing(home) as (_, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            await press(pilot, "X", "enter")
            await shows(pilot, "reject: 4 done", OPEN)
            await press(pilot, "u")
            await shows(pilot, f"taken back: {EACH} of {EACH} wait again")
            await press(pilot, "escape")
            await shows(pilot, f"{GROUPS} groups")
            await press(pilot, "home", "enter")
            await shows(pilot, OPEN, f"{EACH} wait")
            await press(pilot, "X", "enter")
            await shows(pilot, "reject: 4 done")

    run(test)


def test_notes_claims_and_assignments(home: Path) -> None:
    """What reviewers tell each other is signed like a decision, and stands beside the write."""

    async def test() -> None:
        async with reviewing(home) as (_, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            await press(pilot, "c")
            await shows(pilot, "claimed by reviewer")
            await press(pilot, "n", *"askana", "enter")
            await shows(pilot, "note: askana")
            await press(pilot, "a", *"bo", "enter")
            await shows(pilot, "assigned to bo")
            await press(pilot, "c")
            await until(pilot, lambda screen: "claimed by reviewer" not in screen and "assigned to bo" in screen)
            await press(pilot, "n", "enter")
            await shows(pilot, "notes.empty")

    run(test)


def test_a_filter_narrows_and_says_what_is_wrong_with_it(home: Path) -> None:
    """A typo in a field, or in a value, says so; the dialog stays open until the filter can be read."""

    async def test() -> None:
        async with reviewing(home) as (_, pilot):
            await press(pilot, "slash", *"tenent", "colon", *"acme", "enter")
            await shows(pilot, "did you mean tenant?")
            await press(pilot, "escape", "slash", *"tenant", "colon", *"acmee", "enter")
            await shows(pilot, "there is no tenant acmee among the held writes; did you mean acme?")
            await press(pilot, "S", *"odd", "enter")
            await shows(pilot, "saved: /@odd")
            await press(pilot, "slash", "ctrl+u", "enter")
            await shows(pilot, f"{GROUPS} groups")
            await press(pilot, "slash", "ctrl+u", *"@odd", "enter")
            await shows(pilot, "0 groups: tenant:acmee")
            await press(pilot, "question_mark")
            await until(pilot, lambda screen: "@odd  tenant:acmee" in screen)

    run(test)


def test_all_that_is_known_of_one_is_a_key_away(home: Path) -> None:
    """Source, lineage and scores stand above the content while one looks."""

    async def test() -> None:
        async with reviewing(home) as (_, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            await press(pilot, "enter")
            await shows(pilot, "not tainted", "digest")
            await press(pilot, "enter")
            await until(pilot, lambda screen: "digest" not in screen and OPEN in screen)

    run(test)


def test_the_page_of_documentation_shows_the_screens_as_they_are(home: Path) -> None:
    """docs/review.md shows what one sees: its screens are compared with the real ones."""
    page = Path(__file__).parents[2] / "docs" / "review.md"
    blocks = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    groups, group = (block for block in blocks if "wording.held" in block)

    async def test() -> None:
        async with reviewing(home) as (_, pilot):
            await until(pilot, lambda screen: agrees(groups, screen), groups)
            await press(pilot, "enter")
            await until(pilot, lambda screen: agrees(group, screen), group)

    run(test)


def test_a_decision_is_heard_on_another_page(home: Path) -> None:
    """Who goes back while the gate decides hears what it said, and can decide on."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter")
            await shows(pilot, OPEN)
            await pilot.press("x", "escape")
            await shows(pilot, f"{GROUPS} groups", "reject: 1 done")
            await press(pilot, "l")
            await shows(pilot, "w-2-3 rejected")
            assert not app.busy

    run(test)
    assert sorted(states(home).values()).count("rejected") == 1
