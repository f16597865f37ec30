"""The doctor: what is wrong is found, said in words, and comes with what to do; what is right is not called wrong."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException
from pydantic import SecretStr
from tests.gate.build import T0
from tests.patience import HANG_S, unhurry, until
from tests.stores.build import entry
from typer.testing import CliRunner

from memsluice.cli.doctor import app
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.deployment.local_log import LocalLog
from memsluice.encoder import EncoderSetting
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.errors import BrokerUnavailable, ConfigError
from memsluice.keystore.store import KeyStore
from memsluice.operations.doctor import checks, remote
from memsluice.operations.doctor.checks import CheckResult, CheckState
from memsluice.stores.opening import embedded_space, open_embedded
from memsluice.topics.names import STORE


def bad(findings: Iterator[CheckResult]) -> dict[str, CheckResult]:
    """Return what is not as it should be, by what was looked at."""
    return {finding.what: finding for finding in findings if finding.state is not CheckState.OK}


def test_a_home_that_others_may_read_fails_with_the_command_that_mends_it(tmp_path: Path) -> None:
    """The home holds keys: mode 0700, and nothing wider."""
    tmp_path.chmod(0o755)
    found = bad(checks.disk(Home.at(tmp_path)))
    assert found["home"].remedy == f"chmod 700 {tmp_path}"
    tmp_path.chmod(0o700)
    assert "home" not in bad(checks.disk(Home.at(tmp_path)))


@pytest.mark.parametrize("file", ["embedded.db", "store.db"])
@pytest.mark.parametrize("harm", ["cut", "noise", "empty"])
def test_a_destroyed_embedded_home_is_not_called_fine(file: str, harm: str, tmp_path: Path) -> None:
    """A log or a store that was cut short, overwritten or emptied: a cross, what to do, and exit code 9."""
    KeyStore.init(tmp_path, wall_ms())
    tmp_path.chmod(0o700)
    with closing(LocalLog(tmp_path / "embedded.db")) as log:
        for number in range(200):
            log.append(STORE, b"acme", b"x" * 200, append_ms=number)
    store = open_embedded(tmp_path / "store.db")
    assert store.tenants() == []
    store.close()
    fine = {one.what: one.state.value for one in checks.embedded(Home.at(tmp_path))}
    assert fine == {"log": "ok", "memory": "ok"}
    path = tmp_path / file
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[: len(whole) // 2], "noise": b"\xa5" * len(whole), "empty": b""}[harm])
    shown = CliRunner().invoke(app, ["--home", str(tmp_path), "--json"])
    (found,) = [one for one in json.loads(shown.stdout) if one["state"] == "fail" and str(path) in one["said"]]
    assert (shown.exit_code, "restore" in found["do"]) == (9, True)


def test_a_store_in_which_nothing_has_landed_may_be_empty(tmp_path: Path) -> None:
    """A store is made before it is first written: what is new is not called destroyed."""
    LocalLog(tmp_path / "embedded.db").close()
    open_embedded(tmp_path / "store.db").close()
    assert [one.state.value for one in checks.embedded(Home.at(tmp_path))] == ["ok"]


def test_a_home_that_cannot_be_written_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and writers would fail on it: it is a cross, with the command that mends it."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(checks.os, "access", lambda path, mode: False)
    found = bad(checks.disk(Home.at(tmp_path)))
    assert (found["home"].state, f"chmod u+rw {tmp_path}" in found["home"].remedy) == (CheckState.FAIL, True)


def test_a_home_that_is_a_file_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """`keys init` would not help: another home is to be named."""
    (tmp_path / "file").touch()
    found = bad(checks.disk(Home.at(tmp_path / "file")))["home"]
    assert "is a file and not a folder" in found.said
    assert "--home FOLDER" in found.remedy


def test_a_key_that_signs_for_days_only_is_a_warning_before_it_is_an_outage(tmp_path: Path) -> None:
    """A gate whose last key runs out stops; a week ahead the doctor says which, and how to rotate it."""
    store = KeyStore.init(tmp_path, T0)
    assert bad(checks.keys(store, T0)) == {}
    ring = store.load_keyring()
    seal = ring.signing(Purpose.SEAL, T0)
    store.save_keyring(
        Keyring(replace(key, not_after_ms=T0 + 86_400_000) if key.kid == seal.kid else key for key in ring)
    )
    found = bad(checks.keys(store, T0))
    assert found["keys"].state is CheckState.WARN
    assert found["keys"].remedy == f"memsluice keys rotate {seal.kid}"


def test_a_policy_file_with_a_typo_fails_and_an_unwise_one_warns(tmp_path: Path) -> None:
    """The file that workers would refuse at their next start is found before."""
    home = Home.at(tmp_path)
    home.policy_file.parent.mkdir()
    home.policy_file.write_text("name: x\nprofle: strict\n")
    (found,) = checks.run({"policy file": lambda: checks.policies(home)})
    assert (found.state, "profle" in found.said) == (CheckState.FAIL, True)
    home.policy_file.write_text("name: x\nmode: shadow\n")
    assert bad(checks.policies(home))["policy file"].state is CheckState.WARN


def test_a_check_that_fails_hides_no_other() -> None:
    """One error is one finding."""

    def broken() -> Iterator[CheckResult]:
        yield CheckResult("a", CheckState.OK, "first")
        raise ConfigError("gone")

    found = list(checks.run({"a": broken, "b": lambda: iter([CheckResult("b", CheckState.OK, "fine")])}))
    assert [(finding.what, finding.state) for finding in found] == [("a", "ok"), ("a", "fail"), ("b", "ok")]


def test_what_could_not_be_asked_says_what_to_do_all_the_same() -> None:
    """A store that is down, a broker that does not answer: the line that fails names the next command."""

    def broken() -> Iterator[CheckResult]:
        raise BrokerUnavailable("no answer")
        yield

    found = list(checks.run(dict.fromkeys(("workers", "broker clock", "store"), broken)))
    assert {finding.state for finding in found} == {CheckState.FAIL}
    assert all("memsluice stack status" in finding.remedy for finding in found)


def test_a_missing_password_is_not_looked_for_in_a_log() -> None:
    """A connection without the operator's password says where to put it; a server's log would show nothing."""
    connection = Connection(bootstrap="broker:9092", weaviate_host="store", weaviate_http_port=1, weaviate_grpc_port=2)
    todo = {
        "workers": lambda: remote.workers(connection), "broker clock": lambda: remote.broker_clock(connection, 0.0),
    }  # fmt: skip
    for found in checks.run(todo):
        assert (found.state, found.remedy) == (CheckState.FAIL, "")
        assert "no credentials of Kafka user 'operator'" in found.said
        assert "MEMSLUICE_KAFKA_PASSWORD_OPERATOR" in found.said


def test_what_needs_a_broker_that_does_not_answer_is_not_asked() -> None:
    """Each would wait for a minute: at three in the morning the line that says why is there after five seconds."""

    def asked() -> Iterator[CheckResult]:
        raise AssertionError("it was asked all the same")
        yield

    silent = CheckResult("broker", CheckState.FAIL, "no answer", "look at it")
    fine = CheckResult("store", CheckState.OK, "answers")
    some = {"broker": lambda: iter([silent]), "workers": asked, "broker clock": asked, "store": lambda: iter([fine])}
    found = list(checks.run(some))
    assert [finding.what for finding in found] == ["broker", "workers", "broker clock", "store"]
    assert [finding.state.value for finding in found] == ["fail", "warn", "warn", "ok"]


@pytest.mark.parametrize(("refused", "what"), [("land", "broker users"), ("operator", "broker")])
def test_a_broker_that_refuses_one_user_is_asked_as_the_operator_all_the_same(
    refused: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers and the clock are asked as the operator: a wrong password of another hides neither."""

    class Admin:
        def __init__(self, settings: dict[str, object]) -> None:
            self.user = settings["sasl.username"]

        def list_topics(self, timeout: float) -> None:
            if self.user == refused:
                raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(remote, "AdminClient", Admin)
    connection = Connection(bootstrap="broker:9092", weaviate_host="store", weaviate_http_port=1, weaviate_grpc_port=2)
    connection = connection.model_copy(
        update={"users": {name: SecretStr("x") for name in ("seal", "land", "operator")}}
    )
    workers = CheckResult("workers", CheckState.OK, "2 workers")
    found = list(checks.run({"broker": lambda: remote.broker(connection), "workers": lambda: iter([workers])}))
    assert [(one.what, one.state.value) for one in found] == [
        (what, "fail"), ("workers", "ok" if what == "broker users" else "warn"),
    ]  # fmt: skip
    assert refused in found[0].said


