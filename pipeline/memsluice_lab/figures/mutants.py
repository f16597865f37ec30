"""How many small faults in gate, stages and recall the tests notice."""

import tempfile
from collections import Counter
from pathlib import Path

from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.mutation import record, run
from memsluice_lab.mutation.operators import Mutant

DEPENDS = (
    "pipeline/memsluice/gate",
    "pipeline/memsluice/stages",
    "pipeline/memsluice/recall",
    "memsluice_lab.mutation.trial",
    "memsluice_lab.mutation.recorder",
    "tests/embedded_runtime",
    "tests/gate",
    "tests/golden",
    "tests/model",
    "tests/recall",
    "tests/seed002",
    "tests/stages",
)
"""What is mutated, what plants and tries, and the tests that are there for it; others notice little."""
ROOT = Path(__file__).resolve().parents[3]
COUNT = 300
SIDE_BY_SIDE = 2


def mutation_score(setting: Setting) -> Measured:
    """Record which test executes which line, plant each mutant of the sample in a copy, and run the tests of its line.

    A mutant that no test executes counts as unnoticed; one by which a test does not end, as noticed.
    """
    with tempfile.TemporaryDirectory(prefix="memsluice-mutants-") as folder:
        copies = [record.copy_of(ROOT, Path(folder).resolve() / str(number)) for number in range(SIDE_BY_SIDE)]
        setting.say("all tests that need no stack, with a record of the lines that each executes")
        recorded = record.record(copies)
        product = copies[0] / record.PRODUCT
        there = run.candidates(product)
        some = run.sample(product, there, COUNT, run.SEED)
        results = run.run(copies, recorded, some, setting.say)
        lived = [one for one in results if not one.killed]
        notes = tuple(_note(product, one) for one in lived)
    of = Counter(one.planted.part for one in results)
    killed = Counter(one.planted.part for one in results if one.killed)
    outcomes = Counter(one.outcome for one in results)
    rows = [(f"{part}: noticed", f"{killed[part]} of {of[part]}") for part in sorted(of)]
    rows += [
        ("mutants there are", f"{len(there):,}"),
        ("tried, seed", f"{len(results)}, {run.SEED}"),
        ("noticed by a test that failed", f"{outcomes['killed']}"),
        ("noticed by a test that did not end", f"{outcomes['timeout']}"),
        ("unnoticed, though tests execute the line", f"{outcomes['survived'] + outcomes['passed']}"),
        ("unnoticed, since no test without the stack executes the line", f"{outcomes['untested']}"),
        ("tests recorded; left out, since they fail with nothing planted", f"{_counted(recorded)}"),
    ]
    return Measured(sum(one.killed for one in results) / len(results), tuple(rows), notes)


def _counted(recorded: record.Record) -> str:
    return f"{len(recorded.took):,}; {len(recorded.failed)}"


def _note(product: Path, one: run.Result) -> str:
    mutant: Mutant = one.planted.mutant
    change = run.difference(product, one.planted)
    return f"`{one.planted.path}:{mutant.line}` {one.outcome}, {mutant.operator}: `{change}`"
