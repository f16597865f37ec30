"""Bring a stack up, take it down, say how it is."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import ValidationError

from memsluice.deployment import locked as lock
from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import cache_dir, home_dir, using
from memsluice.deployment.space import RESUME_BYTES, Room
from memsluice.devstack import install, kafka, probes, tools, versions, weaviate
from memsluice.devstack.endings import TAIL_BYTES, WORDS_CHARS_MAX, last_words, why_silent
from memsluice.devstack.processes import find, stop
from memsluice.devstack.reporter import SILENT, Reporter
from memsluice.devstack.services import Service, ServiceReport, StackPlan, StackReport
from memsluice.devstack.stackfile import StackFile, next_start
from memsluice.errors import StackError

READY_TIMEOUT_S = 120.0
"""A cold start takes about 10 s on two quiet cores."""
STARTS_WITHIN_S = 60.0
"""A server that does not answer for longer after its start is called hung and not starting."""
STARTS_MAX = 3
PORT_TAKEN = "address already in use"
"""What both servers' logs say where their port is another process's."""
SUPERVISOR_GONE = (
    "its supervisor is gone, and servers end with it: somebody killed it, or the machine was started anew; "
    "memsluice stack up goes on with the same data"
)
POLL_S = 0.25
SUPERVISOR_GRACE_S = kafka.GRACE_S + weaviate.GRACE_S + 5.0

_PROBES: dict[str, Callable[[Connection], bool]] = {
    kafka.NAME: probes.kafka_ready,
    weaviate.NAME: probes.weaviate_ready,
}
SERVICES = tuple(_PROBES)


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One server as an operator sees it."""

    name: str
    state: str
    """running | starting | hung | restarting | waiting for room | failed | stopped; running: it answered just now."""
    pid: int | None
    address: str
    restarts: int
    exit_code: int | None
    why: str
    """Why it does not run, or does not answer; "" where nobody knows, and while it runs. It may quote the log."""


@contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """Hold the home's lock. Raises StackError at once when another command holds it."""

    def taken(pid: str) -> StackError:
        return StackError(
            f"Another `memsluice stack` command (pid {pid}) is running on {layout.home}: wait until it ends"
        )

    layout.prepare()
    with ExitStack() as held:
        with using(layout.lock_file):
            held.enter_context(lock.locked(layout.lock_file, taken))
        yield


