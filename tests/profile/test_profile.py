"""The profile: what is read from the kernel and the sampler, how it is summed, what is drawn, and what is refused."""

import mmap
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from memsluice.errors import ConfigError, StackError
from memsluice_lab.profile import attaching, report, stacks
from memsluice_lab.profile.__main__ import main
from memsluice_lab.profile.attaching import PROGRAM, Profiler
from memsluice_lab.profile.bursts import PROCESSES, Costs, Profile, Sampled, Traffic, costs_of
from memsluice_lab.profile.flame import svg
from memsluice_lab.profile.processes import (
    IDLE,
    TICKS,
    Memory,
    Reading,
    ThreadTime,
    cpu_s,
    idle_s,
    memory,
    reading,
    spent,
    threads_of,
)
from memsluice_lab.profile.stacks import DECIDE, PRODUCTS, REST, SIGNING, WAKING, Stack, layer_of, parse, weighed

TOP = Path(__file__).resolve().parents[2]
STAT = "7 ({}) S 1 7 7 0 -1 4194304 100 0 0 0 {} {} 5 5 20 0 3 0 1 2 3"
LINEAR = "Kernel.linear.<locals>.<lambda> (memsluice/encoder/kernels.py)"
OPERATOR = "OpOverloadPacket.__call__ (torch/_ops.py)"
SELECT = "EpollSelector.select (selectors.py)"
LOOP = ("run_worker (memsluice/runtimes/kafka/worker.py)", "BaseEventLoop._run_once (asyncio/base_events.py)")


def _proc(folder: Path, pid: int, threads: dict[int, tuple[str, int, int]]) -> None:
    for number, (name, user, system) in threads.items():
        task = folder / str(pid) / "task" / str(number)
        task.mkdir(parents=True, exist_ok=True)
        (task / "stat").write_text(STAT.format(name, user, system))


def test_processor_time_is_user_and_system_whatever_the_process_is_called() -> None:
    """A name with brackets and blanks moves no field; time of children that it waited for is not its own."""
    assert cpu_s(STAT.format("a) S (b", 30, 12)) == 42 / TICKS
    assert 0 < cpu_s(Path("/proc/self/stat").read_text()) <= sum(os.times()[:2]) + 2 / TICKS


def test_idle_time_is_that_of_the_cores_which_may_be_used() -> None:
    """Other cores, and the line of all of them, count for nothing; waiting for a disk is idle."""
    text = (
        "cpu  9 9 9 900 90 0 0 0\ncpu0 1 1 1 100 10 0 0 0\ncpu1 1 1 1 200 20 0 0 0\ncpu10 1 1 1 400 40 0 0 0\nintr 5\n"
    )
    assert idle_s(text, {0, 10}) == pytest.approx((110 + 440) / TICKS)


def test_threads_are_told_apart_and_new_ones_begin_at_nothing(tmp_path: Path) -> None:
    """What a thread spent is a difference; one that was born meanwhile has spent all it has, one that ended is gone."""
    _proc(tmp_path, 7, {7: ("python", 100, 0), 8: ("rdk:main", 50, 0)})
    before = threads_of(7, tmp_path)
    (tmp_path / "7/task/8/stat").unlink()
    _proc(tmp_path, 7, {7: ("python", 150, 10), 9: ("rdk:bg", 3, 4)})
    used = spent(before, threads_of(7, tmp_path))
    assert {number: (one.name, round(one.cpu_s * TICKS)) for number, one in used.items()} == {
        7: ("python", 60),
        9: ("rdk:bg", 7),
    }


