"""The review on a terminal, over a home as it is: groups, reading, deciding, taking back."""

import re
from pathlib import Path

from tests.docs.blocks import agrees
from tests.terminal.conftest import EACH, GROUPS
from tests.terminal.desk import press, reading, reviewing, run, screen_text, states

from memsluice.terminal.groups import Groups


def test_groups_are_listed_and_opened_and_every_member_stands_there_whole(home: Path) -> None:
    """Whoever opens a group reads each content and why it is held, without another key."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            assert len(app._groups.groups) == GROUPS
            assert f"{EACH} × wording.held" in screen_text(app)
            await press(pilot, "j", "enter")
            shown = screen_text(app)
            assert [f"Voucher 01-{number:03d}." in shown for number in range(EACH)] == [True] * EACH
            assert shown.count("it tells agents what to do more than its reach and tier allow") == EACH
            assert f"{EACH} of {EACH} read" in shown
            await press(pilot, "escape")
            assert isinstance(app.screen, Groups)

    run(test)


def test_a_decision_goes_on_to_the_next_one_and_behind_the_last_to_the_next_group(home: Path) -> None:
    """One key a write: nobody looks for what is next."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter")
            first = reading(app).group.id
            for _ in range(EACH):
                assert reading(app).group.id == first
                await press(pilot, "x")
            assert reading(app).group.id != first
            await press(pilot, "r")

    run(test)
    after = states(home)
    assert sorted(after.values()) == ["pending"] * (GROUPS * EACH - EACH - 1) + ["rejected"] * EACH + ["released"]
    assert {one for one, state in after.items() if state == "rejected"} == {f"w-2-{n}" for n in range(EACH)}


def test_a_group_is_decided_at_once_after_a_look_at_what_differs(home: Path) -> None:
    """Before many are signed their number, what differs and what is left out are shown; Esc signs nothing."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter", "X")
            shown = screen_text(app)
            assert f"Reject {EACH} held writes of acme" in shown
            assert "signed by reviewer" in shown
            assert "What differs in them" in shown
            assert f"{EACH} × wording.held: it tells agents" in shown
            await press(pilot, "escape")
            assert not app.runs
            await press(pilot, "X", *"never asked for".replace(" ", "_").split("_")[0], "enter")
            assert "reject: 4 done" in screen_text(app)
            await press(pilot, "l")
            assert screen_text(app).count("rejected") == EACH

    run(test)
    assert sorted(states(home).values()).count("rejected") == EACH


def test_a_rejection_is_taken_back_and_a_release_is_not(home: Path) -> None:
    """u undoes what was rejected last, once; of a release there is nothing to take back."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter", "x", "x", "r", "u")
            assert "taken back: 1 of 1 wait again" in screen_text(app)
            assert "it was taken back: it waits again" in screen_text(app)
            await press(pilot, "u", "u")
            assert "nothing was rejected here that could be taken back" in screen_text(app)

    run(test)
    assert sorted(states(home).values()).count("rejected") == 0
    assert sorted(states(home).values()).count("released") == 1


def test_what_was_taken_back_can_be_decided_again(home: Path) -> None:
    """The write stands by the reopening then: a decision bound to how it stood before would be stale."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter", "X", "enter", "u", "escape")
            assert f"{GROUPS} groups" in screen_text(app)
            await press(pilot, "home", "enter", "X", "enter")
            assert "reject: 4 done" in screen_text(app)

    run(test)


def test_notes_claims_and_assignments(home: Path) -> None:
    """What reviewers tell each other is signed like a decision, and stands beside the write."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter", "c")
            assert "claimed by reviewer" in screen_text(app)
            await press(pilot, "n", *"ask_ana".replace("_", "x"), "enter")
            assert "note: askxana" in screen_text(app)
            await press(pilot, "a", *"bo", "enter")
            assert "assigned to bo" in screen_text(app)
            await press(pilot, "c")
            assert "claimed by" not in reading(app).paper.rows[3].text
            await press(pilot, "n", "enter")
            assert "notes.empty" in screen_text(app)

    run(test)


def test_a_filter_narrows_and_says_what_is_wrong_with_it(home: Path) -> None:
    """A typo in a field, or in a value, says so; the dialog stays open until the filter can be read."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "slash", *"tenent", "colon", *"acme", "enter")
            assert "did you mean tenant?" in screen_text(app)
            await press(pilot, "escape", "slash", *"tenant", "colon", *"acmee", "enter")
            assert "no held write has the tenant acmee; did you mean acme?" in screen_text(app)
            await press(pilot, "s", *"odd", "enter")
            assert "saved: /@odd" in screen_text(app)
            await press(pilot, "slash", "ctrl+u", "enter")
            assert f"{GROUPS} groups" in screen_text(app)
            await press(pilot, "slash", "ctrl+u", *"@odd", "enter")
            assert app.wanted.tenant == "acmee"
            await press(pilot, "question_mark")
            assert "@odd  tenant:acmee" in screen_text(app)

    run(test)


def test_all_that_is_known_of_one_is_a_key_away(home: Path) -> None:
    """Source, lineage and scores stand above the content while one looks."""

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            await press(pilot, "enter", "enter")
            assert "not tainted" in screen_text(app)
            assert "digest" in screen_text(app)
            await press(pilot, "enter")
            assert "digest" not in screen_text(app)

    run(test)


def test_the_page_of_documentation_shows_the_screens_as_they_are(home: Path) -> None:
    """docs/review.md shows what one sees: its screens are compared with the real ones."""
    page = Path(__file__).parents[2] / "docs" / "review.md"
    blocks = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    groups, group = (block for block in blocks if "wording.held" in block)

    async def test() -> None:
        async with reviewing(home) as (app, pilot):
            assert agrees(groups, screen_text(app)), screen_text(app)
            await press(pilot, "enter")
            assert agrees(group, screen_text(app)), screen_text(app)

    run(test)
