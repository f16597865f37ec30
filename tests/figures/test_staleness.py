"""When a figure counts as stale: its digest follows the code, data and libraries that it reaches, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from memsluice.errors import ConfigError
from memsluice_lab.figures import FIGURES, Figure
from memsluice_lab.figures.dependencies import DECLARED, Tree, here
from memsluice_lab.figures.measurements import Measurement, Record, looked_up, with_

FIGURE = Figure("speed", "speed:speed", ">=", 1, "x", "How fast it is.")
FILES = {
    "pipeline/memsluice/__init__.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from memsluice.client import Writer\n"
    ),
    "pipeline/memsluice/client.py": "class Writer: pass\n",
    "pipeline/memsluice/started.py": "import memsluice.deep\n",
    "pipeline/memsluice/deep.py": 'VALUE = 1\nDEEP = Field(default=3, description="the depth")\n',
    "pipeline/memsluice/apart.py": "VALUE = 1\n",
    "pipeline/memsluice/gate/__init__.py": '"""The gate."""\n',
    "pipeline/memsluice/gate/decide.py": '"""Decides."""\ndef decide(a):\n    # why\n    return a + 1\n',
    "pipeline/memsluice/gate/policies/default.yaml": "limit: 3\n",
    "pipeline/memsluice_lab/__init__.py": "",
    "pipeline/memsluice_lab/figures/__init__.py": "from memsluice_lab.figures.registry import get\n",
    "pipeline/memsluice_lab/figures/registry/__init__.py": "from memsluice_lab.figures.registry.goals import GOAL\n",
    "pipeline/memsluice_lab/figures/registry/goals.py": "GOAL = 1\n",
    "pipeline/memsluice_lab/figures/speed.py": (
        'from memsluice_lab.figures.registry.goals import GOAL\nCOMMAND = ["-m", "memsluice.started"]\n'
        "def speed(setting):\n    from memsluice.gate.decide import decide\n    return decide(1)\n"
    ),
    "uv.lock": """
[[package]]
name = "memsluice"
version = "0.1.0"
dependencies = [{ name = "numpy" }]
[package.optional-dependencies]
local-model = [{ name = "torch" }]
[package.dev-dependencies]
dev = [{ name = "ruff" }]
[[package]]
name = "numpy"
version = "2.2.0"
[[package]]
name = "torch"
version = "2.13.0"
[[package]]
name = "ruff"
version = "0.9.0"
""",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A checkout with one figure and the code that it measures."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def changed(top: Path, name: str, old: str, new: str) -> bool:
    """Replace something in a file; whether the figure's digest is another then."""
    before, path = Tree(top).digest(FIGURE), top / name
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new) if old else text + new)
    return Tree(top).digest(FIGURE) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pipeline/memsluice_lab/figures/speed.py", "decide(1)", "decide(2)"),
        ("pipeline/memsluice/gate/decide.py", "a + 1", "a + 2"),
        ("pipeline/memsluice/gate/__init__.py", "", "LOADED = True\n"),
        ("pipeline/memsluice/gate/policies/default.yaml", "3", "4"),
        ("pipeline/memsluice/started.py", "", "VALUE = 1\n"),
        ("pipeline/memsluice/deep.py", "1", "2"),
        ("pipeline/memsluice/deep.py", "default=3", "default=4"),
        ("uv.lock", "2.2.0", "2.2.1"),
        ("uv.lock", "2.13.0", "2.14.0"),
    ],
)
def test_what_a_figure_reaches_makes_it_stale(top: Path, name: str, old: str, new: str) -> None:
    """Its own code, what that imports (also late), the packages around, data, what it starts, and libraries count."""
    assert changed(top, name, old, new)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pipeline/memsluice/gate/decide.py", "# why", "# because"),
        ("pipeline/memsluice/gate/decide.py", "Decides.", "Decides one event."),
        ("pipeline/memsluice/gate/decide.py", "a + 1", "(a\n            + 1)"),
        ("pipeline/memsluice/gate/policies/default.yaml", "", "# a comment\n"),
        ("pipeline/memsluice/deep.py", "the depth", "how deep"),
        ("pipeline/memsluice/apart.py", "1", "2"),
        ("pipeline/memsluice/client.py", "pass", "x = 1"),
        ("pipeline/memsluice_lab/figures/registry/__init__.py", "", "VALUE = 1\n"),
        ("pipeline/memsluice_lab/figures/registry/goals.py", "1", "2"),
        ("pipeline/memsluice/gate/README.md", "", "Read this.\n"),
        ("uv.lock", "0.9.0", "0.9.1"),
    ],
)
def test_what_changes_nothing_does_not(top: Path, name: str, old: str, new: str) -> None:
    """Comments, docstrings, fields' descriptions, layout, goals, code that is not reached and tools leave a measurement
    as good as it was."""
    assert not changed(top, name, old, new)


