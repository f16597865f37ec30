"""The operators' views of the quarantine go by the verdict that holds an entry now, and say when it has lapsed."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.held.desk import BAD, Office
from tests.held.test_replay import look_again, loosen, states
from tests.held.test_unread import NEAR, asked
from tests.provenance.shop import Shop
from tests.stages import holding
from typer.testing import CliRunner, Result

from memsluice.cli.entries.trace import app as trace_app
from memsluice.clock import wall_ms
from memsluice.operations.held import desk as desks
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.held.replay import HeldRun, replay
from memsluice.operations.runs import begin
from memsluice.topics.names import PARTITIONS

SMALL = "name: small\ncontent_bytes_max: 20\n"
TEXT = "The boiler is serviced every October by Ada."
LAPSED_MS = 31 * 86_400_000
"""A day more than what is held can be decided."""
CLOCKS = (
    "memsluice.cli.held.desk",
    "memsluice.cli.held.asking",
    "memsluice.cli.held.quarantine",
    "memsluice.cli.entries.trace",
)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A home whose policy refuses whatever is longer than a few words."""
    made = Office(tmp_path / "home")
    loosen(made, SMALL)
    return made


def trace(office: Office, event_id: str) -> Result:
    """Run ``memsluice trace`` on a home."""
    return CliRunner().invoke(trace_app, [event_id, "--home", str(office.home.path)], env={"COLUMNS": "160"})


def held_by_a_replay(office: Office) -> str:
    """Have a write refused for its length, then held for what it says."""
    event_id = office.write(BAD)
    loosen(office, holding.text())
    told = office.run("replay", "--refused", "--yes").stdout
    assert f"{event_id}  acme  reject limits.content_bytes → quarantine wording.held" in told
    return event_id


def a_month_later(patch: pytest.MonkeyPatch) -> None:
    """Move this machine's clock, for the commands that look."""
    later_ms = wall_ms() + LAPSED_MS
    for module in CLOCKS:
        patch.setattr(f"{module}.wall_ms", lambda: later_ms)


def test_list_and_its_filter_go_by_what_holds_it_now(office: Office) -> None:
    """Who asks for the reason of the first refusal does not get it; who asks for the one that holds it does."""
    event_id = held_by_a_replay(office)
    (entry,) = json.loads(office.run("list", "--json").stdout)["entries"]
    assert (entry["event_id"], entry["reasons"]) == (event_id, ["wording.held"])
    assert "\n  wording.held" in office.run("list").stdout
    assert "limits.content_bytes" not in office.run("list").stdout
    for reason in ("wording", "wording.held"):
        assert json.loads(office.run("list", "--reason", reason, "--json").stdout)["found"] == 1
    assert json.loads(office.run("list", "--reason", "limits", "--json").stdout)["found"] == 0


