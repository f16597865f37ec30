"""``memsluice certify``: the plans that certify a bound, as a table, as JSON, as a picture."""

import json
from pathlib import Path

from tests.command import run


def test_the_plan_of_a_k_and_an_n_is_the_smallest_pool() -> None:
    """k = n = 5 against two hostile strata at 5 % needs 51: the table says it with its bounds and its cost."""
    done = run("certify", "-k", "5", "-n", "5")
    assert done.code == 0, done.err
    (row,) = [line for line in done.out.splitlines() if line.split()[:3] == ["51", "5", "5"]]
    assert row.split() == ["51", "5", "5", "10", "25", "0.81", "%", "4.93", "%", "12.70", "%"]


def test_json_has_every_plan_and_bound() -> None:
    """A program reads the same numbers; the bound for the asked number of hostile strata is among them."""
    done = run("certify", "--hostile", "4", "--delta", "0.2", "-k", "3", "--json")
    plans = json.loads(done.out)
    assert plans
    assert all(plan["shown"] == 3 and plan["delta"]["4"] <= 0.2 for plan in plans)
    assert plans == sorted(plans, key=lambda plan: plan["strata_read"])


def test_any_number_of_runs_and_strata_that_is_named_is_looked_at() -> None:
    """An even n, and a k beyond those that are tried by themselves, have their plans like any other."""
    runs = json.loads(run("certify", "-n", "4", "-t", "1", "--json").out)
    assert runs
    assert {plan["runs"] for plan in runs} == {4}
    shown = json.loads(run("certify", "-k", "12", "-t", "1", "--delta", "0.2", "--json").out)
    assert shown
    assert {plan["shown"] for plan in shown} == {12}


def test_a_small_store_has_no_plan_that_it_cannot_fill() -> None:
    """Of 30 strata no pool of 51 comes: what is told can be had, and where nothing can it says of how many."""
    plans = json.loads(run("certify", "--available", "30", "--json").out)
    assert plans
    assert max(plan["pool"] for plan in plans) <= 30
    done = run("certify", "-k", "5", "-n", "5", "--available", "50")
    assert "No pool of up to 50 certifies that" in done.out
    assert "--available" in run("certify").out


def test_gate_and_vote_together() -> None:
    """One column more: what the page says of ten attempts and a miss rate of .02. One of the two alone is refused."""
    words = ("certify", "-k", "5", "-n", "5", "--attempts", "10", "--missed", "0.02")
    (row,) = [line for line in run(*words).out.splitlines() if line.split()[:3] == ["51", "5", "5"]]
    assert row.split()[-2:] == ["1.66", "%"]
    assert json.loads(run(*words, "--json").out)[0]["end_to_end"] == 0.016638
    assert run("certify", "--attempts", "10").code == 2
    assert run("certify", "--attempts", "10", "--missed", "nan").code == 2


def test_no_number_is_no_bound() -> None:
    """Nothing compares with nan: it is refused, and not told as a bound that no pool certifies."""
    done = run("certify", "--delta", "nan")
    assert done.code == 2
    assert "--delta" in done.err


def test_what_no_pool_certifies_is_said() -> None:
    """No plan is no empty table: the command says what to allow more of."""
    done = run("certify", "-k", "10", "-n", "1", "--delta", "0.01")
    assert done.code == 0
    assert "No pool of up to 100 certifies that" in done.out


def test_the_picture_is_written_once(tmp_path: Path) -> None:
    """A chart of the bound over the pool; a file that is there already is not overwritten."""
    place = tmp_path / "bound.svg"
    assert run("certify", "--svg", str(place)).code == 0
    drawn = place.read_text()
    assert drawn.startswith("<svg")
    assert "n = 15" in drawn
    again = run("certify", "--svg", str(place))
    assert again.code == 1
    assert place.read_text() == drawn
