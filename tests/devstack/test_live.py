"""The real servers: who is let in, what an operator sees, what a crash leaves."""

import os
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from memsluice.cli.stack import app
from memsluice.deployment.connection import Connection, quiet
from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import cache_dir
from memsluice.devstack import control, install, kafka, roles, weaviate
from memsluice.devstack.bringup import bring_up
from memsluice.devstack.processes import find
from memsluice.devstack.stackfile import StackFile
from memsluice.errors import StackError
from memsluice.topics.names import EVENTS, SEALED

pytestmark = pytest.mark.stack

HANG_GUARD_S = 240.0
PROBED_S = 60.0


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + HANG_GUARD_S
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is there may take longer than two seconds to say so."""
    probed = {name: partial(probe, timeout_s=PROBED_S) for name, probe in control._PROBES.items()}
    monkeypatch.setattr(control, "_PROBES", probed)


def _produce(
    connection: Connection, user: str, topic: str, *, seconds_max: float = HANG_GUARD_S, **changes: str
) -> KafkaError | None:
    """Produce one record; return the broker's error, None when it has the record."""
    answers: list[KafkaError | None] = []
    client_errors: list[KafkaError] = []
    settings = {**connection.confluent(user), **changes, "log_level": 0}
    settings["message.timeout.ms"] = int(seconds_max * 1_000)
    producer = Producer({**settings, "error_cb": client_errors.append})
    producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _message: answers.append(error))
    refusals: list[KafkaError] = []
    while not answers and not refusals:
        producer.poll(0.2)
        refusals = [error for error in client_errors if error.code() == KafkaError._AUTHENTICATION]
    producer.purge()
    return answers[0] if answers else refusals[0]


def _read_error(connection: Connection, user: str, topic: str) -> KafkaError | None:
    """Read from the start of partition 0; return the broker's error, None when reading is allowed."""
    consumer = Consumer(quiet({**connection.confluent(user), "group.id": "none", "enable.partition.eof": True}))
    try:
        hidden = consumer.list_topics(topic, timeout=HANG_GUARD_S).topics[topic].error
        if hidden is not None:
            return hidden  # not even allowed to know where it lies
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(HANG_GUARD_S)
            assert message is not None
            error = message.error()
            if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # librdkafka asks for the group's coordinator even where no group is used
            return None if error is None or error.code() == KafkaError._PARTITION_EOF else error
    finally:
        consumer.close()


def test_a_wrong_password_is_refused(stack):
    """SCRAM is really on: the right user with another password doesn't get in."""
    error = _produce(stack.connection, "producer", EVENTS, **{"sasl.password": "wrong"})
    assert error is not None
    assert error.code() == KafkaError._AUTHENTICATION


def test_a_producer_writes_events(stack):
    """The grants are enough for the work they are for."""
    assert _produce(stack.connection, "producer", EVENTS) is None


@pytest.mark.parametrize(("user", "topic"), [("producer", SEALED), ("runtime", SEALED), ("land", SEALED)])
def test_writing_another_stages_topic_is_refused(stack, user: str, topic: str):
    """Nobody but seal writes what screen trusts, whatever their password."""
    error = _produce(stack.connection, user, topic)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("user", "topic"), [("producer", SEALED), ("producer", EVENTS), ("reader", EVENTS)])
def test_reading_what_was_not_granted_is_refused(stack, user: str, topic: str):
    """A producer reads neither sealed events nor other producers' events."""
    error = _read_error(stack.connection, user, topic)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_screen_reads_what_seal_wrote(stack):
    """The stages are let through where the picture has an arrow."""
    assert _read_error(stack.connection, "screen", SEALED) is None


def test_no_topic_comes_into_being_by_itself(stack):
    """A mistyped topic is an error, not a new topic with one partition."""
    error = _produce(stack.connection, "admin", "memory.evnets.v1", seconds_max=8)
    assert error is not None
    assert (
        "memory.evnets.v1"
        not in AdminClient(stack.connection.confluent("admin")).list_topics(timeout=HANG_GUARD_S).topics
    )


def _status(connection: Connection, path: str, key: str | None, method: str = "GET", body: bytes | None = None) -> int:
    url = f"http://{connection.weaviate_host}:{connection.weaviate_http_port}/v1/{path}"
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, headers=headers, method=method, data=body)
    try:
        with urllib.request.urlopen(request, timeout=HANG_GUARD_S) as response:  # noqa: S310
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_store_refuses_strangers(stack):
    """No key and a wrong key both end at the door."""
    assert _status(stack.connection, "schema", None) == 401
    assert _status(stack.connection, "schema", "wrong") == 401
    assert _status(stack.connection, "schema", stack.connection.weaviate_key("admin")) == 200