def test_a_process_that_has_ended_is_named() -> None:
    """A server that was started anew meanwhile would pass for one that used nothing."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(StackError, match=f"land .process {ended.pid}. has ended"):
        reading({"seal": os.getpid(), "land": ended.pid})


def test_mapped_files_are_resident_and_not_anonymous(tmp_path: Path) -> None:
    """Weights that are mapped from their file lie in memory once, however many processes read them."""
    file = tmp_path / "weights"
    file.write_bytes(bytes(64 << 20))
    before = memory(os.getpid())
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sum(mapped[::4096])
        after = memory(os.getpid())
    assert after.resident - before.resident > 48
    assert after.anonymous - before.anonymous < 16


def test_costs_are_counted_to_the_end_and_cores_to_the_last_landing() -> None:
    """Before the burst nothing counts; what is committed behind the last landing does, as cost and not as load."""
    cores = len(os.sched_getaffinity(0))
    readings = [
        Reading(at, dict.fromkeys(PROCESSES, used) | {IDLE: idle * cores})
        for at, used, idle in ((0, 0.0, 0.0), (1_000, 0.25, 0.5), (3_000, 0.5, 1.0), (5_000, 0.75, 3.0))
    ]
    found = costs_of(readings, 1_200, [1_500, 2_900], writes=3, own_s=0.1, traffic={}, occupied={})
    assert (found.landed, found.seconds) == (2, 1.7)
    assert found.cpu_ms == dict.fromkeys(PROCESSES, 250.0) | {"producer": 50.0}
    assert found.busy == pytest.approx(0.25 * len(PROCESSES) / (2 * cores))
    assert found.idle == pytest.approx(0.25)


def test_samples_share_what_the_kernel_says_of_their_thread() -> None:
    """A thread that was seen often and had no core weighs little; waiting takes nothing from work beside it."""
    told = (
        f"thread (8): stage-seal-0;f (a.py);{LINEAR} 3\nthread (8): stage-seal-0;f (a.py);g (a b.py) 1\n"
        f"thread (9): MainThread;{SELECT} 500\nthread (9): MainThread;h (c.py) 2\nthread (5): wait_1;{SELECT} 7\n"
    )
    times = {8: 4.0, 9: 1.0, 5: 0.5, 6: 0.25, 4: 0.0}
    found = weighed(parse(told), {number: ThreadTime(f"rdk:{number}", cpu) for number, cpu in times.items()})
    assert found == {
        ("f (a.py)", LINEAR): 3.0,
        ("f (a.py)", "g (a b.py)"): 1.0,
        ("h (c.py)",): 1.0,
        (SELECT,): 0.5,
        ("native thread rdk:6",): 0.25,
    }
    assert stacks.scaled(found, 11.5)["h (c.py)",] == pytest.approx(2.0)


def test_a_thread_that_was_seen_outside_of_all_functions_costs_what_it_costs() -> None:
    """A thread that lives for a moment is often caught before its first function, or behind its last."""
    (stack,) = parse("thread (0x1F): Thread-15 (_run) 3\n")
    assert (stack.thread, stack.samples) == (31, 3)
    assert weighed([stack], {31: ThreadTime("python", 1.5)}) == {(stacks.BEGINNING,): 1.5}
    assert stacks.layer_of(stack.frames) == stacks.REST


def test_a_thread_that_ended_weighs_as_the_others() -> None:
    """Its samples are not lost, though the kernel says nothing of it any more; all of them is a mistake."""
    found = weighed([Stack(8, ("a",), 4), Stack(3, ("b",), 2)], {8: ThreadTime("python", 1.0)})
    assert found == {("a",): 1.0, ("b",): 0.5}
    with pytest.raises(StackError, match="none of the 1 sampled threads"):
        weighed([Stack(8, ("a",), 4)], {9: ThreadTime("python", 1.0)})


def test_functions_have_their_own_and_the_whole_and_recursion_counts_once() -> None:
    """The sum of what functions cost by themselves is what there was."""
    found = stacks.by_function({("a", "b", "a"): 2.0, ("a", "b"): 1.0, ("c",): 4.0})
    assert [(one.name, one.own, one.whole) for one in found] == [("c", 4.0, 4.0), ("a", 2.0, 3.0), ("b", 1.0, 3.0)]


@pytest.mark.parametrize(
    ("frames", "layer"),
    [
        ((*LOOP, "MiniLM.read (memsluice/encoder/minilm.py)", LINEAR), PRODUCTS),
        (("MiniLM.read (memsluice/encoder/minilm.py)", LINEAR, OPERATOR), PRODUCTS),
        (("MiniLM.read (memsluice/encoder/minilm.py)", OPERATOR), stacks.ENCODER),
        (("MiniLM.read (memsluice/encoder/minilm.py)", "layer_norm (torch/nn/functional.py)"), stacks.ENCODER),
        (("decide (memsluice/gate/decide.py)", "to_json (memsluice/envelope/codec.py)"), SIGNING),
        (("decide (memsluice/gate/decide.py)", "norm (numpy/linalg/_linalg.py)"), DECIDE),
        (("decide (memsluice/gate/decide.py)", "row_key (memsluice/gate/state/rows.py)"), stacks.STATE),
        (("PartitionRows.get (memsluice/runtimes/kafka/state.py)",), stacks.STATE),
        (
            (*LOOP, "Fence.send (memsluice/runtimes/kafka/fence.py)", "send (aiokafka/producer/producer.py)"),
            stacks.KAFKA,
        ),
        ((*LOOP, "Fence.send (memsluice/runtimes/kafka/fence.py)", "call_at (asyncio/base_events.py)"), stacks.RUNTIME),
        (("process (memsluice/stages/land.py)", "_blocking (grpc/_channel.py)"), stacks.STORE),
        (("process (memsluice/stages/land.py)",), stacks.STAGES),
        (("native thread rocksdb:low",), stacks.STATE),
        ((*LOOP, "Handle._run (asyncio/events.py)"), REST),
        ((*LOOP, SELECT), WAKING),
        ((), REST),
    ],
)
def test_the_innermost_function_that_has_a_layer_decides(frames: tuple[str, ...], layer: str) -> None:
    """Signing within a decision is signing; what merely started the event loop claims nothing of it."""
    assert layer_of(frames) == layer
    assert not [
        one for one in re.findall(r"memsluice/[\w/]+\.py", " ".join(frames)) if not (TOP / "pipeline" / one).exists()
    ]


@pytest.mark.parametrize(
    "name",
    [
        "encoder",
        "envelope",
        "events",
        "keystore",
        "gate",
        "gate/state",
        "stores",
        "telemetry",
        "runtimes",
        "readers",
        "stages",
    ],
)
def test_the_rules_name_what_is_there(name: str) -> None:
    """A folder that is moved would silently become the rest."""
    assert (TOP / "pipeline/memsluice" / name).is_dir()
    assert layer_of((f"f (memsluice/{name}/any.py)",)) != REST


def test_the_linear_layers_are_applied_where_they_are_looked_for() -> None:
    """They are told from the encoder's other work by their place in its file."""
    written = (TOP / "pipeline/memsluice/encoder/kernels.py").read_text()
    for kernel in ("return lambda x: F.linear(x, weight, bias)", "return lambda x: apply(x, packed, bias,"):
        assert kernel in written


