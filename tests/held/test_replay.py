"""``memsluice quarantine replay`` on the embedded runtime: real stages, real log, real signatures."""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.held.desk import BAD, Office
from typer.testing import CliRunner

from memsluice.cli.entries.trace import app as trace
from memsluice.cli.top import app as top
from memsluice.clock import wall_ms
from memsluice.envelope.seals import open_
from memsluice.errors import BrokerUnavailable, ConfigError
from memsluice.events.models import Command
from memsluice.events.names import VERDICT
from memsluice.operations.held import desk as desks
from memsluice.operations.held import replay as replaying
from memsluice.operations.held.collect import look
from memsluice.operations.held.entries import CommandOutcome, HeldState
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.held.replay import HeldRun, WriteReplay, plan, replay
from memsluice.operations.runs import RESUMABLE_S, begin
from memsluice.topics.names import AUDIT, COMMANDS, PARTITIONS

LOOSE = "name: loose\ninstructions: {enabled: false}\nwording: {action: report}\n"


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A home whose log is empty."""
    return Office(tmp_path / "home")


def loosen(office: Office, text: str = LOOSE) -> None:
    """Put another policy in force."""
    office.home.policy_file.parent.mkdir(exist_ok=True)
    office.home.policy_file.write_text(text)


def states(office: Office) -> dict[str, str]:
    """Return what became of every held write."""
    found = json.loads(office.run("list", "--all", "--json").stdout)
    return {entry["event_id"]: entry["state"] for entry in found["entries"]}


def ordered(office: Office, run: HeldRun) -> list[tuple[str, str]]:
    """Return tenant and target of every decision that a run led to, in the order of the log."""
    found = []
    for record in office.records(AUDIT):
        verdict = open_(office.keys.keyring(), record.key.decode(), VERDICT, record.value)
        if verdict["action"] == "replay" and verdict["decision"] != "duplicate":
            found.append((verdict["tenant"], verdict["target"]))
    return found


def test_old_and_new_verdict_stand_beside_each_other(office: Office) -> None:
    """What the new policy lets in lands, the rest stays held, and each line has both verdicts."""
    ids = [office.write(BAD), office.write("A note.", principal="mallory")]
    loosen(office)
    done = office.run("replay", "--yes")
    assert done.exit_code == 0, done.output
    assert f"{ids[0]}  acme  quarantine wording.held → accept" in done.stdout
    assert f"{ids[1]}  acme  quarantine sessions.mismatch → quarantine replay.standing" in done.stdout
    assert "2 of 2 replayed: 1 accept, 1 quarantine; under loose@" in done.stdout
    assert states(office) == {ids[0]: "released", ids[1]: "pending"}
    assert "by replay" in office.run("show", ids[1]).stdout
    again = office.run("replay", "--yes", "--json")
    (row,) = [json.loads(line) for line in again.stdout.splitlines()]
    assert (row["event_id"], row["old"]["reasons"], row["new"]["outcome"]) == (ids[1], ["sessions.mismatch"], "held")


def test_trace_and_top_follow_a_replay(office: Office) -> None:
    """What was let in is where it landed, what is held again still waits, and a dry run moves nothing."""
    good, bad = office.write(BAD), office.write("A note.", principal="mallory")

    def told() -> tuple[list[str], int]:
        home = ["--home", str(office.home.path)]
        lives = [json.loads(CliRunner().invoke(trace, [one, "--json", *home]).stdout)["lives"] for one in (good, bad)]
        waits = json.loads(CliRunner().invoke(top, ["--json", *home]).stdout)["held"]
        return [life["now"] for (life,) in lives], waits

    loosen(office)
    before = told()
    office.run("replay", "--dry-run")
    assert told() == before == (["held", "held"], 2)
    office.run("replay", "--yes")
    assert told() == (["guidance", "held"], 1)


def test_a_dry_run_asks_nothing_and_changes_nothing(office: Office) -> None:
    """The gate itself says what it would decide; everything still waits."""
    event_id = office.write(BAD)
    loosen(office)
    done = office.run("replay", "--dry-run")
    assert "→ accept" in done.stdout
    assert states(office) == {event_id: "pending"}


def test_a_run_is_bounded_and_says_what_is_left(office: Office) -> None:
    """At most so many entries, the oldest first; a filter narrows as it does a list."""
    ids = [office.write(BAD) for _ in range(3)]
    loosen(office)
    done = office.run("replay", "--yes", "--max-messages", "2")
    assert "1 more are left for another run" in done.stdout
    assert states(office) == {ids[0]: "released", ids[1]: "released", ids[2]: "pending"}
    assert "0 held writes" in office.run("replay", "--yes", "--reason", "rates").stdout


def test_nothing_is_replayed_without_a_yes(office: Office) -> None:
    """No answer publishes nothing."""
    office.write(BAD)
    assert office.run("replay", input="\n").exit_code == 1
    assert office.records(COMMANDS) == []


def look_again(office: Office, desk: desks.HeldDesk, run: HeldRun) -> list:
    """Return what a run has still to do."""
    found = look(desk.held, desk.audit, office.keys.keyring(), run.wanted, partitions=PARTITIONS, now_ms=wall_ms(),
                 age_days=lambda tenant: 30)  # fmt: skip
    return plan(run, found).todo


class Killed(BaseException):
    """The simulated death of the process."""


@pytest.mark.parametrize("dry", [False, True])
def test_a_run_killed_anywhere_and_resumed_decides_each_entry_once(office: Office, dry: bool) -> None:
    """Killed ten times, between any two commands or before the answers are read: once each, in each tenant's order."""
    for number in range(40):
        office.write(f"{BAD} {number}", tenant=("acme", "globex")[number % 2])
    loosen(office, "name: same\n" if dry else LOOSE)
    chance = random.Random(7)
    run = HeldRun("r1", wall_ms(), dry, 1_000, HeldFilter())
    file = office.home.path / "replays" / "r1.json"
    file.parent.mkdir()
    run.save(file)
    kills = 0
    while True:
        with ExitStack() as closing:
            desk = desks.embedded(office.home, closing)
            resumed = HeldRun.load(file, wall_ms())
            todo = look_again(office, desk, resumed)
            if not todo:
                break
            if kills < 10:
                desk = dying(desk, chance.randrange(0, 4), before_answers=chance.random() < 0.5)
            try:
                for results in replay(desk, resumed, todo, rate=1e6, batch=3, wait_s=5, partitions=PARTITIONS):
                    assert not any(result.failed for result in results)
            except Killed:
                kills += 1
    assert kills == 10
    decided = ordered(office, run)
    assert sorted(target for _, target in decided) == sorted(f"w-{number}" for number in range(1, 41))
    for tenant in ("acme", "globex"):
        numbers = [int(target.removeprefix("w-")) for one, target in decided if one == tenant]
        assert numbers == sorted(numbers)


