"""What is published: the product with its data, no laboratory, and dependencies for those who asked for them."""

import subprocess
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

import memsluice
from memsluice.cli import main
from memsluice.extras import PACKAGES
from memsluice_lab.figures.installing import STEP_S_MAX, modules, opening, packages, run

HEAVY = {
    "aiokafka", "cramjam", "faiss-cpu", "faust-streaming", "numba", "numpy", "pillow", "psutil", "rich", "river",
    "rocksdict", "sentence-transformers", "structlog", "torch", "typer", "weaviate-client",
}  # fmt: skip
BEYOND = {"stack": "devstack"}
"""Commands that `operator` alone does not load, and the extra that each asks for."""
PARTS = {name: part for name, part in main.PARTS.items() if name not in BEYOND}
TOP = Path(__file__).resolve().parents[2]
DATA = (
    "py.typed",
    "encoder/model/head.npz",
    "gate/policies/default.yaml",
    "gate/policies/published-rolling.yaml",
    "gate/detectors/memsad/probes.npy",
    "gate/detectors/wording/model/classifier.npz",
    *(f"_data/topics/{path.name}" for path in (TOP / "topics").iterdir()),
    *(f"_data/schemas/{path.name}" for path in (TOP / "schemas").iterdir()),
)

BY_FILES = """
import json, os, sys
from pathlib import Path
from memsluice import Connection, MemoryWriter, WriterOptions
home = Path(sys.argv[1])
settings = Connection.load(home).confluent("producer")
MemoryWriter(settings, next((home / "credentials").iterdir()), WriterOptions(check_seconds=None))
print(json.dumps(sorted(sys.modules)), flush=True)
os._exit(0)
"""


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return message_from_string(archive.read("memsluice-0.1.0.dist-info/METADATA").decode())


def test_the_wheel_has_every_module_and_all_data(built: tuple[Path, Path]) -> None:
    """Whatever lies in the checkout's package is installed, with schemas, policy, model, pages and licence."""
    names = set(zipfile.ZipFile(built[1]).namelist())
    folder = TOP / "pipeline" / "memsluice"
    ours = {f"memsluice/{path.relative_to(folder)}" for path in folder.rglob("*.py")}
    pages = {f"memsluice/{path.relative_to(folder)}" for kind in ("templates", "static") for path in
             (folder / "console" / kind).iterdir()}  # fmt: skip
    assert ours <= names
    assert len(pages) > 20
    assert pages <= names
    assert {f"memsluice/{name}" for name in DATA} <= names
    assert "memsluice-0.1.0.dist-info/licenses/LICENSE" in names


def test_the_wheel_is_the_product_alone(built: tuple[Path, Path]) -> None:
    """No demo, no experiment and no attack tooling reaches a platform; nor do tests or the repository's tools."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(built[1]).namelist()}
    assert tops == {"memsluice", "memsluice-0.1.0.dist-info"}


def test_the_sdist_builds_the_wheel_and_is_the_product_alone(built: tuple[Path, Path]) -> None:
    """The wheel above was built from it; it has the licence, and no laboratory either."""
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "topics/access.yaml"} <= names
    assert not [name for name in names if name.startswith(("tests", "scripts", "pipeline/memsluice_lab"))]


def test_the_metadata_name_extras_command_and_licence(built: tuple[Path, Path]) -> None:
    """What an index shows, and what `pip install 'memsluice[…]'` understands."""
    metadata = _metadata(built[1])
    assert set(metadata.get_all("Provides-Extra", [])) == {*PACKAGES, "all"}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    with zipfile.ZipFile(built[1]) as archive:
        points = archive.read("memsluice-0.1.0.dist-info/entry_points.txt").decode().split()
    assert points == ["[console_scripts]", "memsluice", "=", "memsluice.cli:run"]


def test_what_everybody_installs_is_not_pinned(built: tuple[Path, Path]) -> None:
    """The base and `recall` live beside an agent platform's libraries: a pin there is a conflict there."""
    required = _metadata(built[1]).get_all("Requires-Dist", [])
    shared = [line for line in required if "extra ==" not in line or "extra == 'recall'" in line]
    assert len(shared) >= 10
    assert not [line for line in shared if "==" in line.split(";")[0]]