def test_a_flame_graph_is_one_file_whose_widths_are_the_costs() -> None:
    """Names are escaped, callers lie below, every frame says its cost, and nothing is fetched or run."""
    drawn = svg("seal & co", {("a", LINEAR): 3.0, ("a",): 1.0, ("b",): 4.0})
    boxes = {}
    for group in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}g"):  # noqa: S314 - our own
        title, box = group[0].text or "", group[1].attrib
        boxes[title] = (float(box["x"]), float(box["y"]), float(box["width"]))
    assert list(boxes) == [
        "all: 8.000 ms, 100.0%",
        "a: 4.000 ms, 50.0%",
        f"{LINEAR}: 3.000 ms, 37.5%",
        "b: 4.000 ms, 50.0%",
    ]
    (whole, caller, called, other) = boxes.values()
    assert (whole[2], caller[2], called[2], other[2]) == (1600, 800, 600, 800)
    assert whole[1] > caller[1] == other[1] > called[1]
    assert other[0] == 800
    assert not re.search(r"<script|href|url\(|@import", drawn)


def _profile() -> Profile:
    traffic, occupied = {"memory.events.v1": Traffic(3, 300, 4)}, {"seal": Memory(1_234.4, 567.8)}
    costs = Costs(3, 2, 4.0, dict.fromkeys(PROCESSES, 1.0), 0.75, 0.125, traffic, occupied)
    one = Sampled({("f (a.py)", LINEAR): 0.75, ("g|h (a.py)",): 0.25}, 40)
    return Profile(costs, 1.5, {"seal": one, "screen": one, "land": one})


def test_the_tables_say_what_was_measured() -> None:
    """Shares, rates and records are of the landed writes, and a name does not break its row."""
    text = "\n".join(grid.markdown() for grid in report.grids(_profile()))
    for line in (
        f"| screen | 1.00 | {1 / len(PROCESSES):.0%} |",
        "| landed a second | 0.5 in 4.0 s |",
        "| … by the rest of the machine | 12% |",
        "| seal | 1,234 | 568 |",
        "| memory.events.v1 | 1.50 | 100 | 150 | 2.00 |",
        f"| {PRODUCTS} | 0.75 | 0.75 | 0.75 | 2.25 |",
        "| `g¦h (a.py)` | 0.250 | 0.250 |",
    ):
        assert line in text
    assert report.grids(_profile(), shown=1)[-1].rows == ((f"`{LINEAR}`", "0.750", "0.750"),)


