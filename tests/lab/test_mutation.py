"""The mutants of the figure ``mutation_score``: what is planted, what is not, and how the sample is drawn."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from memsluice_lab.mutation.operators import compiles, mutants
from memsluice_lab.mutation.record import PRODUCT, Record
from memsluice_lab.mutation.run import Planted, Selection, candidates, sample

ROOT = Path(__file__).resolve().parents[2]


def changed(source: str) -> set[str]:
    """Return what becomes of a source, all mutants of it."""
    return {mutant.apply(source.encode()).decode() for mutant in mutants(source.encode())}


@pytest.mark.parametrize(
    ("source", "mutant"),
    [
        ("if a and not b and c: f()", "if ((a) and (c)): f()"),
        ("if a and b: f()", "if ((a) or (b)): f()"),
        ("if a: f()", "if False: f()"),
        ("x = a > b", "x = a >= b"),
        ("x = [a, *b][:8]", "x = [a, *b][:9]"),
        ("x = LIMIT = 300", "x = LIMIT = 600"),
        ("x = futures[-1]", "x = futures[(1)]"),
        ("f(a)\nb = 1", "pass\nb = 1"),
        ("def f():\n    return a", "def f():\n    return None"),
        ("for a in b: f(a)", "for a in (): f(a)"),
        ("def f():\n    é = 'ß' in b", "def f():\n    é = 'ß' not in b"),
        ("try: f()\nexcept E: g()", "try: f()\nexcept (): g()"),
    ],
)
def test_the_faults_that_went_unnoticed_once_are_among_the_mutants(source: str, mutant: str) -> None:
    """A clause left out, a condition that never holds, a neighbouring comparison, an order or an index by one."""
    assert mutant in changed(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Says 1 < 2."""',
        "x: Literal[1]",
        "__slots__ = ('a', 'b')",
        "_LOG.warning('seen', count=a + 1)",
        "assert a > 1",
        "@dataclass(frozen=True, slots=True)\nclass A: pass",
        "if TYPE_CHECKING:\n    x = 1",
        "def f(a: 'int' = b) -> 'str': ...",
        "import a",
    ],
)
def test_what_cannot_matter_is_not_planted(source: str) -> None:
    """Nobody is asked to write a test for a docstring, an annotation, a log entry or the room of a record."""
    assert changed(source) == set()


def test_every_mutant_is_one_edit_of_a_program() -> None:
    """Each differs from the source, no two are alike, nearly all compile, and none moves a line above its own."""
    source = (ROOT / PRODUCT / "gate" / "decide.py").read_bytes()
    some = mutants(source)
    made = [mutant.apply(source) for mutant in some]
    assert len(set(made)) == len(made)
    assert source not in made
    assert sum(map(compiles, made)) >= 0.99 * len(made)
    lines = source.splitlines()
    for mutant, text in zip(some, made, strict=True):
        before = mutant.lines[0] - 1
        assert text.splitlines()[:before] == lines[:before]
        assert mutant.lines[0] <= mutant.line <= max(mutant.lines[1], ast.parse(source).body[-1].end_lineno or 0)


def test_the_sample_is_the_same_every_time_and_in_proportion() -> None:
    """One seed, one tree, one sample; each part has its share to the nearest mutant."""
    product = ROOT / PRODUCT
    there = candidates(product, "stages") + candidates(product, "gate/commands") + candidates(product, "recall")
    some = sample(product, there, 60, seed=1)
    assert some == sample(product, there, 60, seed=1)
    assert some != sample(product, there, 60, seed=2)
    assert len(set(some)) == len(some) == 60
    of, drawn = (Counter(one.part for one in those) for those in (there, some))
    for part, number in of.items():
        assert abs(drawn[part] - 60 * number / len(there)) < 1


def test_a_mutant_is_tried_by_the_tests_that_execute_its_statement(tmp_path: Path) -> None:
    """Inside a function by its lines, fastest first; at import by those that name what it defines, near ones first."""
    source = "LIMIT = 8\n\n\ndef f(a):\n    return (\n        a > LIMIT\n    )\n\n\ndef g(a):\n    return a\n"
    product = tmp_path / "pipeline" / "memsluice"
    product.mkdir(parents=True)
    (product / "one.py").write_text(source, encoding="utf-8")
    (tmp_path / "near.py").write_text("from memsluice.one import LIMIT", encoding="utf-8")
    lines = {"one.py": {5: frozenset({"t::slow", "t::fast"}), 6: frozenset({"t::slow", "t::fast"}),
                        11: frozenset({"t::g"})}}  # fmt: skip
    took = {"t::slow": 2.0, "t::fast": 0.1, "t::g": 0.5, "near.py::a": 1.0, "near.py::broken": 0.0}
    selection = Selection(Record(lines, took, ("near.py::broken",), ()), product)
    by = {(one.line, one.text): selection.of(Planted("one.py", one)) for one in mutants(source.encode())}
    assert by[6, ">="] == ["t::fast", "t::slow"]
    assert by[1, "9"] == ["near.py::a", "t::fast", "t::slow"]
    assert by[11, "return None"] == ["t::g"]