def test_the_stores_roles_hold(stack):
    """recall can't write, land can't leave its own collections, and neither manages users."""
    land, recall = stack.connection.weaviate_key("land"), stack.connection.weaviate_key("recall")
    name = "MemsluiceTestRoles"
    body = f'{{"class": "{name}"}}'.encode()
    try:
        assert _status(stack.connection, "schema", recall, "POST", body) == 403
        assert _status(stack.connection, "schema", land, "POST", b'{"class": "Elsewhere"}') == 403
        assert _status(stack.connection, "schema", land, "POST", body) == 200
        write = f'{{"class": "{name}", "properties": {{"text": "x"}}, "vector": [1, 0]}}'.encode()
        assert _status(stack.connection, "objects", recall, "POST", write) == 403
        assert _status(stack.connection, "objects", land, "POST", write) == 200
        assert _status(stack.connection, "authz/roles", land, "POST", b'{"name": "x", "permissions": []}') in (403, 422)
    finally:
        _status(stack.connection, f"schema/{name}", stack.connection.weaviate_key("admin"), "DELETE")


def test_the_stores_inner_interface_is_guarded(stack):
    """The node-to-node interface listens on all interfaces; without its password it hands out nothing."""
    file = StackFile.read(Layout(stack.home))
    inner = stack.connection.model_copy(update={"weaviate_http_port": file.ports["weaviate-data"]})
    for path in ("../indices/MemsluiceTestRoles/shards/x/objects", "../nodes/status", "../cluster/users/db/land"):
        assert _status(inner, path, None) in (401, 403, 404)
        assert _status(inner, path, stack.connection.weaviate_key("admin")) in (401, 403, 404)


def test_roles_are_put_right(stack):
    """A role that somebody widened by hand is as written again after the next ``stack up``."""
    role = "memsluice-recall"
    extra = {"permissions": [{"action": "delete_data", "data": {"collection": "*"}}]}
    roles._must(stack.connection, "POST", f"roles/{role}/add-permissions", extra)
    roles.apply_roles(stack.connection)
    _, found = roles._call(stack.connection, "GET", f"roles/{role}")
    assert {permission["action"] for permission in found["permissions"]} == {
        "read_collections",
        "read_tenants",
        "read_data",
    }


def test_a_narrower_role_stays(stack):
    """A reader that the operator limited to some tenants is not widened by the next ``stack up``."""
    call, must = roles._call, roles._must
    body = {"name": "narrow", "permissions": [{"action": "read_collections", "collections": {"collection": "None"}}]}
    must(stack.connection, "POST", "roles", body)
    try:
        must(stack.connection, "POST", "users/recall/assign", {"roles": ["narrow"], "userType": "db"})
        must(stack.connection, "POST", "users/recall/revoke", {"roles": ["memsluice-recall"], "userType": "db"})
        roles.apply_roles(stack.connection)
        _, held = call(stack.connection, "GET", "users/recall/roles/db")
        assert [role["name"] for role in held] == ["narrow"]
    finally:
        must(stack.connection, "DELETE", "roles/narrow")
        roles.apply_roles(stack.connection)
    _, held = call(stack.connection, "GET", "users/recall/roles/db")
    assert [role["name"] for role in held] == ["memsluice-recall"]


def test_both_servers_listen_where_they_are_said_to(stack):
    """Loopback only, but for the two ports of Weaviate that have no such setting and that keys guard."""
    file = StackFile.read(Layout(stack.home))
    known_open = {file.ports["weaviate-grpc"], file.ports["weaviate-data"]}
    guarded = set()
    for row in control.status(stack.home):
        for entry in psutil.Process(row.pid).net_connections(kind="inet"):
            if entry.status == psutil.CONN_LISTEN and entry.laddr.port not in known_open:
                assert entry.laddr.ip in ("127.0.0.1", "::ffff:127.0.0.1")
                guarded.add(row.pid)
    assert len(guarded) == 2


def test_no_secret_is_on_a_command_line(stack):
    """Command lines are visible to every user of the machine."""
    secrets = [*stack.connection.users.values(), *stack.connection.weaviate_keys.values()]
    lines = [" ".join(psutil.Process(row.pid).cmdline()) for row in control.status(stack.home)]
    assert (len(lines), all(lines), bool(secrets)) == (2, True, True)
    assert not [secret for secret in secrets for line in lines if secret.get_secret_value() in line]


def test_every_file_with_a_secret_is_private(stack):
    """Configuration, stack file and logs are for their owner alone."""
    layout = Layout(stack.home)
    for path in (*layout.config.iterdir(), layout.stack_file, *layout.logs.iterdir(), layout.run_file):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(stack.home.stat().st_mode) == 0o700


def test_up_on_a_running_stack_changes_nothing(stack):
    """``up`` is safe to repeat: the same processes, the same connection."""
    before = control.status(stack.home)
    assert bring_up(stack.home) == stack.connection
    assert control.status(stack.home) == before


