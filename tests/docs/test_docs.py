"""What the documentation shows is run, and what it links to is there."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.command import STOPPED
from tests.preloaded.serving import Server

from memsluice.clock import wall_ms
from memsluice.deployment.paths import cache_dir
from memsluice.devstack.ports import pick
from memsluice.envelope.registry import Role
from memsluice.keystore.store import KeyStore, issue_credential

sys.path.insert(0, str(Path(__file__).parent))
from blocks import Block, agrees, blocks
from interpreter import interpreter

TOP = Path(__file__).resolve().parents[2]
PAGES = [*sorted(TOP.glob("*.md")), *sorted((TOP / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if any(not (block.not_run or block.on_stack) for block in blocks(page))]
ON_STACK = [page for page in PAGES if any(block.on_stack for block in blocks(page))]
BESIDE = ("memsluice work", "prometheus ")
"""How a block begins that starts a server."""
PORTS = ("9464", "9090")
"""Ports that pages name for such servers; the tests put free ones in their place."""
PATIENCE = {"result(timeout=10)": "result(timeout=240)", "flush(10)": "flush(240)", "--wait 120": "--wait 600"}
"""What pages wait for a broker, or for the gate's answer; the tests wait longer in their place."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _id(page: Path) -> str:
    return str(page.relative_to(TOP))