def test_the_base_is_light(base: Path) -> None:
    """Whoever only publishes gets no model runtime, stream processor, vector index or terminal library."""
    installed = {one["name"] for one in packages(base)}
    assert not installed & HEAVY
    assert len(installed) <= 20


def test_opening_a_writer_loads_nothing_that_it_does_not_use(base: Path, tmp_path: Path) -> None:
    """No gate, no store, no command line, no CloudEvents reader or OpenTelemetry; YAML for the registry alone."""
    loaded = modules(base, tmp_path / "home")
    tops = {name.split(".")[0] for name in loaded}
    assert {"memsluice", "confluent_kafka", "pydantic"} <= tops
    assert not tops & {"cloudevents", "opentelemetry", "structlog", "dateutil"}
    parts = {name.split(".")[1] for name in loaded if name.startswith("memsluice.")}
    assert not parts & {"gate", "telemetry", "stages", "stores", "recall", "runtimes", "operations", "cli", "devstack"}


def test_a_connection_and_a_credential_s_file_are_read_without_yaml(base: Path, tmp_path: Path) -> None:
    """A process that is given both, as on a platform's machines, reads JSON alone and no registry."""
    modules(base, tmp_path)  # makes the home
    assert "yaml" not in {name.split(".")[0] for name in opening(base, BY_FILES, tmp_path)}


def test_a_star_import_works_from_the_base_alone(base: Path) -> None:
    """``from memsluice import *`` asks for no extra."""
    code = "from memsluice import *; print(MemoryWriter.__name__, 'Recaller' in globals())"
    assert run(base, "-I", "-c", code).split() == ["MemoryWriter", "False"]


def test_the_sdk_works_from_the_base_alone(base: Path) -> None:
    """Every exported name but those of reading can be imported without any extra."""
    names = sorted(memsluice.__all__)
    code = f"import memsluice\nfor name in {names}: print(getattr(memsluice, name).__name__)"
    assert run(base, "-I", "-c", code).split() == names


def _fails(*command: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=STEP_S_MAX, cwd="/")
    assert done.returncode == 1
    return done


@pytest.mark.parametrize(
    ("code", "what", "extra"),
    [
        ("from memsluice import Recaller", "`Recaller`", "recall"),
        ("import memsluice.stores.weaviate.store", "The Weaviate store", "recall"),
        ("import memsluice.stores.faiss.store", "The embedded store", "embedded"),
        ("import memsluice.runtimes.kafka.worker", "The Kafka runtime", "gate"),
    ],
)
def test_a_missing_extra_is_named(base: Path, code: str, what: str, extra: str) -> None:
    """The last line of the error says which part needs which extra, and the command that installs it."""
    last = _fails(base, "-I", "-c", code).stderr.strip().splitlines()[-1]
    assert last.startswith(f"memsluice.errors.MissingExtra: {what} needs the extra `{extra}` (")
    assert last.endswith(f"pip install 'memsluice[{extra}]'")


def test_the_command_without_its_extra_says_so(base: Path) -> None:
    """One line on standard error, exit code 1, no traceback, whatever was asked."""
    for words in ([], ["--help"], ["trace", "e-1"]):
        done = _fails(base.parent / "memsluice", *words)
        assert done.stdout == ""
        assert done.stderr.splitlines() == [
            "error: The command line `memsluice` needs the extra `operator` (typer is not installed): "
            "pip install 'memsluice[operator]'"
        ]


@pytest.mark.parametrize(("words", "extra"), [*BEYOND.items(), ("work seal --home {home}", "gate")])
def test_a_command_names_the_extra_that_it_needs_beyond(operator: Path, tmp_path: Path, words: str, extra: str) -> None:
    """With `operator` alone the command line runs; a command that needs more says what, in one line."""
    done = _fails(operator.parent / "memsluice", *words.format(home=tmp_path).split())
    assert f"pip install 'memsluice[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_line_runs_with_its_extra(operator: Path, tmp_path: Path) -> None:
    """`operator` is enough for keys, and for every other command to be loaded."""
    memsluice_command = operator.parent / "memsluice"
    shown = run(memsluice_command, "--help")
    assert all(part in shown for part in PARTS)
    code = f"import importlib\nfor name, _ in {[*PARTS.values()]}: importlib.import_module(name)"
    run(operator, "-I", "-c", code)
    run(memsluice_command, "keys", "init", "--home", tmp_path / "home")
    assert (tmp_path / "home" / "keyring.json").exists()
