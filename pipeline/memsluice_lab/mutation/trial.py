"""``python -m memsluice_lab.mutation.trial``: runs tests on request, each request in a child of its own.

Starting Python with everything that the tests import takes seconds, and a mutant takes one start each. So this process
imports what is not ours once, and a child that is forked from it imports ours, with whatever was planted there.
Requests and answers are lines of JSON.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from typing import Any

import pytest
from hypothesis import settings

MEMORY_MAX = 6 * 1024**3
PASSED, FAILED, TIMEOUT = "passed", "failed", "timeout"


class _Chosen:
    """Runs just these tests, in this order."""

    def __init__(self, tests: list[str]) -> None:
        self._order = {test: at for at, test in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep those that were asked for."""
        items[:] = sorted((item for item in items if item.nodeid in self._order), key=lambda i: self._order[i.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember which one failed."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


def unhurried() -> None:
    """Let no property fail for the time that an example takes: several tests run side by side here."""
    settings.register_profile("mutation", deadline=None, database=None, derandomize=True)
    settings.load_profile("mutation")


def main() -> None:
    """Import what is named first; then answer requests until there are none."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in json.loads(sys.stdin.readline()):
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(request["tests"], writer)
    os.close(writer)
    status = _wait(child, began + request["limit_s"])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # whatever the tests started
    with os.fdopen(reader, encoding="utf-8") as said:
        by = said.read()
    unnoticed = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    outcome = TIMEOUT if status is None else PASSED if os.waitstatus_to_exitcode(status) in unnoticed else FAILED
    return {"outcome": outcome, "by": by, "took_s": time.monotonic() - began}


def _wait(child: int, until: float) -> int | None:
    """Return how a child ended, None where it had to be ended."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run(tests: list[str], writer: int) -> None:
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
        if log := os.environ.get("MUTATION_LOG"):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
        os.dup2(1, 2)
        unhurried()
        chosen = _Chosen(tests)
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        options = ["-x", "-p", "no:cacheprovider", "-m", "not stack"]
        code = int(pytest.main([*options, *files], plugins=[chosen]))
        os.write(writer, chosen.failed.encode())
    except BaseException:
        code = 1
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
