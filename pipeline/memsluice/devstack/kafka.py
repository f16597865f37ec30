"""Apache Kafka as one combined broker and controller: configuration, formatting, command line.

SCRAM-SHA-512 on the broker's listener, SASL PLAIN on the controller's (SCRAM credentials live in the metadata log,
which the controller must be able to read first), StandardAuthorizer on both, nothing allowed without an ACL.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import write_private
from memsluice.devstack.ports import LOOPBACK
from memsluice.devstack.services import Service
from memsluice.errors import StackError

NAME = "kafka"
PORTS = ("kafka", "kafka-controller")
HEAP = "512m"
GRACE_S = 30.0
FORMAT_TIMEOUT_S = 120.0
ADMIN = "admin"

_LOG4J = """\
Configuration:
  status: warn
  Appenders:
    Console:
      name: out
      PatternLayout: {pattern: "%d{ISO8601} %p %m (%c{1})%n"}
  Loggers:
    Root:
      level: warn
      AppenderRef: {ref: out}
    Logger:
      - {name: kafka, level: info}
      - {name: kafka.authorizer.logger, level: warn}
      - {name: org.apache.kafka.common.config, level: error}
"""


def server_properties(layout: Layout, ports: Mapping[str, int], admin_password: str) -> str:
    """Return the text of ``server.properties``. It holds the admin's password: write it with mode 0600."""
    broker, controller = ports["kafka"], ports["kafka-controller"]
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'username="{ADMIN}" password="{admin_password}"'
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{controller}",
        "listeners": f"BROKER://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"BROKER://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{plain} required {login} user_{ADMIN}="{admin_password}";',
        "listener.name.broker.scram-sha-512.sasl.jaas.config": f"{scram} required {login};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN}",
        "allow.everyone.if.no.acl.found": "false",
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "log.dirs": str(layout.data / NAME),
        "num.partitions": "1",
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.num.partitions": "8",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",  # a single machine has nobody to wait for
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": str(32 * 1024 * 1024),  # the default of 128 MiB is a quarter of this heap
        "num.network.threads": "2",
        "num.io.threads": "4",
        "num.recovery.threads.per.data.dir": "2",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def configure(layout: Layout, ports: Mapping[str, int], admin_password: str) -> None:
    """Write the configuration files of this start."""
    write_private(layout.config / "kafka.properties", server_properties(layout, ports, admin_password))
    write_private(layout.config / "kafka-log4j2.yaml", _LOG4J)


def is_formatted(layout: Layout) -> bool:
    """Tell whether the data directory already belongs to a cluster."""
    return (layout.data / NAME / "meta.properties").exists()


def format_storage(layout: Layout, java: str, jars: Path, cluster_id: str, passwords: Mapping[str, str]) -> None:
    """Format the data directory with the SCRAM credentials of every user. Raises StackError with Kafka's own words.

    The credentials travel in an argument file, because a command line is visible to every user of the machine.
    """
    arguments = layout.config / "kafka-format.args"
    lines = ["format", "--standalone", "-t", cluster_id, "-c", str(layout.config / "kafka.properties")]
    for user, password in passwords.items():
        lines += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
    write_private(arguments, "\n".join(lines) + "\n")
    try:
        done = subprocess.run(
            [java, *_jvm(layout, jars, "128m"), "kafka.tools.StorageTool", f"@{arguments}"],
            capture_output=True,
            text=True,
            timeout=FORMAT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StackError(f"Kafka did not format its storage within {FORMAT_TIMEOUT_S:.0f} s") from error
    finally:
        arguments.unlink(missing_ok=True)
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise StackError("Kafka could not format its storage: " + (words[-1] if words else f"exit {done.returncode}"))


def _jvm(layout: Layout, jars: Path, heap: str) -> list[str]:
    return [
        f"-Xmx{heap}",
        "-XX:+UseG1GC",
        "-XX:TieredStopAtLevel=1",  # beside its clients on a few cores, the second compiler costs more than it gives
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Djava.io.tmpdir={layout.config}",  # codecs unpack native libraries there; it goes with `down`
        f"-Dlog4j2.configurationFile={layout.config / 'kafka-log4j2.yaml'}",
        "-cp",
        f"{jars}/*",
    ]


def service(layout: Layout, java: str, jars: Path) -> Service:
    """Return how the supervisor runs the broker."""
    command = [java, *_jvm(layout, jars, HEAP), "kafka.Kafka", str(layout.config / "kafka.properties")]
    return Service(
        name=NAME,
        command=tuple(command),
        environment={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        directory=str(layout.data),
        log=str(layout.log(NAME)),
        grace_s=GRACE_S,
        stop_when_full=True,
    )
