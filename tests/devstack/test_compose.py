"""docker-compose.yml brings the same as the local stack, and no password of its own."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.devstack.containers import HANG_GUARD_S, SERVICES, TOP, broker, variables

from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.devstack import kafka, probes, versions, weaviate
from memsluice.topics.names import KAFKA_USERS, WEAVIATE_USERS

FILE = TOP / "docker-compose.yml"
FOLDER = TOP / "deploy" / "compose"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """An env file made by make-env, outside of the checkout."""
    shutil.copy(FOLDER / "make-env", tmp_path)
    subprocess.run([tmp_path / "make-env"], check=True, capture_output=True, timeout=HANG_GUARD_S)
    return tmp_path / "secrets.env"


def _compose(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("docker-compose is not installed: sudo apt-get install -y docker-compose")
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [program, "-f", FILE, *arguments], capture_output=True, text=True, env=environment, timeout=HANG_GUARD_S
    )


def test_the_images_are_the_pinned_versions():
    """One pin for both ways: containers never run another version than the local stack."""
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{versions.KAFKA}"
    assert SERVICES["weaviate"]["image"].endswith(f"/weaviate:{versions.WEAVIATE.removeprefix('v')}")


def test_ports_are_on_loopback():
    """Docker publishes past the host's firewall, so what is not meant for the network says so."""
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_no_secret_has_a_default():
    """Every password is a variable that must be set; none is written down or empty."""
    checked = []
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            if re.search(r"PASSWORD|_KEY_|ALLOWED_KEYS|CLUSTER_ID", name):
                assert re.fullmatch(r"(\$\{\w+:\?[^}]+\},?)+", value), name
                checked.append(name)
    assert {"CLUSTER_ID", "AUTHENTICATION_APIKEY_ALLOWED_KEYS"} <= set(checked)


def test_without_the_env_file_compose_says_what_to_run():
    """The first `up` without passwords stops with the command that makes them."""
    result = _compose("config")
    assert result.returncode != 0
    assert "deploy/compose/make-env" in result.stderr


def test_compose_accepts_the_file(secrets: Path):
    """Debian's docker-compose reads it against its schema and fills in every variable."""
    result = _compose("--env-file", str(secrets), "config")
    assert result.returncode == 0, result.stderr
    resolved = yaml.safe_load(result.stdout)["services"]
    keys = resolved["weaviate"]["environment"]["AUTHENTICATION_APIKEY_ALLOWED_KEYS"].split(",")
    assert keys == [variables(secrets)[f"MEMSLUICE_WEAVIATE_KEY_{user.upper()}"] for user in WEAVIATE_USERS]
    assert resolved["weaviate"]["environment"]["AUTHENTICATION_APIKEY_USERS"].split(",") == list(WEAVIATE_USERS)


def test_make_env_is_private_random_and_never_overwrites(secrets: Path):
    """The data was made with these passwords: a second run may not replace them."""
    before = secrets.read_text()
    again = subprocess.run([secrets.parent / "make-env"], capture_output=True, text=True, timeout=HANG_GUARD_S)
    assert again.returncode != 0
    assert secrets.read_text() == before
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    passwords = [value for name, value in variables(secrets).items() if re.search("PASSWORD|_KEY_", name)]
    assert len(set(passwords)) == len(passwords) == len(KAFKA_USERS) + len(WEAVIATE_USERS) + 1
    assert min(map(len, passwords)) >= 32


def test_the_env_file_is_a_connection(secrets: Path):
    """The file that starts the containers also tells memsluice how to reach them, as every user."""
    connection = Connection.load(environment=variables(secrets))
    assert set(connection.users) == set(KAFKA_USERS)
    assert set(connection.weaviate_keys) == set(WEAVIATE_USERS)


def test_the_store_is_guarded_as_in_the_local_stack(tmp_path: Path):
    """Keys, roles, the inner interface's password and no telemetry: the settings are the same ones."""
    local = weaviate.environment(Layout(tmp_path), dict.fromkeys(weaviate.PORTS, 1), {"admin": "k"}, "p")
    remote = SERVICES["weaviate"]["environment"]
    for name, value in local.items():
        if re.match(r"AUTH.*(ENABLED|ROOT_USERS)|DISABLE_|GO_PROF|PROMETHEUS|ENABLE_API|DEFAULT_VEC|RAFT_BOOT", name):
            assert remote.get(name) == value, name
    assert "CLUSTER_BASIC_AUTH_PASSWORD" in remote


def test_the_broker_is_configured_as_in_the_local_stack(tmp_path: Path):
    """Every setting that names neither a listener nor a path is the same in the script as in the code."""
    local = kafka.server_properties(Layout(tmp_path), dict.fromkeys(kafka.PORTS, 1), "p")
    script = (FOLDER / "kafka.sh").read_text()
    properties = dict(re.findall(r"^([a-z][a-z.0-9-]+)=(.*)$", script, flags=re.MULTILINE))
    for line in local.splitlines():
        name, value = line.split("=", 1)
        if "listener" not in name and name not in ("log.dirs", "controller.quorum.bootstrap.servers"):
            assert properties.get(name) == value, name


@pytest.mark.stack
def test_the_containers_script_starts_a_guarded_broker(stack, secrets: Path, tmp_path: Path):
    """The script itself, run here with the same Kafka: it formats with all users and lets only them in."""
    given = variables(secrets)
    with broker(tmp_path, given):
        given["MEMSLUICE_KAFKA_PASSWORD_ADMIN"] = "wrong"
        assert not probes.kafka_ready(Connection.from_environment(given))