def test_a_section_of_the_page_is_replaced_and_nothing_else() -> None:
    """Before and after lie on one page, whose words are a person's; a page without the marks is refused."""
    page = (TOP / "docs/profile.md").read_text()
    once = report.with_section(page, "after", "new words")
    twice = report.with_section(once, "after", "newer words")
    begin, end = report.marks("after")
    assert "new words" in once.partition(begin)[2].partition(end)[0]
    assert "new words" not in twice
    assert once.partition(begin)[0] == page.partition(begin)[0]
    assert once.partition(end)[2] == page.partition(end)[2]
    with pytest.raises(ConfigError, match="profile before: begin"):
        report.with_section("# A page\n", "before", "words")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A folder that looks like the real records."""
    (tmp_path / "data").mkdir()
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/build_streams.py").write_text("raise SystemExit('nobody comes here')\n")
    return tmp_path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which alone programs are looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").symlink_to(Path(sys.executable).resolve())
    for limit in ("TRIED_S_MAX", "ATTACHED_S_MAX", "WRITTEN_S_MAX"):
        monkeypatch.setattr(attaching, limit, 600)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def _refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(one) for one in arguments]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_without_the_records_or_a_page_nothing_is_started(
    records: Path, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever forgot one hears it at once, not after minutes."""
    assert "--data FOLDER or MEMSLUICE_DATA" in _refused(capsys, "--data", "")
    assert "There is no data in" in _refused(capsys, "--data", programs)
    assert "there is no page" in _refused(capsys, "--data", records, "--page", records / "none.md")
    (records / "page.md").write_text("# A page\n")
    assert "once each" in _refused(capsys, "--data", records, "--page", records / "page.md")


def test_a_profiler_that_may_not_attach_is_refused_with_the_setting_that_forbids_it(
    records: Path, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody looks for it in the sampler's own words; where it is not installed, that is said."""
    out = ("--out", records / "out")
    assert f"{PROGRAM} is not installed: `make install` brings it" in _refused(capsys, "--data", records, *out)
    (programs / PROGRAM).write_text("#!/bin/sh\necho 'Error: Permission Denied' >&2\nexit 1\n")
    (programs / PROGRAM).chmod(0o755)
    said = _refused(capsys, "--data", records, *out)
    assert "may not attach to a process of this user (Error: Permission Denied). kernel.yama.ptrace_scope is" in said
    assert "SYS_PTRACE" in said
    assert not (records / "out").exists()


SAMPLER = """#!{python}
import os, pathlib, signal, sys, time
if sys.argv[1] == "dump":
    sys.exit(0)
output = pathlib.Path(sys.argv[-1])
output.with_suffix(".pid").write_text(str(os.getpid()))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
if {attaches}:
    print("Sampling process 100 times a second", flush=True)
if {stays}:
    signal.sigwait([signal.SIGINT])
    output.write_text("f (a.py) 1")
else:
    while {attaches} and not output.with_suffix(".end").exists():
        time.sleep(0.01)
    sys.exit("Error: no such process")
"""


def _sampling(programs: Path, folder: Path, *, attaches: bool, stays: bool) -> dict[str, Path]:
    text = SAMPLER.format(python=Path(sys.executable).resolve(), attaches=attaches, stays=stays)
    (programs / PROGRAM).write_text(text)
    (programs / PROGRAM).chmod(0o755)
    with Profiler.found(100).on({"seal": os.getpid()}, folder) as files:
        if not stays:
            (folder / "seal.end").touch()  # only now, or its end could come before anybody has seen that it attached
            pid = int((folder / "seal.pid").read_text())
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return files


def test_a_sampler_is_stopped_by_an_interrupt_and_leaves_its_stacks(programs: Path, tmp_path: Path) -> None:
    """It writes them when it is interrupted; those of an earlier run are not taken for them."""
    (tmp_path / "seal.folded").write_text("old")
    files = _sampling(programs, tmp_path, attaches=True, stays=True)
    assert files["seal"].read_text() == "f (a.py) 1"


@pytest.mark.parametrize(("attaches", "told"), [(True, "ended while it was measured"), (False, "did not attach")])
def test_a_sampler_that_ends_by_itself_spoils_the_measurement(
    programs: Path, tmp_path: Path, attaches: bool, told: str
) -> None:
    """Half of the stacks would pass for all of them."""
    with pytest.raises(StackError, match=f"(?s){told}.*no such process"):
        _sampling(programs, tmp_path, attaches=attaches, stays=False)