def test_a_second_command_at_the_same_time_is_told_to_wait(stack):
    """Two ``up`` or ``down`` at once can't step on each other."""
    with control.locked(Layout(stack.home)), pytest.raises(StackError, match="is running on"):
        control.down(stack.home)


def test_status_and_logs_for_people_and_programs(stack):
    """Exit code 0 and both servers named; the log shows the servers' own words."""
    home = ["--home", str(stack.home)]
    shown = CliRunner().invoke(app, ["status", *home])
    assert shown.exit_code == 0
    assert kafka.NAME in shown.stdout
    assert weaviate.NAME in shown.stdout
    assert '"state": "running"' in CliRunner().invoke(app, ["status", "--json", *home]).stdout
    shown = CliRunner().invoke(app, ["logs", "kafka", "-n", "5", *home])
    assert (shown.exit_code, len(shown.stdout.strip().splitlines())) == (0, 6)  # where it is, and its last five lines


def test_a_killed_server_comes_back_with_its_data(stack):
    """kill -9 of the store: the supervisor starts it again, and what was written is still there."""
    key = stack.connection.weaviate_key("admin")
    assert _status(stack.connection, "schema", key, "POST", b'{"class": "MemTestCrash"}') == 200
    try:
        before = next(row for row in control.status(stack.home) if row.name == weaviate.NAME)
        os.kill(before.pid, signal.SIGKILL)

        def back() -> bool:
            row = next(row for row in control.status(stack.home) if row.name == weaviate.NAME)
            return row.state == "running" and row.pid != before.pid and row.restarts > before.restarts

        _until(back)
        assert _status(stack.connection, "schema/MemTestCrash", key) == 200
    finally:
        _status(stack.connection, "schema/MemTestCrash", key, "DELETE")


def test_a_starter_killed_half_way_leaves_no_process(tmp_path: Path):
    """kill -9 of ``stack up`` while the servers start: both are gone moments later, and ``down`` has nothing to do."""
    layout = Layout(tmp_path / "home")
    starter = subprocess.Popen(
        [sys.executable, "-c", "import sys; from pathlib import Path; from memsluice.devstack import control; "
         "control.up(Path(sys.argv[1]))", str(layout.home)],
        start_new_session=True,
    )  # fmt: skip
    try:

        def both_started() -> bool:
            report = control.read_report(layout)
            return report is not None and all(service.pid for service in report.services.values())

        _until(both_started)
        report = control.read_report(layout)
        everyone = [report.identity(), *(service.identity() for service in report.services.values())]
    finally:
        starter.kill()
        starter.wait()
    _until(lambda: not any(find(identity) for identity in everyone))
    assert control.down(layout.home) is False
    assert {row.state for row in control.status(layout.home)} == {"stopped"}


def test_a_server_that_dies_at_its_start_is_quoted_and_nothing_stays(stack, tmp_path: Path):
    """A broken store: its own last words, and the healthy broker beside it is stopped again."""
    cache, home = tmp_path / "cache", tmp_path / "home"
    cache.mkdir()
    install.kafka_jars(cache).symlink_to(install.kafka_jars(cache_dir()))
    binary = install.weaviate_binary(cache)
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\necho the store is broken; exit 3\n")
    binary.chmod(0o755)
    result = CliRunner().invoke(app, ["up", "--home", str(home), "--cache", str(cache)])
    assert result.exit_code == 1
    assert "weaviate stopped (exit 3)" in result.stderr
    assert "the store is broken" in result.stderr
    assert "Traceback" not in result.stderr
    assert not [p for p in psutil.process_iter() if str(home) in " ".join(_command_line(p))]


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _end(consumer: Consumer) -> int | None:
    """Return where a partition ends; None while it has no leader, which a broker that just came back elects."""
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(EVENTS, 0), timeout=HANG_GUARD_S)[1])
    except KafkaException as error:
        if error.args[0].code() in (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE):
            return None
        raise


def test_the_whole_life_of_a_stack(tmp_path: Path):
    """up, down, down again, up with the same data and credentials, down --wipe: then nothing is left."""
    home = tmp_path / "home"
    first = bring_up(home)
    assert _produce(first, "producer", EVENTS) is None
    assert control.down(home) is True
    assert control.down(home) is False
    assert not Layout(home).config.exists()
    second = bring_up(home)
    assert second.users == first.users
    consumer = Consumer(quiet({**second.confluent("seal"), "group.id": "memsluice-seal"}))
    _until(lambda: _end(consumer) is not None)
    assert _end(consumer) == 1
    consumer.close()
    pids = [row.pid for row in control.status(home)]
    result = CliRunner().invoke(app, ["down", "--wipe", "--home", str(home)])
    assert result.exit_code == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not home.exists()