def test_a_compiled_cache_is_no_data(top: Path) -> None:
    """What an interpreter or a compiler leaves in ``__pycache__`` differs from machine to machine, and says nothing."""
    before = Tree(top).digest(FIGURE)
    cache = top / "pipeline/memsluice/gate/__pycache__/decide.nbi"
    cache.parent.mkdir()
    cache.write_bytes(b"compiled")
    assert Tree(top).digest(FIGURE) == before


def test_a_name_that_is_imported_when_asked_for_is_followed(top: Path) -> None:
    """``from memsluice import Writer`` reaches the module behind the name, which the package imports late."""
    speed = "pipeline/memsluice_lab/figures/speed.py"
    assert changed(top, speed, "COMMAND", "from memsluice import Writer\nCOMMAND")
    assert changed(top, "pipeline/memsluice/client.py", "pass", "x = 1")


def test_a_figure_may_say_what_it_needs(top: Path) -> None:
    """Declared modules and paths count, and then no string is taken for a program's name."""
    speed = "pipeline/memsluice_lab/figures/speed.py"
    assert changed(top, speed, "COMMAND", f'{DECLARED} = ("memsluice.apart", "uv.lock")\nCOMMAND')
    assert changed(top, "pipeline/memsluice/apart.py", "1", "2")
    assert changed(top, "uv.lock", "0.9.0", "0.9.1")
    assert not changed(top, "pipeline/memsluice/started.py", "", "VALUE = 1\n")


def test_outside_a_checkout_nothing_is_guessed(tmp_path: Path) -> None:
    """Where there is no lock file, or no such module, the digest is refused instead of being that of nothing."""
    with pytest.raises(ConfigError, match="no checkout"):
        Tree(tmp_path).digest(FIGURE)
    (tmp_path / "uv.lock").write_text("package = []\n")
    with pytest.raises(ConfigError, match="does not exist"):
        Tree(tmp_path).digest(FIGURE)


def test_the_registered_figures_reach_what_they_measure() -> None:
    """Decisions rest on the gate and its policy; a stack's figures on the workers, the runtime and the topics too."""
    reached = {
        name: {str(path.relative_to(here().top)) for path in here().files(FIGURES[name])}
        for name in ("decision_us", "ingest_ratio", "encoder_ratio")
    }
    package = "pipeline/memsluice"
    core = {f"{package}/gate/decide.py", f"{package}/gate/policies/default.yaml"}
    assert core <= reached["decision_us"]
    assert core | {f"{package}/cli/work.py", f"{package}/runtimes/kafka/runner.py"} <= reached["ingest_ratio"]
    assert "topics/memory.events.v1.yaml" in reached["ingest_ratio"]
    assert "pipeline/memsluice_lab/figures/plain.py" in reached["ingest_ratio"]
    assert not any(name.startswith(f"{package}/gate/") for name in reached["encoder_ratio"])
    every = set().union(*reached.values())
    assert not [name for name in every if "figures/registry/" in name or name.endswith("figures/page.py")]


def test_a_measurement_of_other_code_or_of_unknown_code_is_stale(tmp_path: Path) -> None:
    """Current is only what carries today's digest; no history is asked for that, so a rebase changes nothing."""
    digest = here().digest(FIGURES["decision_us"])
    kept = [
        Measurement("decision_us", "AMX", 250.0, digest=digest, date="2026-11-22", commit="abc"),
        Measurement("decision_us", "AVX2", 400.0, digest="0" * 16, date="2026-11-21", commit="abc"),
        Measurement("ingest_ratio", "AVX2", 1.53),
    ]
    record = looked_up(Record(measurements=tuple(kept)), tmp_path, here())
    assert [one.stale for one in record.measurements] == [False, True, True]
    assert "decision_us" not in record.stale()
    assert "decision_us" in record.stale("AVX2")
    assert {"ingest_ratio", "kill9_lost"} <= set(record.stale())
    assert "stale_figures" not in record.stale()


def test_each_class_of_machine_keeps_its_own_measurement() -> None:
    """A measurement replaces the one of its own class; what was measured on another kind of processor stays."""
    old = Record(measurements=(Measurement("speed", "AMX", 4.0), Measurement("speed", "AVX2", 1.5)))
    new = with_(old, [replace(old.measurements[0], value=5.0)])
    assert [(one.machine_class, one.value) for one in new.of("speed")] == [("AMX", 5.0), ("AVX2", 1.5)]