def _run(block: Block, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    bash = block.language == "bash"
    command = ["bash", "-euo", "pipefail", "-c", block.text] if bash else [sys.executable, "-c", block.text]
    return subprocess.run(
        command, cwd=TOP, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900
    )


@pytest.mark.parametrize("page", WITH_CODE, ids=_id)
def test_code_blocks_run_and_print_what_is_shown(page: Path, tmp_path: Path, preloaded: Server) -> None:
    """Every bash and python block of a page runs as shown, from the repository's top, and prints what is shown."""
    environment = {
        **os.environ,
        "MEMSLUICE_HOME": str(tmp_path / "home"),
        **preloaded.variables(f"{Path(sys.executable).parent}:{os.environ['PATH']}"),
        "NO_COLOR": "1",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TESTING": "true",
    }
    if page.name == "crewai.md":  # CrewAI writes into the user's folders
        environment |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    with interpreter(preloaded, TOP, environment) as python:
        for block in [block for block in blocks(page) if not (block.not_run or block.on_stack)]:
            result = python.run(block.text) if block.language == "python" else _run(block, environment)
            where = f"{_id(page)}:{block.line}"
            assert result.returncode == 0, f"{where}\n{result.stdout}\n{result.stderr}"
            if block.prints is not None:
                assert agrees(block.prints, result.stdout), f"{where} printed\n{result.stdout}"


@pytest.mark.stack
@pytest.mark.parametrize("page", ON_STACK, ids=_id)
def test_code_blocks_run_on_the_real_stack(page: Path, stack: Any, preloaded: Server) -> None:
    """What a page shows of the real stack works there, in the order shown; a server's block runs on beside the others.

    Prometheus may lie in the cache, where scripts/fetch-promtool puts it.
    """
    environment = {
        **os.environ,
        "MEMSLUICE_HOME": str(stack.home),
        **preloaded.variables(f"{Path(sys.executable).parent}:{os.environ['PATH']}:{cache_dir()}"),
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }
    needs = {block.text.split()[0] for block in blocks(page) if block.on_stack and block.text.startswith(BESIDE)}
    for program in sorted(needs):
        if shutil.which(program, path=environment["PATH"]) is None:
            pytest.skip(f"needs {program}: Debian package {program}, or scripts/fetch-promtool")
    ports = pick(PORTS, {})
    servers: list[subprocess.Popen[bytes]] = []
    with ExitStack() as left_running:
        for block in [_patient(_with_ports(block, ports)) for block in blocks(page) if block.on_stack]:
            if block.text.startswith(BESIDE):
                servers.append(left_running.enter_context(_beside(block, environment)))
                continue
            if block.language == "python":
                _newer_credentials_of_others(stack.home)
            _until_it_prints(block, environment, f"{_id(page)}:{block.line}", servers)


def _with_ports(block: Block, ports: dict[str, int]) -> Block:
    return replace(block, text=re.sub("|".join(ports), lambda found: str(ports[found[0]]), block.text))


def _patient(block: Block) -> Block:
    """Let a block wait as long as a busy machine needs for what comes within seconds elsewhere."""
    text = block.text
    for shown, waits in PATIENCE.items():
        text = text.replace(shown, waits)
    return replace(block, text=text)


def _newer_credentials_of_others(home: Path) -> None:
    """Put into the home what a demo, or a second tenant, puts there: code that names no tenant would sign as theirs."""
    keys = KeyStore(home)
    for role in (Role.RUNTIME, Role.PRODUCER, Role.READER):
        issue_credential(keys, role, "agent", ["somebody-else"], now_ms=wall_ms())


@contextmanager
def _beside(block: Block, environment: dict[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a server until the others are through, and stop it as an operator would."""
    worker = subprocess.Popen(
        ["bash", "-c", f"exec {block.text}"], cwd=TOP, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield worker
    finally:
        worker.terminate()
        assert worker.wait(240) in STOPPED


def _until_it_prints(
    block: Block, environment: dict[str, str], where: str, servers: "list[subprocess.Popen[bytes]]"
) -> None:
    """Run a block; where it shows the result of an asynchronous pipeline, again until that is there (a hang guard)."""
    deadline = time.monotonic() + 480
    first: str | None = None  # a command that may be given once says something else when it is given again
    while True:
        assert [server.poll() for server in servers] == [None] * len(servers), f"{where}: a server ended: {servers}"
        result = _run(block, environment)
        done = result.returncode == 0 and (block.prints is None or agrees(block.prints, result.stdout))
        if done:
            return
        assert block.prints is not None, f"{where}\n{result.stdout}\n{result.stderr}"
        told = f"{result.stdout}\n{result.stderr}"
        first = told if first is None else first
        assert time.monotonic() < deadline, f"{where} printed at first\n{first}\nand at last\n{told}"
        time.sleep(1.0)


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the repository leads to one, and one to a heading to a heading."""
    broken = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            broken.append(target)
    assert not broken


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_site_builds_and_has_every_page(tmp_path: Path) -> None:
    """A page that the navigation forgets, or an anchor that leads nowhere, fails the build."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    result = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    navigation = (TOP / "mkdocs.yml").read_text()
    assert not [page.name for page in (TOP / "docs").glob("*.md") if page.name not in navigation]


def test_generated_pages_are_current() -> None:
    """Pages made from files of the repository are made from the files that are there now."""
    result = subprocess.run(
        [sys.executable, "scripts/generate_docs.py", "--check"], cwd=TOP, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_block_that_is_not_run_says_why(tmp_path: Path) -> None:
    """A block is left out only with a reason, and the runner itself tells right output from wrong."""
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: needs a broker -->\n```bash\nfalse\n```\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n"
    )
    left_out, shown = blocks(page)
    assert left_out.not_run == "needs a broker"
    assert shown.prints == "1\n"
    assert agrees("1 …\n", "1 of 2\n")
    assert not agrees("1\n", "2\n")


def test_the_python_blocks_of_a_page_share_names_and_one_that_fails_is_told(
    tmp_path: Path, monkeypatch: Any, preloaded: Server
) -> None:
    """A block sees what the ones before it made, its output is its own, and neither an error nor a hang passes."""
    with interpreter(preloaded, tmp_path, os.environ) as python:
        assert python.run("word = 'tea'\nprint('first')").stdout == "first\n"
        assert python.run("print(word, end='')").stdout == "tea"
        raised = python.run("print('before')\nraise ValueError('why')")
        assert (raised.returncode, raised.stdout) == (1, "before\n")
        assert "ValueError: why" in raised.stderr
        monkeypatch.setattr("interpreter.HANG_GUARD_S", 0.5)
        assert python.run("import time; time.sleep(60)").returncode == -9
