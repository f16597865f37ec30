"""What all tests share: the real broker and the real store, that CI skips nothing, and what needs a GPU
or a disk of its own."""

import os
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from tests.administration import be_patient
from tests.command import working
from tests.devstack.small_disk import may_mount
from tests.patience import unhurry
from tests.preloaded.serving import Server, serving

from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.devstack import control
from memsluice.devstack.bringup import bring_up

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
"""As an encoder that is loaded sets it where torch is not imported yet; test modules import torch before."""
settings.register_profile("patient", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow]))
settings.load_profile("patient")  # what it does not name is as it was: where CI is set, always the same examples
TEST_HOME_VARIABLE = "MEMSLUICE_TEST_HOME"
"""Home of a stack to use, and to leave running; without it the session starts its own and wipes it."""
PATIENT_MS = 240_000
"""How long a page may take to do what is expected of it (Playwright: 5 s, and 30 s): a guard against hangs alone."""
control.READY_TIMEOUT_S = 600.0  # a stack that starts beside the other parts of the tests takes minutes

OPTIONAL = ("MEMSLUICE_DATA",)
"""What a test may be skipped for in CI: the README says that these are optional."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m stack`` no file is imported that does not speak of it: with all of them it takes minutes."""
    if config.option.markexpr != "stack" or not collection_path.name.startswith("test_") or collection_path.is_dir():
        return None
    return None if _speaks_of_the_stack(collection_path) else True


@cache
def _speaks_of_the_stack(file: Path) -> bool:
    return re.search(r"\b(stack|workers)\b", file.read_text(encoding="utf-8")) is not None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever takes the stack needs it: a mark that was forgotten would start a second one in the other half, and a
    file that does not speak of it is not found by those who ask for these tests."""
    if "stack" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.stack)
    if item.get_closest_marker("stack") and not _speaks_of_the_stack(item.path):
        raise pytest.UsageError(f"{item.nodeid} needs the real stack, and its file does not say so: name it there")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share the workers come last, one after the other: no other test runs beside these workers. Tests of a
    GPU, and of a disk that is filled, are deselected, and counted as such, where there is none or none may be mounted.
    """
    for marker, there in (("gpu", _has_gpu), ("mounts", may_mount)):
        if (marked := [item for item in items if item.get_closest_marker(marker)]) and not there():
            items[:] = [item for item in items if item not in marked]
            config.hook.pytest_deselected(items=marked)
    items.sort(key=lambda item: "workers" in getattr(item, "fixturenames", ()))


def _has_gpu() -> bool:
    import torch  # seconds: only where such a test was collected

    return torch.cuda.is_available()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one: what does not run there protects nothing."""
    return _refuse_skips((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file that is skipped while it is collected."""
    return _refuse_skips((yield))


def _refuse_skips(report: Report) -> Report:
    if report.skipped and os.environ.get("CI") and isinstance(report.longrepr, tuple):
        file, line, reason = report.longrepr
        if not any(name in reason for name in OPTIONAL):
            report.outcome = "failed"
            report.longrepr = f"{file}:{line}: skipped, which CI refuses: {reason}"
    return report


@dataclass(frozen=True)
class Stack:
    home: Path
    connection: Connection


def brought_up(home: Path) -> Connection:
    """Bring a stack up, however long the machine takes for it."""
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        return bring_up(home)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """A running Kafka and Weaviate with topics, access rules and roles in force."""
    if given := os.environ.get(TEST_HOME_VARIABLE):
        home = Path(given).expanduser().resolve()
        was_running = control.is_running(Layout(home))
        yield Stack(home, brought_up(home))
        if not was_running:
            control.down(home)
        return
    home = Path(tempfile.mkdtemp(prefix="memsluice-test-"))  # not tmp_path: pytest would keep the data of three runs
    try:
        yield Stack(home, brought_up(home))
    finally:
        control.down(home, wipe=True)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the commands and clients of this process wait for broker and store as long as a busy machine takes."""
    unhurry(monkeypatch)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, for a test that administers the stack, too."""
    be_patient(monkeypatch)


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Server]:
    """What starts ``memsluice`` without the seconds of its imports."""
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def workers(stack: Stack) -> Iterator[None]:
    """All stages in one worker, for tests that keep apart by tenant; who kills or pauses workers starts its own."""
    with working(str(stack.home)):
        yield


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """Give the browser of this machine, for one file of tests: while it is driven, no loop can be run by others."""
    from playwright.sync_api import Browser, expect

    from memsluice_lab.desk import consoles

    new_context = Browser.new_context

    def patient(browser: "Browser", **options: Any) -> "BrowserContext":
        context = new_context(browser, **options)
        context.set_default_timeout(PATIENT_MS)
        return context

    expect.set_options(timeout=PATIENT_MS)
    with pytest.MonkeyPatch.context() as patch, consoles.chromium() as browser:
        patch.setattr(Browser, "new_context", patient)
        yield browser
    expect.set_options(timeout=None)
