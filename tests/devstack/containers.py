"""The steps of deploy/Containerfile and docker-compose.yml, for a machine without a container engine.

What an image would have below /opt, /src and /var lies below a folder of the test; what a container would be told by
its service's environment, a process is told.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memsluice.deployment.connection import Connection
from memsluice.deployment.paths import cache_dir
from memsluice.devstack import install, ports, probes
from memsluice.topics.names import KAFKA_USERS
from memsluice_lab.figures.installing import clean

TOP = Path(__file__).resolve().parents[2]
CONTAINERFILE = TOP / "deploy" / "Containerfile"
SERVICES: dict[str, Any] = yaml.safe_load((TOP / "docker-compose.yml").read_text())["services"]
OURS = ("setup", "seal", "screen", "land")
"""The services that run memsluice."""
LISTENERS = ("9092", "9093", "9094", "9095")
HANG_GUARD_S = 240
PROBED_S = 20.0
_FOLDERS = re.compile(r"(?<![\w/.-])/(?=(?:opt|src|var/lib/memsluice|var/cache/memsluice)\b)")


@dataclass(frozen=True)
class Step:
    """One instruction of the Containerfile: its stage, its word and the rest."""

    stage: int
    word: str
    rest: str


def steps() -> list[Step]:
    """Return the instructions in order, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE)
    lines = [line.strip() for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip()]
    found, stage = [], -1
    for line in lines:
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        found.append(Step(stage, word, rest.strip()))
    return found


def below(root: Path, text: str) -> str:
    """Return text in which the image's folders lie below ``root``."""
    return _FOLDERS.sub(f"{root}/", text)


def build_image(root: Path, arguments: Mapping[str, str]) -> None:
    """Carry out what the Containerfile says, below ``root``, as this user: ARG, ENV, WORKDIR, COPY and RUN.

    Users are not made, and downloads come from this machine's caches.
    """
    python = Path(sys.base_prefix) / "bin"
    environment = clean() | {"PATH": f"{python}:/usr/bin:/bin"}
    folder = root
    for step in steps():
        rest = below(root, step.rest)
        if step.word == "ARG" and step.stage >= 0:
            name, _, default = rest.partition("=")
            environment[name] = arguments.get(name, default)
        elif step.word == "ENV":
            for name, value in re.findall(r"(\w+)=(\S+)", rest):
                if name not in ("UV_NO_CACHE", "UV_LINK_MODE"):
                    environment[name] = value
        elif step.word == "WORKDIR":
            folder = Path(rest)
            folder.mkdir(parents=True, exist_ok=True)
        elif step.word == "COPY" and "--from" not in rest:
            *sources, target = rest.split()
            for source in sources:
                subprocess.run(["cp", "--parents", "-r", source, folder], cwd=TOP, check=True, timeout=HANG_GUARD_S)
            assert (folder / target).exists()
        elif step.word == "RUN" and "useradd" not in rest:
            subprocess.run(["/bin/sh", "-ec", rest], cwd=folder, env=environment, check=True, timeout=1_000)


def variables(file: Path) -> dict[str, str]:
    """Return what an env file says."""
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def told(service: str, given: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a service, variables filled in, the addresses of other services replaced."""
    filled = {
        name: re.sub(r"\$\{(\w+)[^}]*\}", lambda found: given[found[1]], str(value))
        for name, value in SERVICES[service]["environment"].items()
    }
    return {name: places.get(value, value) for name, value in filled.items()}


@contextmanager
def broker(folder: Path, given: dict[str, str]) -> Iterator[dict[str, int]]:
    """Run kafka.sh with the same Kafka and the passwords of an env file; give the port of each of its listeners."""
    chosen = ports.pick(LISTENERS, {})
    script = (TOP / "deploy" / "compose" / "kafka.sh").read_text()
    for old, new in chosen.items():
        script = script.replace(old, str(new))
    (folder / "kafka.sh").write_text(script)
    binaries = folder / "kafka" / "bin"
    binaries.mkdir(parents=True)
    jars = install.kafka_jars(cache_dir())
    for name, main in (("kafka-storage.sh", "kafka.tools.StorageTool"), ("kafka-server-start.sh", "kafka.Kafka")):
        (binaries / name).write_text(f"#!/bin/sh\nexec java -Xmx256m -cp '{jars}/*' {main} \"$@\"\n")
        (binaries / name).chmod(0o755)
    environment = {
        f"PASSWORD_{user.upper()}": given[f"MEMSLUICE_KAFKA_PASSWORD_{user.upper()}"] for user in KAFKA_USERS
    }
    environment |= {"CLUSTER_ID": given["MEMSLUICE_KAFKA_CLUSTER_ID"], "PATH": os.environ["PATH"], "BIND": "127.0.0.1"}
    environment |= {"KAFKA_HOME": str(folder / "kafka"), "DATA": str(folder / "data"), "TMPDIR": str(folder)}
    environment |= {"INSIDE_HOST": "127.0.0.1", "KAFKA_PORT": str(chosen["9092"])}
    given["MEMSLUICE_BOOTSTRAP"] = f"127.0.0.1:{chosen['9092']}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/bash", folder / "kafka.sh"], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        connection = Connection.from_environment(given)
        deadline = time.monotonic() + HANG_GUARD_S
        while not (there := probes.kafka_ready(connection, PROBED_S)):
            if process.poll() is not None or time.monotonic() > deadline:
                break
        assert there, (folder / "log").read_text()[-2000:]
        yield chosen
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(HANG_GUARD_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
