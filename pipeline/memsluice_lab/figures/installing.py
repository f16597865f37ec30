"""What the SDK costs whoever installs it: the wheel, built here, alone in an environment of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memsluice.deployment.paths import stack_file
from memsluice.errors import ConfigError
from memsluice_lab.figures.registry import Measured, Setting

DEPENDS = ("memsluice.client.writer", "memsluice.keystore.store", "pyproject.toml")
TOP = Path(__file__).resolve().parents[3]
"""The checkout: the wheel is built from it."""
STEP_S_MAX = 600
WITHIN = re.compile(r"PATH|HOME|(UV|PIP|SSL|XDG)_\w+|(HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)
"""Variables that these steps are given: how packages are reached; above all no PYTHONPATH and no VIRTUAL_ENV."""

ISSUE = """
import sys, time
from pathlib import Path
from memsluice.envelope.registry import Role
from memsluice.keystore.store import KeyStore, issue_credential
now_ms = int(time.time() * 1000)
print(issue_credential(KeyStore.init(Path(sys.argv[1]), now_ms), Role.PRODUCER, "agent", ["acme"], now_ms=now_ms)[1])
"""
OPEN = """
import os, sys
os.environ["MEMSLUICE_HOME"] = sys.argv[1]
before = set(sys.modules)
from memsluice import MemoryWriter, WriterOptions
MemoryWriter.open_local(tenant="acme", options=WriterOptions(check_seconds=None))
loaded = set(sys.modules) - before
import json
print(json.dumps(sorted(loaded)), flush=True)
os._exit(0)
"""
"""Opens a writer on the home of the environment, where no broker is, and leaves without waiting for one."""
CONNECTION = {
    "bootstrap": "127.0.0.1:9",
    "security_protocol": "SASL_PLAINTEXT",
    "users": {"producer": "unused"},
    "weaviate_http_port": 9,
    "weaviate_grpc_port": 9,
}
"""Of a home whose broker and store are not there."""
LIBRARIES = """
import sys
before = set(sys.modules)
import confluent_kafka, cryptography.hazmat.primitives.asymmetric.ed25519, pydantic
pydantic.create_model("Any", content=(str, ...))
print(len(set(sys.modules) - before))
"""


def uv() -> str:
    """Return the path of uv, which `make` installs. Raises ConfigError."""
    found = shutil.which("uv") or shutil.which("uv", path=TOP / ".uv" / "bin")
    if found is None:
        raise ConfigError("uv is neither on the PATH nor in .uv/bin; run: make .uv/bin/uv")
    return found


def clean() -> dict[str, str]:
    """Return the environment of a program that is to know nothing of the checkout's own."""
    return {name: value for name, value in os.environ.items() if WITHIN.fullmatch(name)}


def run(*command: str | Path) -> str:
    """Run a program away from the checkout and return what it printed. Raises ConfigError with the end of its error."""
    done = subprocess.run(
        [*map(str, command)], check=False, capture_output=True, text=True, timeout=STEP_S_MAX, env=clean(),
        stdin=subprocess.DEVNULL, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    if done.returncode != 0:
        raise ConfigError(f"{command[0]} {command[1]} failed: {done.stderr.strip()[-2_000:]}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Build sdist and, from it, the wheel as they would be published; return (sdist, wheel)."""
    run(uv(), "build", "--quiet", "--out-dir", folder, TOP)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def environment(folder: Path, wheel: Path, extra: str = "") -> Path:
    """Make an empty environment with the wheel alone, or with an extra of it; return its interpreter."""
    run(uv(), "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    asked = f"memsluice[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    run(uv(), "pip", "install", "--quiet", "--python", python, asked)
    return python


def packages(python: Path) -> list[dict[str, Any]]:
    """Return name and version of every distribution in an environment."""
    listed = run(uv(), "pip", "list", "--quiet", "--format", "json", "--python", python)
    found: list[dict[str, Any]] = json.loads(listed)
    return found


def modules(python: Path, home: Path) -> list[str]:
    """Return the modules that ``MemoryWriter.open_local`` loads, its import included, beyond the interpreter's own."""
    run(python, "-I", "-c", ISSUE, home)
    stack_file(home).write_text(json.dumps({"connection": CONNECTION}), encoding="utf-8")
    return opening(python, OPEN, home)


def opening(python: Path, code: str, home: Path) -> list[str]:
    """Run a program on a home, one that prints a JSON list of the modules that it loaded, and return the list."""
    loaded: list[str] = json.loads(run(python, "-I", "-c", code, home))
    return loaded


@contextmanager
def _base(setting: Setting) -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="memsluice-sdk-") as name:
        folder = Path(name)
        setting.say("building the wheel and installing it alone")
        _, wheel = build(folder / "dist")
        yield environment(folder / "venv", wheel), folder


def sdk_packages(setting: Setting) -> Measured:
    """Count the distributions in an environment into which the base wheel alone was installed, itself among them."""
    with _base(setting) as (python, _):
        found = packages(python)
    return Measured(len(found), tuple((one["name"], one["version"]) for one in found))


def sdk_modules(setting: Setting) -> Measured:
    """Count the modules that ``from memsluice import MemoryWriter`` and ``MemoryWriter.open_local`` load."""
    with _base(setting) as (python, folder):
        loaded = modules(python, folder / "home")
        libraries = int(run(python, "-I", "-c", LIBRARIES))
    kinds = Counter("Python's own" if _of_python(name) else name.split(".")[0].lstrip("_") for name in loaded)
    rows = tuple((kind, str(count)) for kind, count in kinds.most_common())
    note = (
        f"confluent_kafka, one pydantic model and Ed25519 of cryptography load {libraries} by themselves; "
        f"{len(loaded) - libraries} come on top of these."
    )
    return Measured(len(loaded), rows, (note,))


def _of_python(module: str) -> bool:
    top = module.split(".")[0]
    return top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
