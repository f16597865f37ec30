"""What goes wrong on purpose: workers and servers that stop, hang, die and come back."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import HOME_VARIABLE
from memsluice.devstack import control
from memsluice.devstack.control import SERVICES
from memsluice.errors import StackError
from memsluice.topics import names
from memsluice_lab.chaos.following import known, wait
from memsluice_lab.figures.bed import Bed, Worker

KAFKA, WEAVIATE = SERVICES
AGAIN_S_MAX = 120


@dataclass(slots=True)
class Nemesis:
    """Faults on one stack. Whatever hangs at the end goes on again with :meth:`close`."""

    bed: Bed
    _hanging: dict[int, str] = field(default_factory=dict)

    def pause(self, target: Worker | str) -> None:
        """Stop a worker, or a server by name, in the middle of whatever it does (SIGSTOP)."""
        pid = self._pid(target)
        self._hanging[pid] = str(target)
        psutil.Process(pid).send_signal(signal.SIGSTOP)

    def resume(self, target: Worker | str) -> None:
        """Let it go on as if nothing had happened (SIGCONT)."""
        pid = self._pid(target)
        psutil.Process(pid).send_signal(signal.SIGCONT)
        self._hanging.pop(pid, None)

    def kill_server(self, name: str) -> None:
        """Kill -9 a server, and wait until the supervisor has started it again and it answers."""
        before = self._pid(name)
        psutil.Process(before).kill()
        if not wait(lambda: self._answers(name, before), AGAIN_S_MAX, 0.5):
            raise StackError(f"{name} did not come back within {AGAIN_S_MAX} s")

    @contextmanager
    def server_down(self, name: str) -> Iterator[None]:
        """Keep a server down: it is killed, and who would start it again is held for as long.

        Raises StackError where it does not come back afterwards.
        """
        before, supervisor = self._pid(name), self._supervisor()
        self._hanging[supervisor] = "supervisor"
        psutil.Process(supervisor).send_signal(signal.SIGSTOP)
        try:
            psutil.Process(before).kill()
            yield
        finally:
            psutil.Process(supervisor).send_signal(signal.SIGCONT)
            self._hanging.pop(supervisor, None)
        if not wait(lambda: self._answers(name, before), AGAIN_S_MAX, 0.5):
            raise StackError(f"{name} did not come back within {AGAIN_S_MAX} s")

    def hang_server(self, name: str, seconds: float) -> None:
        """Let a server answer nobody for so long."""
        self.pause(name)
        try:
            time.sleep(seconds)
        finally:
            self.resume(name)

    def storm(self, stage: str, times: int) -> None:
        """Let workers of a stage join and die, one after the other, each as soon as its group knows it.

        Raises StackError where one never comes that far: then there was no storm.
        """
        for number in range(times):
            extra = self.bed.start(stage, replica=f"storm{number}")
            if not wait(lambda extra=extra: extra.replica in known(self.bed, names.GROUPS[stage]), AGAIN_S_MAX):  # type: ignore[misc]
                raise StackError(f"{stage} {extra.replica} did not join its group within {AGAIN_S_MAX} s")
            self.bed.kill(extra)

    def stepping(self, stage: str, environment: Mapping[str, str]) -> Worker:
        """Start one more worker of a stage, whose clock steps (:mod:`.stepping`)."""
        path = self.bed.home / "logs" / f"worker-{stage}-stepping.log"
        command = [sys.executable, "-m", "memsluice_lab.chaos.stepping", stage, "stepping"]
        variables = {**os.environ, HOME_VARIABLE: str(self.bed.home), **environment}
        with path.open("ab") as log:
            process = subprocess.Popen(
                command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        worker = Worker((stage,), "stepping", path, process)
        self.bed.workers.append(worker)
        return worker

    def close(self) -> None:
        """Let go on what hangs."""
        for pid in list(self._hanging):
            if psutil.pid_exists(pid):
                psutil.Process(pid).send_signal(signal.SIGCONT)
        self._hanging.clear()

    def _answers(self, name: str, before: int) -> bool:
        return any(
            one.name == name and one.state == "running" and one.pid != before for one in control.status(self.bed.home)
        )

    def _supervisor(self) -> int:
        report = control.read_report(Layout(self.bed.home))
        if report is None:
            raise StackError("no supervisor runs")
        return report.pid

    def memory(self) -> dict[str, int]:
        """Return what each server and worker occupies (RSS), in MiB, by name; those that are down are left out."""
        pids = {worker.stages[0]: worker.process.pid for worker in self.bed.workers}
        for name in SERVICES:
            with contextlib.suppress(StackError):
                pids[name] = self._pid(name)
        found = {}
        for name, pid in pids.items():
            with contextlib.suppress(psutil.Error):
                if rss := psutil.Process(pid).memory_info().rss:  # none once it is dead
                    found[name] = rss >> 20
        return found

    def _pid(self, target: Worker | str) -> int:
        if isinstance(target, Worker):
            return target.process.pid
        report = control.read_report(Layout(self.bed.home))
        service = report.services.get(target) if report is not None else None
        if service is None or not service.pid:
            raise StackError(f"no server {target!r} runs")
        return service.pid