def read_report(layout: Layout) -> StackReport | None:
    """Return the supervisor's run file, whether or not it is stale; None where there is none."""
    try:
        return StackReport.model_validate_json(layout.run_file.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def is_running(layout: Layout) -> bool:
    """Tell whether the supervisor of this home is alive."""
    report = read_report(layout)
    return report is not None and find(report.identity()) is not None


def status(home: Path | None = None) -> list[ServiceStatus]:
    """Return the state of each server, with the ready-check made now."""
    layout = Layout(home_dir(home))
    file, report = StackFile.read(layout), read_report(layout)
    supervised = report is not None and find(report.identity()) is not None
    return [_row(layout, name, file, report, supervised=supervised) for name in _PROBES]


def _row(
    layout: Layout, name: str, file: StackFile | None, report: StackReport | None, *, supervised: bool
) -> ServiceStatus:
    told = report.services.get(name) if report else None
    identity = told.identity() if told else None
    process = find(identity)
    state, why = (told.state, told.why) if told and supervised else ("stopped", "")
    if process is not None and file is not None:
        state, why = "running", ""
        if not _PROBES[name](file.connection):
            state = _silent(report, told, process)
            why = why_silent(process) if state == "hung" else (told.why if told else "")
    elif told is not None and not supervised:
        why = told.why if told.state == "failed" else SUPERVISOR_GONE
    elif told is not None and state == "running":  # it has ended, and its supervisor has not looked yet
        state, why = "restarting", _ended_just_now(layout, name)
    return ServiceStatus(
        name=name,
        state=state,
        pid=identity.pid if identity and process else None,
        address=f"127.0.0.1:{file.ports[name]}" if file else "",
        restarts=told.restarts if told else 0,
        exit_code=told.exit_code if told else None,
        why=why,
    )


def _silent(report: StackReport | None, told: ServiceReport | None, process: psutil.Process) -> str:
    """Return the state of a server that lives and does not answer.

    It starts, unless it has answered since its start, is late, or was stopped by a signal.
    """
    if report is None or told is None:
        return "starting"
    late = False
    with contextlib.suppress(psutil.Error):
        age_s = time.time() - process.create_time()
        late = age_s > STARTS_WITHIN_S or process.status() == psutil.STATUS_STOPPED
    return "hung" if late or (report.kept and not told.restarts) else "starting"


def _ended_just_now(layout: Layout, name: str) -> str:
    """Return the last line of a server's log, whose end nobody has judged."""
    words = last_words(layout.log(name)).decode("utf-8", "replace").split("\n")
    return next((line.strip()[:WORDS_CHARS_MAX] for line in reversed(words) if line.strip()), "")


def up(home: Path | None = None, cache: Path | None = None, reporter: Reporter = SILENT) -> Connection:
    """Install what is missing, start both servers, wait until both answer, and return how to reach them.

    Returns at once when the stack is already up; a stack with a server that was given up is started anew. Raises
    StackError, with nothing left running, when it cannot be brought up. ``reporter`` is told what is going on.
    """
    layout = Layout(home_dir(home))
    cache = cache_dir(cache)
    with locked(layout):
        report = read_report(layout)
        if report is not None and is_running(layout) and "failed" not in {s.state for s in report.services.values()}:
            file = StackFile.read(layout)
            if file is not None:
                _wait_ready(layout, file.connection, reporter)
                return file.connection
        _sweep(layout)
        _check_room(layout)
        found = tools.find(install.missing_tools(cache))
        jars = install.install_kafka(cache, found, reporter.doing)
        binary = install.install_weaviate(cache, found, reporter.doing)
        reporter.done(f"Kafka {versions.KAFKA} and Weaviate {versions.WEAVIATE} are installed in {cache}")

        def start() -> Connection:
            file = next_start(StackFile.read(layout))
            file.write(layout)
            services = _services(layout, file, found.java, jars, binary, reporter)
            _start(layout, file.connection, services, reporter)
            return file.connection

        return _on_free_ports(start, reporter)


def _on_free_ports(start: Callable[[], Connection], reporter: Reporter) -> Connection:
    """Start; where another process took a port after it was chosen, start again on others, STARTS_MAX times in all."""
    for number in range(1, STARTS_MAX + 1):
        try:
            return start()
        except StackError as error:
            if number == STARTS_MAX or PORT_TAKEN not in str(error).lower():
                raise
            reporter.done("another process took a port that was free: starting again on others")
    raise AssertionError


def _check_room(layout: Layout) -> None:
    """Raise StackError where the disk has so little room that the servers would be stopped again at once."""
    room = Room.of(layout.home)
    if not room.enough_again:
        raise StackError(f"The disk has too little room: {room}; free {RESUME_BYTES >> 20} MiB at least, better more")


def _services(
    layout: Layout, file: StackFile, java: str, jars: Path, binary: Path, reporter: Reporter
) -> tuple[Service, ...]:
    """Write the configuration, format Kafka's storage if it is new, and return what is to be run."""
    passwords = {user: secret.get_secret_value() for user, secret in file.connection.users.items()}
    kafka.configure(layout, file.ports, passwords[kafka.ADMIN])
    if not kafka.is_formatted(layout):
        reporter.doing("formatting Kafka's storage")
        kafka.format_storage(layout, java, jars, file.cluster_id, passwords)
    keys = {user: secret.get_secret_value() for user, secret in file.connection.weaviate_keys.items()}
    variables = weaviate.environment(layout, file.ports, keys, file.cluster_password.get_secret_value())
    return kafka.service(layout, java, jars), weaviate.service(layout, binary, file.ports, variables)


def _start(layout: Layout, connection: Connection, services: tuple[Service, ...], reporter: Reporter) -> None:
    """Start the supervisor; let it keep the servers only when all are ready."""
    plan = StackPlan(run_file=str(layout.run_file), services=services)
    with layout.log("supervisor").open("ab") as log:
        os.fchmod(log.fileno(), 0o600)
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "memsluice.devstack.supervisor"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=layout.home,
            start_new_session=True,
        )
    pipe = supervisor.stdin
    if pipe is None:  # pragma: no cover - Popen was asked for it
        raise StackError("the supervisor has no standard input")
    try:
        pipe.write(plan.model_dump_json().encode() + b"\n")
        pipe.flush()
        _wait_ready(layout, connection, reporter, supervisor)
        pipe.write(b"keep\n")
        pipe.close()
    except BaseException as error:  # also Ctrl-C: nothing may be left behind
        supervisor.terminate()
        try:
            supervisor.wait(SUPERVISOR_GRACE_S)
        except subprocess.TimeoutExpired:
            _sweep(layout)
        if isinstance(error, BrokenPipeError):
            raise StackError(
                f"The supervisor ended at once. The end of its log:\n{tail(layout, 'supervisor', 10)}"
            ) from None
        raise
    supervisor.returncode = 0  # it stays, on purpose: no ResourceWarning about a process left running