def test_a_store_behind_tls_is_asked_by_tls() -> None:
    """A deployment with `weaviate_secure` answers nobody in the clear."""
    plain = Connection(bootstrap="broker:9092", weaviate_host="store", weaviate_http_port=443, weaviate_grpc_port=50051)
    assert plain.weaviate_ready_url == "http://store:443/v1/.well-known/ready"
    assert plain.model_copy(update={"weaviate_secure": True}).weaviate_ready_url.startswith("https://store:443/")


def test_nobody_is_said_to_be_known_where_nobody_was_asked() -> None:
    """An environment that names the broker alone, as a producer's may: a tick would say what nobody looked at."""
    connection = Connection(bootstrap="127.0.0.1:1", weaviate_http_port=1, weaviate_grpc_port=1)
    found = next(iter(remote.broker(connection)))
    assert (found.what, found.state) == ("broker", CheckState.WARN)
    assert "not asked" in found.said


def test_a_broker_whose_clock_is_ahead_is_found_by_what_it_appended() -> None:
    """Credentials would expire early, and nothing else on this machine shows it; an old or empty log says nothing."""
    now_s = T0 / 1_000
    ahead = remote.clock_of_broker(T0 + 61_000, now_s)
    assert (ahead.state, "NTP" in ahead.remedy) == (CheckState.FAIL, True)
    for latest_ms in (T0 + 60_000, T0, T0 - 86_400_000, -1):
        assert remote.clock_of_broker(latest_ms, now_s).state is CheckState.OK


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A private home with keys, where no stack runs."""
    path = tmp_path / "home"
    KeyStore.init(path, wall_ms())
    return path


def test_a_stack_that_died_is_a_failure_and_one_that_was_never_up_is_none(home: Path) -> None:
    """A supervisor that was killed leaves its report: "no stack runs here" and exit code 0 would send one to bed."""
    assert CliRunner().invoke(app, ["--home", str(home)]).exit_code == 0
    Home.at(home).layout.run_file.write_text("{}")
    told = CliRunner().invoke(app, ["--home", str(home)])
    assert (told.exit_code, "memsluice stack up" in told.output, "No stack runs" in told.output) == (9, True, False)


@pytest.mark.parametrize("named", [True, False])
def test_a_deployment_that_the_environment_names_is_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """A home that MEMSLUICE_HOME names holds keys, and does not hide the broker; one on the command line is meant."""
    for part in ("broker", "workers", "partitions", "broker_clock", "store"):
        monkeypatch.setattr(remote, part, lambda *_: iter([CheckResult("remote", CheckState.OK, "asked")]))
    variables = {
        "MEMSLUICE_HOME": str(home), "MEMSLUICE_BOOTSTRAP": "broker:9092", "MEMSLUICE_WEAVIATE_HTTP_PORT": "443",
        "MEMSLUICE_WEAVIATE_GRPC_PORT": "50051",
    }  # fmt: skip
    arguments = ["--json", *(["--home", str(home)] if named else [])]
    told = CliRunner().invoke(app, arguments, env=variables)
    assert told.exit_code == 0, told.output
    assert [finding["what"] for finding in json.loads(told.stdout)].count("remote") == (0 if named else 5)


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_operators_password_is_enough_to_see_the_workers_and_the_clock(stack) -> None:
    """Whoever is on call has no admin's password: its grants cover groups and offsets, and that is all it takes."""
    only = {"operator": stack.connection.users["operator"]}
    connection = stack.connection.model_copy(update={"users": only})
    found = {finding.what: finding for finding in remote.workers(connection)}
    assert {"seal", "screen", "land"} == found.keys()
    (clock,) = remote.broker_clock(connection, time.time())
    assert clock.state is CheckState.OK


