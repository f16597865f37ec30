"""How the broker and the store are found."""

import stat
from pathlib import Path

import pytest

from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.devstack.stackfile import next_start
from memsluice.errors import ConfigError

VARIABLES = {
    "MEMSLUICE_BOOTSTRAP": "broker:9092",
    "MEMSLUICE_WEAVIATE_HOST": "store",
    "MEMSLUICE_WEAVIATE_HTTP_PORT": "8080",
    "MEMSLUICE_WEAVIATE_GRPC_PORT": "50051",
    "MEMSLUICE_KAFKA_PASSWORD_SEAL": "s3cret",
    "MEMSLUICE_WEAVIATE_KEY_LAND": "k3y",
}


def test_without_a_stack_the_error_names_the_command(tmp_path: Path):
    """The first thing a newcomer forgets is starting the stack; the message is the way out."""
    with pytest.raises(ConfigError, match="memsluice stack up"):
        Connection.load(tmp_path)


def test_the_stack_file_is_read(tmp_path: Path):
    """What ``stack up`` wrote is what clients use."""
    layout = Layout(tmp_path)
    file = next_start(None)
    file.write(layout)
    assert Connection.load(tmp_path) == file.connection


def test_the_environment_describes_a_deployment():
    """A deployment with its own broker needs no file; TLS is what it gets unless it says otherwise."""
    connection = Connection.load(environment=VARIABLES)
    assert connection.bootstrap == "broker:9092"
    assert connection.security_protocol == "SASL_SSL"
    assert connection.password("seal") == "s3cret"
    assert connection.weaviate_key("land") == "k3y"


def test_a_file_describes_a_deployment(tmp_path: Path):
    """A saved connection is private and reads back the same, by the variable that names it."""
    connection = Connection.load(environment=VARIABLES)
    path = tmp_path / "connection.yaml"
    connection.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Connection.load(environment={"MEMSLUICE_CONNECTION": str(path)}) == connection


@pytest.mark.parametrize("text", ["- a list", "{unclosed", "bootstrap: b\nsurprise: p4ssword"])
def test_an_invalid_file_is_named_without_its_secrets(tmp_path: Path, text: str):
    """The message names file and field and never quotes the content, which holds passwords."""
    path = tmp_path / "connection.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"connection\.yaml") as caught:
        Connection.from_file(path)
    assert "p4ssword" not in str(caught.value)


def test_an_unknown_user_is_refused_with_the_known_ones():
    """A mistyped user is a clear message instead of a refused login later."""
    connection = Connection.load(environment=VARIABLES)
    with pytest.raises(ConfigError, match="seal"):
        connection.confluent("sael")


def test_every_client_gets_the_same_login():
    """librdkafka, aiokafka and Faust connect as the same user with the same mechanism."""
    variables = {**VARIABLES, "MEMSLUICE_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    connection = Connection.load(environment=variables)
    confluent, aiokafka = connection.confluent("seal"), connection.aiokafka("seal")
    faust = connection.faust_credentials("seal")
    assert confluent["sasl.username"] == aiokafka["sasl_plain_username"] == faust.username == "seal"
    assert confluent["sasl.password"] == aiokafka["sasl_plain_password"] == faust.password == "s3cret"
    assert confluent["sasl.mechanism"] == aiokafka["sasl_mechanism"] == faust.mechanism.value == "SCRAM-SHA-512"
    assert "ssl_context" not in aiokafka
    assert connection.faust_broker() == ["kafka://broker:9092"]


def test_tls_is_verified():
    """A TLS connection without a named authority checks the broker against the system's authorities."""
    context = Connection.load(environment=VARIABLES).aiokafka("seal")["ssl_context"]
    assert context.check_hostname