def _wait_ready(
    layout: Layout, connection: Connection, reporter: Reporter, supervisor: "subprocess.Popen[bytes] | None" = None
) -> None:
    """Return when every server answered. Raises StackError with the log's last lines when one died or stays silent."""
    begun = time.monotonic()
    waiting = dict(_PROBES)
    while waiting:
        elapsed = time.monotonic() - begun
        reporter.doing(f"waiting for {' and '.join(waiting)}: {elapsed:.0f} s")
        if supervisor is not None and supervisor.poll() is not None:
            raise StackError(f"The supervisor ended. The end of its log:\n{tail(layout, 'supervisor', 10)}")
        report = read_report(layout)
        for name in list(waiting):
            told = report.services.get(name) if report else None
            if told is not None and told.state == "failed":
                raise StackError(
                    f"{name} stopped (exit {told.exit_code}): {told.why}\nThe end of its log:\n{tail(layout, name, 12)}"
                )
            if told is not None and told.state == "running" and waiting[name](connection):
                reporter.done(f"{name} answers")
                del waiting[name]
        if waiting and elapsed > READY_TIMEOUT_S:
            name = next(iter(waiting))
            raise StackError(
                f"{name} did not answer within {READY_TIMEOUT_S:.0f} s. The end of its log:\n{tail(layout, name, 12)}"
            )
        if waiting:
            time.sleep(POLL_S)


def _sweep(layout: Layout) -> int:
    """Stop whatever of an earlier stack is still alive, recognised by pid and create time. Return how many were."""
    report = read_report(layout)
    if report is None:
        return 0
    supervisor = find(report.identity())
    if supervisor is not None:
        stop([report.identity()], SUPERVISOR_GRACE_S)
        report = read_report(layout) or report  # it may have restarted a server meanwhile
    servers = [service.identity() for service in report.services.values()]
    alive = [identity for identity in servers if find(identity) is not None]
    stop(alive, max(kafka.GRACE_S, weaviate.GRACE_S))
    layout.run_file.unlink(missing_ok=True)
    return len(alive) + (1 if supervisor is not None else 0)


def down(home: Path | None = None, *, wipe: bool = False) -> bool:
    """Stop the stack; return whether anything was running.

    ``wipe`` also removes data, logs, the workers' state and the servers' passwords. Calling it again does nothing.
    Only what the stack and its workers wrote is removed, so keys and credentials stay, and the home itself goes only
    when empty.
    """
    layout = Layout(home_dir(home))
    if not layout.home.exists():
        return False
    with locked(layout):
        stopped = _sweep(layout) > 0
        shutil.rmtree(layout.config, ignore_errors=True)  # holds passwords; written anew at the next start
        if wipe:
            for directory in (layout.data, layout.logs, layout.workers):
                shutil.rmtree(directory, ignore_errors=True)
            layout.stack_file.unlink(missing_ok=True)
            layout.lock_file.unlink(missing_ok=True)
    if wipe and not any(layout.home.iterdir()):
        layout.home.rmdir()
    return stopped


def tail(layout: Layout, service: str, lines: int) -> str:
    """Return the last lines of a service's log, indented; a placeholder where it is empty."""
    try:
        with layout.log(service).open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    last = text.splitlines()[-lines:]
    return "\n".join(f"  | {line}" for line in last) or "  | (nothing)"
