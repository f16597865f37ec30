"""The image and the services of docker-compose.yml, step by step: what runs the whole pipeline by one command."""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.command import STOPPED
from tests.devstack.containers import (
    HANG_GUARD_S,
    OURS,
    SERVICES,
    TOP,
    broker,
    build_image,
    steps,
    told,
    variables,
)

from memsluice import Connection, MemoryWriter, RuntimeChannel, Session
from memsluice.events.partition import partition_of
from memsluice.keystore.store import KeyStore
from memsluice.topics.names import PARTITIONS, STORE, USER_ADMIN, USER_PRODUCER, USER_RUNTIME

LANDED_WITHIN_S = 600


def test_the_image_runs_as_a_user_of_its_own_and_leaves_no_tools() -> None:
    """Not as root; what builds it stays in the first stage; the base is named with its exact version."""
    last = max(step.stage for step in steps())
    final = [step for step in steps() if step.stage == last]
    words = [step.word for step in final]
    assert next(step.rest for step in final if step.word == "USER") == "10001:10001"
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert not re.search(
        r"apt|pip |uv |gcc|build-essential", " ".join(step.rest for step in final if step.word == "RUN")
    )
    assert [step.rest for step in final if step.word == "COPY"] == ["--from=build /opt/memsluice /opt/memsluice"]
    image = next(step.rest for step in steps() if step.word == "ARG" and step.stage < 0)
    assert re.fullmatch(r"PYTHON_IMAGE=docker\.io/library/python:\d+\.\d+\.\d+-slim-bookworm", image)


def test_the_image_is_built_with_extras_that_exist_and_the_pinned_uv() -> None:
    """The default extras, here and in docker-compose.yml, are those of pyproject.toml; uv is the Makefile's."""
    arguments = dict(step.rest.split("=", 1) for step in steps() if step.word == "ARG" and "=" in step.rest)
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(arguments["EXTRAS"].split(",")) <= set(extras)
    asked = {SERVICES[name]["build"]["args"]["EXTRAS"] for name in OURS}
    assert asked == {"${MEMSLUICE_EXTRAS:-" + arguments["EXTRAS"] + "}"}
    assert f"UV_VERSION := {arguments['UV_VERSION']}\n" in (TOP / "Makefile").read_text()


def test_the_context_has_what_is_copied_and_nothing_else() -> None:
    """No .git, no environment, no keys: what the Containerfile copies is what .dockerignore lets through."""
    lines = (TOP / ".dockerignore").read_text().splitlines()
    let_through = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for step in steps()
        if step.word == "COPY" and "--from" not in step.rest
        for source in step.rest.split()[:-1]
    }
    assert let_through == copied
    assert "*" in lines


def test_a_worker_holds_its_own_password_and_no_other() -> None:
    """Whoever takes over *seal* cannot write verdicts or objects."""
    for stage in ("seal", "screen", "land"):
        secrets = {name for name in SERVICES[stage]["environment"] if re.search("PASSWORD|KEY", name)}
        own = {f"MEMSLUICE_KAFKA_PASSWORD_{stage.upper()}"}
        assert secrets == own | ({"MEMSLUICE_WEAVIATE_KEY_LAND"} if stage == "land" else set())


@contextmanager
def _running(service: str, environment: dict[str, str], log: Path) -> Iterator[None]:
    """Run a service's command as its container would, until the block ends."""
    command = list(SERVICES[service]["command"])
    command[command.index("9464")] = "0"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "memsluice.cli.main", *command, "--replica", service],
            env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield
        assert process.poll() is None, log.read_text(errors="replace")[-2_000:]
    finally:
        process.terminate()
        code = process.wait(HANG_GUARD_S)
    assert code in STOPPED, log.read_text(errors="replace")[-2_000:]


@pytest.mark.stack
def test_the_steps_of_the_image_and_of_compose_run_the_whole_pipeline(stack, tmp_path: Path) -> None:
    """Image steps, set-up, three workers, one write: it lands. Kafka is the containers' own script, without topics."""
    root = tmp_path / "image"
    root.mkdir()
    build_image(root, {"EXTRAS": "operator,devstack"})
    image = root / "opt" / "memsluice" / "bin"
    assert not (image / "uv").exists()

    shutil.copy(TOP / "deploy" / "compose" / "make-env", tmp_path)
    subprocess.run([tmp_path / "make-env"], check=True, capture_output=True, timeout=HANG_GUARD_S)
    given = variables(tmp_path / "secrets.env")
    given |= {
        f"MEMSLUICE_WEAVIATE_KEY_{user.upper()}": stack.connection.weaviate_key(user) for user in ("admin", "land")
    }
    home = root / "var" / "lib" / "memsluice"
    with broker(tmp_path, given) as listeners, ExitStack() as workers:
        store = stack.connection
        places = {
            "kafka:9095": f"127.0.0.1:{listeners['9095']}", "weaviate": store.weaviate_host,
            "8080": str(store.weaviate_http_port), "50051": str(store.weaviate_grpc_port),
        }  # fmt: skip
        shared = {"PATH": f"{image}:/usr/bin:/bin", "HOME": os.environ["HOME"], "MEMSLUICE_HOME": str(home)}
        shell, script = SERVICES["setup"]["entrypoint"], SERVICES["setup"]["command"]
        for _ in range(2):  # a second `up` changes nothing
            subprocess.run(
                [*shell, *script], env={**shared, **told("setup", given, places)}, check=True, timeout=HANG_GUARD_S
            )
        for role in ("producer", "runtime"):
            subprocess.run(
                [image / "memsluice", "keys", "new", role, "--tenant", "compose"], env=shared, check=True,
                timeout=HANG_GUARD_S,
            )  # fmt: skip
        for service in ("seal", "screen", "land"):
            environment = {**os.environ, **shared, **told(service, given, places)}
            workers.enter_context(_running(service, environment, tmp_path / f"{service}.log"))
        connection = Connection.from_environment(given)
        _publish(connection, home)
        assert _landed(connection), [
            (tmp_path / f"{one}.log").read_text()[-1_500:] for one in ("seal", "screen", "land")
        ]


def _publish(connection: Connection, home: Path) -> None:
    """Open a session and write, as a platform on the host would."""
    keys = {path.name.split("-")[0]: path for path in KeyStore(home).credentials_dir.iterdir()}
    session = Session(tenant="compose", agent="assistant", principal="ada", session="s-1")
    with (
        RuntimeChannel(connection.confluent(USER_RUNTIME), keys["runtime"]) as platform,
        MemoryWriter(connection.confluent(USER_PRODUCER), keys["producer"]) as memory,
    ):
        platform.open_session(session).result(timeout=HANG_GUARD_S)
        memory.write(session, "Ada prefers tea.", event_id="in-containers").result(timeout=HANG_GUARD_S)


def _landed(connection: Connection) -> bool:
    """Wait for *land*'s record of the stored object, the last thing that the pipeline writes about an event."""
    reader = Consumer({**connection.confluent(USER_ADMIN), "group.id": "test", "enable.auto.commit": False})
    try:
        reader.assign([TopicPartition(STORE, partition_of("compose", PARTITIONS), 0)])
        deadline = time.monotonic() + LANDED_WITHIN_S
        while time.monotonic() < deadline:  # an error is told in a record's place, and the reader goes on
            record = reader.poll(1.0)
            if record is not None and record.error() is None:
                return True
        return False
    finally:
        reader.close()