def test_stats_and_the_old_verdict_go_by_what_holds_it_now(office: Office) -> None:
    """The count of reasons, and what a second replay compares with; dry runs change neither."""
    event_id = held_by_a_replay(office)
    assert json.loads(office.run("stats", "--json").stdout)["reasons"] == {"wording.held": 1}
    for _ in range(2):
        told = office.run("replay", "--dry-run").stdout
        assert f"{event_id}  acme  quarantine wording.held → quarantine wording.held" in told
    done = office.run("replay", "--dry-run", "--json", "--reason", "wording")
    (line,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (line["old"]["decision"], line["old"]["reasons"]) == ("quarantine", ["wording.held"])
    assert line["old"]["policy"].startswith(line["new"]["policy"].partition("@")[0])


def test_show_and_trace_name_both_reasons_and_which_was_first(office: Office) -> None:
    """What holds it stands first; what refused it at first is said as that."""
    event_id = held_by_a_replay(office)
    shown = office.run("show", event_id).stdout
    rows = {line.split("  ")[0]: line for line in shown.splitlines()}
    assert "wording.held" in rows["held for"]
    assert "limits.content_bytes" in rows["first refused for"]
    rows = {line.split("  ")[0]: line for line in trace(office, event_id).stdout.splitlines()}
    assert "wording.held" in rows["because"]
    assert "limits.content_bytes" in rows["at first"]


def test_what_a_moved_calibration_leaves_held_keeps_its_reason(tmp_path: Path) -> None:
    """A replay that says only that the calibration moved takes no entry out of the list of what its rule holds."""
    shop = Shop(tmp_path / "home")
    loosen(shop, NEAR)
    asked(shop, BAD)
    shop.write(BAD, event_id="bad")
    asked(shop, "When does the swimming pool open on Sundays?")
    assert "replay.recalibrated" in shop.run("replay", "--yes").stdout
    (entry,) = json.loads(shop.run("list", "--reason", "memsad", "--json").stdout)["entries"]
    assert entry["reasons"]
    assert all(code.startswith("memsad.") for code in entry["reasons"])


def test_a_lapsed_refused_write_is_said_to_have_lapsed_everywhere(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither view calls it refused for good or kept for a replay, and both name the same day."""
    event_id = office.write(TEXT)
    a_month_later(monkeypatch)
    assert states(office) == {event_id: "lapsed"}
    shown, traced = office.run("show", event_id).stdout, trace(office, event_id).stdout
    said = next(line for line in shown.splitlines() if line.startswith("state"))
    words = said[said.index("lapsed on ") : said.index("; no replay lets it in")]
    assert f"{words}; no replay lets it in" in traced
    for told in (shown, traced):
        assert "refused for good" not in told
        assert "for a replay under a later policy" not in told


@pytest.mark.parametrize(("order", "state"), [("reject", "rejected"), ("release", "released")])
def test_a_clock_that_is_ahead_keeps_nobody_from_deciding(
    office: Office, monkeypatch: pytest.MonkeyPatch, order: str, state: str
) -> None:
    """The gate goes by the broker's clock and its own row: who decides is told of the lapse, is asked, and is obeyed
    where the gate still knows the entry."""
    loosen(office, holding.text())
    event_id = office.write(BAD)
    a_month_later(monkeypatch)
    said = "by this machine's clock it lapsed on "
    asked = office.run(order, event_id, input="n\n").stdout
    assert asked.index(said) < asked.index(f"Sign this {order}?")
    assert "published to" not in asked
    done = office.run(order, event_id, "--yes")
    assert (done.exit_code, said in done.stdout) == (0, True)
    assert states(office) == {event_id: state}


@pytest.mark.parametrize("dry", [False, True])
def test_a_resumed_run_counts_what_it_moved_out_of_its_own_filter(office: Office, dry: bool) -> None:
    """Killed after two of at most three, which wait for another reason now: it signs one more command, and not three.
    A run of another name counts none of them."""
    ids = [office.write(f"{BAD} {number}") for number in range(5)]
    loosen(office, holding.text())
    run = HeldRun("r1", wall_ms(), dry, 3, HeldFilter(reason="limits"), refused=True)
    begin(office.home.path / "replays", run, wall_ms())
    with ExitStack() as closing:
        desk = desks.embedded(office.home, closing)
        first = look_again(office, desk, run)
        next(iter(replay(desk, run, first, rate=1e6, batch=2, wait_s=5, partitions=PARTITIONS)))
    told = office.run("replay", "--yes", "--resume", "r1").stdout
    assert "1 of 1 replayed" in told
    assert f"{ids[2]}  acme" in told
    assert sorted(states(office).values()) == (["refused"] * 5 if dry else ["pending"] * 3 + ["refused"] * 2)
    left = office.run("replay", "--refused", "--reason", "limits", "--dry-run").stdout
    assert f"{5 if dry else 2} of {5 if dry else 2} replayed" in left


def test_stats_say_whose_the_refused_writes_are(office: Office) -> None:
    """Refused writes are counted beside the held ones, by tenant, reason, channel and age, and never among them."""
    office.write(TEXT)
    office.write(TEXT, tenant="globex", source="agent")
    loosen(office, holding.text())
    office.write(BAD)
    counted = json.loads(office.run("stats", "--json").stdout)
    assert (counted["tenants"], counted["reasons"]) == ({"acme": 1}, {"wording.held": 1})
    refused = counted["refused"]
    assert (refused["tenants"], refused["reasons"]) == ({"acme": 1, "globex": 1}, {"limits.content_bytes": 2})
    assert refused["sources"] == {"user": 1, "agent": 1}
    assert refused["oldest_ms"] < counted["oldest_ms"]
    told = office.run("stats").stdout
    rows = [line.split() for line in told.splitlines()]
    for row in (
        ["state", "2", "refused"],
        ["tenant", "1", "acme"],
        ["refused", "tenant", "1", "globex"],
        ["refused", "reason", "2", "limits.content_bytes"],
        ["refused", "channel", "1", "agent"],
    ):
        assert row in rows
    assert "refused oldest" in told
    assert "3 of 3 held and refused writes" in told
    assert "1 of 3 held and refused writes" in office.run("list").stdout


def test_a_dry_run_says_that_each_entry_was_judged_by_itself(office: Office) -> None:
    """Only where that can make a difference: in a dry run, of more than one entry."""
    said = "each entry was judged by itself: the real run uses up daily rates and shares of the quarantine"
    office.write(TEXT)
    assert said not in office.run("replay", "--refused", "--dry-run").stdout
    office.write(TEXT)
    assert said in office.run("replay", "--refused", "--dry-run").stdout
    assert said not in office.run("replay", "--refused", "--yes").stdout
