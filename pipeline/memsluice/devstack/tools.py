"""The programs the stack needs on the machine: Java, and for the first start Maven and Go."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memsluice.devstack import versions
from memsluice.errors import StackError

ASK_TIMEOUT_S = 30.0

_HOW = {
    "java": f"Java {versions.JAVA_MIN} or newer (runs Kafka):  sudo apt-get install -y openjdk-17-jre-headless",
    "mvn": "Maven (fetches Kafka's jars, once):  sudo apt-get install -y maven",
    "go": (
        f"Go {'.'.join(map(str, versions.GO_MIN))} or newer (builds Weaviate, once):  sudo apt-get install -y golang-go"
        "  (Debian 12: golang-1.24-go from bookworm-backports, then add /usr/lib/go-1.24/bin to PATH; or https://go.dev/dl)"
    ),
}


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the programs that were found; empty where one was not asked for."""

    java: str = ""
    mvn: str = ""
    go: str = ""


def find(names: Sequence[str], path: str | None = None) -> Tools:
    """Find the programs named (of ``java``, ``mvn``, ``go``) on ``path`` (default: PATH; Java also by JAVA_HOME).

    Raises StackError that names everything missing or too old at once, with the command that installs each.
    """
    found = {name: _find(name, path) for name in names}
    missing = [name for name, where in found.items() if not where]
    if missing:
        lines = "\n".join(f"  - {_HOW[name]}" for name in missing)
        raise StackError(f"The stack needs programs that this machine does not have:\n{lines}")
    return Tools(**found)


def _find(name: str, path: str | None) -> str:
    if name == "java":
        home = os.environ.get("JAVA_HOME", "") if path is None else ""
        candidates = [str(Path(home) / "bin" / "java")] if home else []
        return next((java for java in [*candidates, shutil.which("java", path=path)] if java and _java_ok(java)), "")
    where = shutil.which(name, path=path) or ""
    return where if where and (name != "go" or _go_ok(where)) else ""


def _ask(command: list[str]) -> str:
    """Return what a program says about itself, or nothing if it does not run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _java_ok(java: str) -> bool:
    match = re.search(r'version "(\d+)', _ask([java, "-version"]))
    return match is not None and int(match[1]) >= versions.JAVA_MIN


def _go_ok(go: str) -> bool:
    match = re.search(r"go version go(\d+)\.(\d+)", _ask([go, "version"]))
    return match is not None and (int(match[1]), int(match[2])) >= versions.GO_MIN
