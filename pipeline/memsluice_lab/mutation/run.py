"""A sample of all mutants, each tried by the tests that execute its line."""

import contextlib
import difflib
import json
import os
import queue
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from memsluice_lab.mutation.operators import Mutant, compiles, mutants
from memsluice_lab.mutation.record import PACKAGES, PRODUCT, Record, environment
from memsluice_lab.mutation.trial import FAILED, PASSED, TIMEOUT

SEED = 17
SELECTED_S_MAX = 15.0
"""A mutant is tried by the fastest of its tests, up to so many seconds of them as they are."""
FIRST_FILES = 4
"""So many files of tests are tried first: most mutants die there, without importing all the others."""
START_S = 60.0
SLOWER = 6.0
"""A trial may take START_S, for imports and compiling, and so many times what its tests took as they are."""
PASS_S_MAX = 120.0


@dataclass(frozen=True, slots=True)
class Planted:
    """A mutant of a file, named from the product's folder."""

    path: str
    mutant: Mutant

    @property
    def part(self) -> str:
        """The package, or the folder below ``gate``, that it stands in."""
        parts = Path(self.path).parts
        return "/".join(parts[:2]) if parts[0] == "gate" and len(parts) > 2 else parts[0]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant: ``outcome`` is killed, timeout, survived or untested; ``by`` the test that failed."""

    planted: Planted
    outcome: str
    by: str
    took_s: float

    @property
    def killed(self) -> bool:
        """Whether somebody would have noticed."""
        return self.outcome in ("killed", TIMEOUT)


def candidates(product: Path, under: str = "") -> list[Planted]:
    """Return every mutant of the packages, in the order of their files."""
    found = []
    for package in PACKAGES:
        for path in sorted((product / package).rglob("*.py")):
            name = path.relative_to(product).as_posix()
            if name.startswith(under):
                found += [Planted(name, mutant) for mutant in mutants(path.read_bytes())]
    return found


def sample(product: Path, some: Sequence[Planted], count: int, seed: int) -> list[Planted]:
    """Return so many, spread over the parts in proportion to how many each has; always the same for one tree."""
    parts: dict[str, list[Planted]] = defaultdict(list)
    for one in some:
        parts[one.part].append(one)
    shares = {part: count * len(those) / len(some) for part, those in parts.items()}
    sizes = {part: int(share) for part, share in shares.items()}
    for part in sorted(shares, key=lambda part: (sizes[part] - shares[part], part))[: count - sum(sizes.values())]:
        sizes[part] += 1
    chosen = []
    for part in sorted(parts):
        shuffled = random.Random(f"{seed} {part}").sample(parts[part], len(parts[part]))  # noqa: S311
        valid = (one for one in shuffled if compiles(one.mutant.apply((product / one.path).read_bytes())))
        chosen += [one for one, _ in zip(valid, range(sizes[part]), strict=False)]
    return chosen


class Selection:
    """Which tests a mutant is tried by."""

    def __init__(self, record: Record, product: Path) -> None:
        self._record = record
        self._words: dict[str, set[str]] = defaultdict(set)
        self._importers: dict[str, set[str]] = defaultdict(set)
        self._said: dict[str, set[str]] = {}
        for name in {test.partition("::")[0] for test in record.took}:
            source = product.parents[1] / name
            self._said[name] = set(re.findall(r"\w+", source.read_text(encoding="utf-8") if source.exists() else ""))
        for path, lines in record.lines.items():
            text = (product / path).read_text(encoding="utf-8").splitlines()
            for line, tests in lines.items():
                words = set(re.findall(r"\w+", text[line - 1]))
                for word in words:
                    self._words[word].update(tests)
                    if "import" in words:
                        self._importers[word].add(path)

    def of(self, planted: Planted) -> list[str]:
        """Return the tests that execute its statement: first those of a file that names what it defines, then those of
        one that names its module, the fastest first.

        A statement that runs at import, once in a process (behind a cache, say), or compiled, is not seen to run by
        test. There they are those that execute a line which names what it defines or the function around it, and those
        of a file that names that or the module; where there are none, those that execute anything of its file, or of
        one that imports it.
        """
        lines, mutant = self._record.lines.get(planted.path, {}), planted.mutant
        numbers = range(mutant.lines[0], mutant.lines[1] + 1)
        found = set().union(*(lines.get(line, frozenset()) for line in numbers))
        for name in mutant.names:
            found |= self._words.get(name, set())
        if not found and (mutant.names or any(line in lines for line in numbers)):
            found = self._around(planted.path)
        near = self._near(planted)
        if mutant.names:
            found |= {test for test in self._record.took if test.partition("::")[0] in near} - set(self._record.failed)
        naming = {name for name in near if self._said[name] & set(mutant.names)}

        def far(test: str) -> tuple[bool, bool, float, str]:
            file = test.partition("::")[0]
            return file not in naming, file not in near, self._record.took[test], test

        fastest = sorted(found, key=far)
        spent = accumulate(self._record.took[test] for test in fastest)
        return [test for test, total in zip(fastest, spent, strict=True) if total <= SELECTED_S_MAX]

    def _near(self, planted: Planted) -> set[str]:
        """Return the files of tests that name a mutant's module, or what it defines."""
        wanted = {Path(planted.path).stem, *planted.mutant.names}
        return {name for name, said in self._said.items() if said & wanted}

    def _around(self, path: str) -> set[str]:
        own = set().union(*self._record.lines.get(path, {}).values())
        importers = self._importers[Path(path).stem] - {path}
        return own or set().union(*(tests for name in importers for tests in self._record.lines[name].values()))

    def waves(self, planted: Planted) -> Iterator[list[str]]:
        """Yield the tests of a few files first, then those of the others; the tests of a file together."""
        tests, near = self.of(planted), self._near(planted)
        files: dict[str, list[str]] = defaultdict(list)
        for test in tests:
            files[test.partition("::")[0]].append(test)
        cost = {name: sum(self._record.took[test] for test in some) for name, some in files.items()}
        costly = {name for name in files if cost[name] > SELECTED_S_MAX / 3}
        ranked = sorted(files, key=lambda name: (name not in near, name in costly, -len(files[name]), name))
        for part in (ranked[:FIRST_FILES], ranked[FIRST_FILES:]):
            if part:
                yield [test for name in part for test in files[name]]

    def limit_s(self, tests: Iterable[str]) -> float:
        """Return how long these tests may take."""
        return START_S + SLOWER * sum(self._record.took[test] for test in tests)


