"""Runs commands side by side, the real stack's tests in three parts, and ends with one closing line.

    python scripts/run_tests.py [--without-stack]

What the first part says is shown at once, what the others say once the first is through, each under its name. The
exit code is 0 where every part ended with 0 and every part of tests ran one. Before the closing line stands how long
each part took: the longest is what to shorten.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TOP = Path(__file__).resolve().parent.parent
CLOSING = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s")
"""The line that pytest ends with, which the counts are taken from."""
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|xfailed|xpassed|error)s?\b")


@dataclass(frozen=True)
class Part:
    """A command that is run beside the others. ``tests`` says that it is pytest."""

    name: str
    command: Sequence[str]
    tests: bool = True


WORKERS = ("tests/devstack", "tests/kafka_runtime")
"""Folders whose tests kill and pause workers, and wait most of the time: a third of what the stack takes."""
FAULTS_AND_PAGES = ("tests/chaos", "tests/docs", "tests/laundering")
"""Another third."""
LEISURE = ("nice", "-n", "19")
"""Before what nobody waits for: what is told to real servers and workers is timed, and goes first."""
FIRST = tuple(
    sorted(f"tests/{one.name}" for one in (TOP / "tests").iterdir() if one.is_dir() and "a" <= one.name < "f")
)
"""Half of what needs no stack, by how long it takes."""
ALONE = (*LEISURE, ".venv/bin/pytest", "-m", "not stack")
STACK = (
    Part("tests of the real stack, its workers", ["scripts/test-stack", "workers", *WORKERS]),
    Part("tests of the real stack, faults and pages", ["scripts/test-stack", "chaos", *FAULTS_AND_PAGES]),
    Part(
        "tests of the real stack, the others",
        ["scripts/test-stack", "others", *(f"--ignore={one}" for one in (*WORKERS, *FAULTS_AND_PAGES))],
    ),
)
PARTS = (
    Part("style and types", [*LEISURE, "make", "lint"], tests=False),
    Part("tests without the stack, folders a to e", [*ALONE, "-o", "cache_dir=.pytest_cache/first", *FIRST]),
    Part(
        "tests without the stack, the others",
        [*ALONE, "-o", "cache_dir=.pytest_cache/rest", *(f"--ignore={one}" for one in FIRST)],
    ),
    *STACK,
)


def closing(counts: Counter[str], seconds: float) -> str:
    """Return pytest's closing line of all parts."""
    order = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
    told = [f"{counts[kind]} {kind}{'s' * (kind == 'error' and counts[kind] > 1)}" for kind in order if counts[kind]]
    return f"{', '.join(told) or 'no tests ran'} in {seconds:.2f}s"


def counted(output: str) -> Counter[str]:
    """Return how many tests passed, failed and so on; empty where pytest came to no end."""
    ends = [found[1] for line in output.splitlines() if (found := CLOSING.match(line))]
    return Counter({kind: int(count) for count, kind in COUNTED.findall(ends[-1])}) if ends else Counter()


def verdict(part: Part, code: int, counts: Counter[str]) -> str:
    """Say what is wrong with a part, beyond the tests that failed; empty if nothing is."""
    if part.tests and not counts["passed"] + counts["failed"]:
        return f"{part.name}: no test ran (exit code {code})"
    if code and not counts["failed"] + counts["error"]:
        return f"{part.name}: ended with exit code {code}"
    return ""


def run(parts: Sequence[Part], folder: Path, shown: IO[str] = sys.stdout) -> int:
    """Run all parts side by side, show what each says, and return the exit code of the whole."""
    started = time.monotonic()
    files = [folder / f"{number}.txt" for number, _ in enumerate(parts)]
    running = []
    for part, file in zip(parts, files, strict=True):
        with file.open("wb") as output:
            running.append(
                subprocess.Popen(part.command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            )
    total: Counter[str] = Counter()
    wrong: list[str] = []
    waiting = list(zip(parts, files, running, strict=True))
    took: dict[int, float] = {}

    def look() -> None:
        for number, process in enumerate(running):
            if number not in took and process.poll() is not None:
                took[number] = time.monotonic() - started

    try:
        while waiting:
            part, file, process = waiting[0]
            print(f"\n== {part.name}", file=shown, flush=True)
            code = _follow(process, file, shown, look)
            waiting.pop(0)
            counts = counted(file.read_text(errors="replace")) if part.tests else Counter()
            total += counts
            if said := verdict(part, code, counts):
                wrong.append(said)
    finally:  # stopped from outside: what was not shown yet may say why it took so long
        for part, file, process in waiting:
            process.terminate()
            print(f"\n== {part.name}, stopped\n{file.read_text(errors='replace')[-4000:]}", file=shown, flush=True)
    print(file=shown)  # a part that died ended no line
    for number, seconds in took.items():
        print(f"{seconds:6.0f} s  {parts[number].name}", file=shown)
    for line in wrong:
        print(f"!! {line}", file=shown)
    total["error"] += len(wrong)
    print(closing(total, time.monotonic() - started), file=shown, flush=True)
    return 1 if wrong or total["failed"] or total["error"] else 0


def _follow(process: "subprocess.Popen[bytes]", file: Path, shown: IO[str], look: Callable[[], None]) -> int:
    """Show what a process writes to its file, while it writes, and look at the others; return its exit code."""
    with file.open(errors="replace") as output:
        while True:
            ended = process.poll()
            look()
            shown.write(output.read())
            shown.flush()
            if ended is not None:
                return ended
            time.sleep(0.2)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a timeout from outside ends the parts as well
    with tempfile.TemporaryDirectory() as scratch:
        chosen = [part for part in PARTS if part not in STACK or "--without-stack" not in sys.argv]
        sys.exit(run(chosen, Path(scratch)))