def dying(desk: desks.HeldDesk, after: int, *, before_answers: bool) -> desks.HeldDesk:
    """Return a desk whose process dies after some commands, or once some are published and decided."""
    left = [after]

    def publish(commands: list[Command]) -> list[str]:
        for number, command in enumerate(commands):
            if not before_answers and left[0] == number:
                raise Killed
            desk.publish([command])
        left[0] -= len(commands)
        return []

    def settle() -> None:
        desk.settle()
        if left[0] <= 0:
            raise Killed

    return replace(desk, publish=publish, settle=settle)


def test_the_same_commands_again_are_known_as_repetitions(office: Office) -> None:
    """Who publishes a whole run twice decides nothing twice, and is told so."""
    office.write(BAD)
    run = HeldRun("r1", wall_ms(), False, 10, HeldFilter())
    with ExitStack() as closing:
        desk = desks.embedded(office.home, closing)
        todo = look_again(office, desk, run)
        options = {"rate": 100, "batch": 5, "wait_s": 5, "partitions": PARTITIONS}
        (first,), (second,) = [next(iter(replay(desk, run, todo, **options))) for _ in range(2)]
    assert (first.ruled.outcome, first.repeated) == (CommandOutcome.HELD, False)
    assert (second.ruled, second.repeated, second.failed) == (None, True, False)


def test_a_run_stops_after_a_refusal_and_can_go_on(office: Office) -> None:
    """Somebody decided an entry in between: the run says so, ends with 2, and names how to go on."""
    ids = [office.write(BAD) for _ in range(3)]
    loosen(office)
    with ExitStack() as closing:
        desk = desks.embedded(office.home, closing)
        run = HeldRun("r1", wall_ms(), False, 10, HeldFilter())
        todo = look_again(office, desk, run)
        office.run("reject", ids[1], "--yes")
        results: list[WriteReplay] = []
        for batch in replay(desk, run, todo, rate=100, batch=1, wait_s=5, partitions=PARTITIONS):
            results += batch
            if any(result.failed for result in batch):
                break
    assert [result.failed for result in results] == [False, True]
    assert results[1].ruled.reasons == ("review.decided",)
    assert states(office)[ids[2]] == "pending"