WELL = ("home", "keys", "model", "broker", "topics", "store", "clock", "broker clock")


@pytest.mark.stack
def test_a_running_stack_is_found_well_and_a_wrong_password_is_named(stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker, topics, rules, store and clock of a fresh stack are right; a user that is not let in is said by name."""
    KeyStore.init(stack.home, T0)
    command = [sys.executable, "-m", "memsluice.cli.main", "doctor", "--home", str(stack.home), "--json"]

    def looked() -> str:
        told = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
        assert told.stdout, told.stderr
        print(told.stdout)  # shown where it fails
        found = {finding["what"]: finding["state"] for finding in json.loads(told.stdout)}
        return told.stdout if {found.get(what) for what in WELL} == {"ok"} else ""

    shown = until(looked, "a fresh stack to be found well: what is asked late on a busy machine is asked again")
    assert {"seal", "screen", "land"} <= {finding["what"] for finding in json.loads(shown)}
    secrets = [secret.get_secret_value() for secret in stack.connection.users.values()]
    assert not any(secret in shown for secret in secrets)
    wrong = stack.connection.model_copy(update={"users": {**stack.connection.users, "land": SecretStr("wrong")}})
    for limit_s in (remote.ANSWER_S, 30.0, HANG_S):
        monkeypatch.setattr(remote, "ANSWER_S", limit_s)
        found = bad(remote.broker(wrong))
        if "broker users" in found:
            break
    assert "land" in found["broker users"].said
    unhurry(monkeypatch)
    skewed = bad(remote.store(stack.connection, 0.0))
    assert "NTP" in skewed["clock"].remedy


def test_a_memory_of_another_encoder_is_a_cross(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor names both encoders and the setting before a reader or the embedded runtime refuses to start; a memory of
    this process's own encoder, or an empty one, is fine."""
    monkeypatch.delenv("MEMSLUICE_ENCODER", raising=False)

    def said() -> CheckResult:
        held = partial(embedded_space, tmp_path / "store.db")
        (one,) = checks.run({"encoder": lambda: checks.encoder(EncoderSetting.read(), held)})
        return one

    open_embedded(tmp_path / "store.db").close()
    assert (said().state, said().said) == (CheckState.OK, "the memory has no vectors yet")
    store = open_embedded(tmp_path / "store.db")
    store.upsert([entry("acme", "here", np.eye(1, 96, dtype=np.float32)[0], model="acme/small@1")])
    store.close()
    assert said().state is CheckState.FAIL
    assert all(part in said().said for part in ("acme/small@1 (96", "all-MiniLM-L6-v2", "MEMSLUICE_ENCODER"))
    monkeypatch.setenv("MEMSLUICE_ENCODER", "nonsense")
    assert "MEMSLUICE_ENCODER=nonsense names no encoder" in said().said
