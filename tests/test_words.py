"""Every reason that the gate can give has words: whoever reads a verdict at night gets a sentence, not a code."""

import ast
import re
from pathlib import Path

from memsluice import gate
from memsluice.errors import InputError
from memsluice.gate.reasons import WORDS, words

MODULES = sorted(
    path for path in Path(gate.__file__).parent.rglob("*.py") if path.parent.name != "policy" and path.stem != "shipped"
)
"""``policy`` and ``shipped`` find nothing: their dotted words are fields of a file, and a file."""
FIELDS = {"memsad.reference_size", "detect.signals"}
CODE = re.compile(r"[a-z]+\.[a-z0-9_]+")
ACCEPTING = {
    "review.appealed", "replay.decided", "replay.dry_run", "dismissal.noted", "sessions.returned", "detect.scored",
}  # fmt: skip
"""Findings that tell what was done and are no reason; the screens have sentences of their own for them."""


def codes_of(module: Path) -> set[str]:
    """Return the codes in a module: texts ``<module of the gate>.<what>``, and whatever a finding is made with."""
    names, tree = {path.stem for path in MODULES}, ast.parse(module.read_text(encoding="utf-8"))
    made = {text for call in ast.walk(tree) if _makes_a_finding(call) for text in _texts(call.args[0])}
    return {text for text in _texts(tree) if text.split(".")[0] in names and text not in FIELDS} | made


def _makes_a_finding(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"


def _texts(tree: ast.AST) -> set[str]:
    constants = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {text for text in constants if CODE.fullmatch(text)}


def whats_of(module: Path) -> set[str]:
    """Return the codes of a module that puts them together: ``_refused("what", …)`` and ``_done("what", …)``."""
    return {
        f"{module.stem}.{node.args[0].value}"
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("_refused", "_done")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_every_code_of_the_gate_has_words() -> None:
    """The codes are read from the gate's own source: a rule that is added brings its words along."""
    found = set().union(*(codes_of(module) | whats_of(module) for module in MODULES))
    assert {"rates.exceeded", "review.decided", "activation.approvals", "memsad.above_threshold"} <= found
    assert found - ACCEPTING - WORDS.keys() == set()


def test_words_are_of_codes_that_there_are() -> None:
    """A code that was renamed leaves no words behind."""
    found = set().union(*(codes_of(module) | whats_of(module) for module in MODULES))
    said = {code for code in WORDS if "." in code}
    assert said - found == set()


def test_why_a_sender_was_not_established_has_words() -> None:
    """``authenticity.<problem>`` is read as the problem, of which every one has words."""
    for problem in InputError.__subclasses__():
        assert words(f"authenticity.{problem.code}") == WORDS[problem.code]