class _Trials:
    """A process that runs tests in one copy of the checkout."""

    def __init__(self, copy: Path, modules: Sequence[str]) -> None:
        self.copy = copy
        self._stamp = time.time_ns()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "memsluice_lab.mutation.trial"],
            cwd=copy, env=environment(copy), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._say(list(modules))

    def __call__(self, tests: list[str], limit_s: float) -> dict[str, Any]:
        """Run tests, and return what came of it."""
        self._say({"tests": tests, "limit_s": limit_s})
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    @contextlib.contextmanager
    def planted(self, one: Planted) -> Iterator[None]:
        """Have a mutant in the copy for a while."""
        path = self.copy / PRODUCT / one.path
        source, at_ns = path.read_bytes(), path.stat().st_mtime_ns
        cached = {made: made.read_bytes() for made in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?")}
        self._stamp += 2 * 10**9  # cached code is told by the time and the size of its source, and a size may stay
        path.write_bytes(one.mutant.apply(source))
        os.utime(path, ns=(self._stamp, self._stamp))
        try:
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(at_ns, at_ns))
            for made, code in cached.items():
                made.write_bytes(code)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _say(self, what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()


def run(copies: Sequence[Path], record: Record, some: Sequence[Planted], say: Callable[[str], None]) -> list[Result]:
    """Try each mutant, one in each copy at a time; the results are in the order of the mutants.

    At the end every test that noticed one runs once more with nothing planted: what fails then proves nothing.
    """
    selection = Selection(record, copies[0] / PRODUCT)
    waiting: queue.SimpleQueue[tuple[int, Planted]] = queue.SimpleQueue()
    for item in enumerate(some):
        waiting.put(item)
    results: dict[int, Result] = {}

    def work(trials: _Trials) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                at, one = waiting.get_nowait()
                results[at] = _tried(trials, selection, one)
                counts = Counter(result.outcome for result in results.values())
                say(f"{len(results)} of {len(some)} mutants: {dict(counts)}")

    workers = [_Trials(copy, record.modules) for copy in copies]
    threads = [threading.Thread(target=work, args=(trials,), daemon=True) for trials in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flawed = _flawed(workers[0], {result.by for result in results.values() if result.by})
    for trials in workers:
        trials.close()
    ordered = [results[at] for at in range(len(some))]
    return [Result(one.planted, PASSED, "", one.took_s) if one.by in flawed else one for one in ordered]


def _tried(trials: _Trials, selection: Selection, one: Planted) -> Result:
    took_s, tests = 0.0, 0
    with trials.planted(one):
        for wave in selection.waves(one):
            tests += len(wave)
            for patience in (1, 3):  # a busy machine, too, makes tests slow: what does not end then, does not end
                answer = trials(wave, patience * selection.limit_s(wave))
                took_s += answer["took_s"]
                if answer["outcome"] != TIMEOUT:
                    break
            if answer["outcome"] != PASSED:
                outcome = "killed" if answer["outcome"] == FAILED else TIMEOUT
                return Result(one, outcome, answer["by"], took_s)
    return Result(one, "survived" if tests else "untested", "", took_s)


def _flawed(trials: _Trials, tests: set[str]) -> set[str]:
    """Return which of the tests fail with nothing planted."""
    found: set[str] = set()
    while tests - found:
        answer = trials(sorted(tests - found), 60 * PASS_S_MAX)
        if answer["outcome"] == PASSED or not answer["by"]:
            break
        found.add(answer["by"])
    return found


def difference(product: Path, one: Planted) -> str:
    """Return the lines that a mutant changes, before and after."""
    source = (product / one.path).read_bytes()
    before, after = source.decode().splitlines(), one.mutant.apply(source).decode().splitlines()
    changed = [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:1] in "+-"][2:]
    return " ".join(f"{line[0]} {line[1:].strip()}" for line in changed)