def test_no_answer_in_time_is_an_error_of_its_own(office: Office) -> None:
    """Nobody works on the log: the run waits as long as it was told, stops, and ends with 3."""
    office.write(BAD)
    with ExitStack() as closing:
        desk = replace(desks.embedded(office.home, closing), settle=lambda: None)
        run = HeldRun("r1", wall_ms(), False, 10, HeldFilter())
        todo, slept = look_again(office, desk, run), []
        clock = iter(range(0, 1_000, 2))
        (result,) = next(
            replay(desk, run, todo, rate=100, batch=1, wait_s=5, partitions=PARTITIONS,
                   monotonic=lambda: float(next(clock)), sleep=slept.append)
        )  # fmt: skip
    assert (result.ruled, result.failed) == (None, True)
    assert slept


def test_the_rate_is_kept(office: Office) -> None:
    """Between two batches there is as much time as their size asks for."""
    for _ in range(6):
        office.write(BAD)
    with ExitStack() as closing:
        desk, slept = desks.embedded(office.home, closing), list[float]()
        run = HeldRun("r1", wall_ms(), True, 10, HeldFilter())
        todo = look_again(office, desk, run)
        sizes = [len(batch) for batch in replay(desk, run, todo, rate=2, batch=50, wait_s=5, partitions=PARTITIONS,
                                                monotonic=lambda: 0.0, sleep=slept.append)]  # fmt: skip
    assert (sizes, slept) == ([2, 2, 2], [1.0, 1.0, 1.0])


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokerUnavailable("no broker"), 1)])
def test_who_interrupts_a_run_reads_how_it_goes_on(
    office: Office, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    """The run's name was printed thousands of lines ago: Ctrl-C, or a broker that goes away, ends with the command."""
    office.write(BAD)

    def interrupted(*_: object, **__: object) -> Iterator[list[WriteReplay]]:
        raise error
        yield

    with monkeypatch.context() as patch:
        patch.setattr(replaying, "replay", interrupted)
        stopped = office.run("replay", "--yes")
    told = stopped.stdout.split("continue with: memsluice quarantine replay --resume ")
    assert (stopped.exit_code, len(told)) == (code, 2)
    assert "1 of 1 replayed" in office.run("replay", "--yes", "--resume", told[1].strip()).stdout


def test_a_resumed_run_is_what_it_was_begun_as(office: Office) -> None:
    """What it looks for, and whether it is dry, is in its file: --dry-run beside --resume is refused, not ignored."""
    held = office.write(BAD)
    begin(office.home.path / "replays", HeldRun("r1", wall_ms(), False, 10, HeldFilter()), wall_ms())
    loosen(office)
    for options, told in {
        ("--dry-run",): "--dry-run",
        ("--tenant", "acme", "--max-messages", "1"): "--tenant, --max-messages",
    }.items():
        refused = office.run("replay", "--yes", "--resume", "r1", *options)
        assert (refused.exit_code, f"leave out {told}," in str(refused.exception)) == (1, True)
    assert states(office) == {held: "pending"}
    assert "→ accept" in office.run("replay", "--yes", "--resume", "r1", "--rate", "9", "--batch", "9").stdout


def test_only_a_run_of_the_last_day_can_be_resumed(office: Office, tmp_path: Path) -> None:
    """What is no run, or one whose commands have expired, is refused with what to do."""
    office.write(BAD)
    assert "no run to resume" in str(office.run("replay", "--resume", "r9").exception)
    assert "letters and digits" in str(office.run("replay", "--resume", "../../x").exception)
    file = tmp_path / "r1.json"
    HeldRun(
        "r1",
        wall_ms() - RESUMABLE_S * 1_000,
        False,
        10,
        HeldFilter(tenant="acme", states=frozenset({HeldState.PENDING})),
    ).save(file)
    with pytest.raises(ConfigError, match="began more than a day ago"):
        HeldRun.load(file, wall_ms())
    assert HeldRun.load(file, 0).wanted == HeldFilter(tenant="acme")
