"""How many keys a reviewer presses for a hundred held writes at the desk, beside the same decisions by command."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from memsluice.client.build import build, topic_of
from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.deployment.paths import HOME_VARIABLE
from memsluice.encoder import load_encoder
from memsluice.envelope.registry import Role
from memsluice.errors import StateError
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.held import desk as desks
from memsluice.operations.held.commands import shown
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.runtimes.assembly import Assembly
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.desk.consoles import chromium, enrolled, enter
from memsluice_lab.desk.homes import holding
from memsluice_lab.figures.desk_session import VIEWPORT, Session
from memsluice_lab.figures.desk_writes import TENANT, Planted, judge, payloads, planted
from memsluice_lab.figures.registry import Measured, Setting

DEPENDS = ("memsluice.cli.main", "memsluice.cli.console", "memsluice.cli.held.quarantine")
"""The commands that are run; the command tree is read by name, so imports do not show it."""
GROUPS, WRITES = 12, 100
START = ("-c", "from memsluice.cli.main import app; app()")
"""What the installed script runs."""
SETTINGS = "requests_per_s = 10000\nrequests_at_once = 10000\n"
"""The script reads a page in no time, and so asks more often than a person can."""
STARTS_S_MAX = 600
ANSWERS = "y\n"
ALONE = 12
"""Writes that are decided one by one by command; each is a command of its own, and takes as long as any other."""
_BECOMES = {"release": "released", "reject": "rejected"}
_MARKS = re.compile(r"\W+")


def desk_actions_per_100(setting: Setting) -> Measured:
    """Return how many keys and clicks one reviewer needed for a hundred held writes. Raises StateError where a decision
    did not reach the gate, or was about a write whose content had not stood on the screen."""
    with tempfile.TemporaryDirectory(prefix="memsluice-desk-") as folder:
        home = Path(folder) / "browser"
        prepare(home)
        copies = {name: Path(folder) / name for name in ("groups", "entries")}
        for copy in copies.values():
            shutil.copytree(home, copy)
            issue_credential(KeyStore(copy), Role.REVIEWER, "operator", [TENANT])
        groups = _groups(home)
        setting.say(f"the gate holds {WRITES} writes, in {len(groups)} groups")
        sitting = _at_the_desk(home)
        setting.say(f"the desk: {sitting.actions} actions, {sitting.seconds:.1f} s")
        check(sitting, states(home))
        by_group = _by_group(copies["groups"], groups)
        _same(states(copies["groups"]))
        setting.say(f"by command and group: {len(by_group.commands)} commands, {by_group.seconds:.0f} s")
        one_by_one = _one_by_one(copies["entries"])
    return Measured(float(sitting.actions), _rows(sitting, len(groups), by_group, one_by_one), (_NOTE,))


def _rows(sitting: Session, groups: int, by_group: "Typed", one_by_one: "Typed") -> tuple[tuple[str, str], ...]:
    lengths = sorted(len(one.text) for one in planted())
    decided = f"{len({one.event_id for one in sitting.decided})} decided as planned, {len(sitting.decided)} seen whole"
    return (
        ("held writes; groups; characters", f"{WRITES}; {groups}; {lengths[0]} to {lengths[-1]}"),
        ("desk: keys; clicks; seconds", f"{sitting.keys}; {sitting.clicks}; {sitting.seconds:.1f}"),
        ("desk: pages that were decided on; of these one by one", f"{sitting.pages}; {sitting.one_by_one}"),
        ("desk: what the gate and the witness say", decided),
        ("commands by group: commands; keys; seconds", by_group.told()),
        (f"commands one by one, {ALONE} of the writes and the list: commands; keys; seconds", one_by_one.told()),
    )


_NOTE = (
    "Real: a gate that held the writes in an embedded home, the console in a process of its own, Chromium, a key of "
    "its own that was enrolled, and a script that presses keys by a person's rules: what was on the screen whole is "
    "decided, a page as one where all its texts deserve the same, else write by write. A witness apart from the page's "
    "scripts reckons by each frame's geometry what was in view. Nobody's reading takes time here, on either side. "
    "Logging in is not counted. The commands are given on copies of the same home, each typed whole and confirmed by y "
    "and Enter; by group means one list, one command for each group whose texts deserve the same, and for every other "
    "one look and one command for each decision, with the ids typed. In an embedded home a command runs the gate "
    "itself, which starts anew with each of them; on a stack the workers do."
)


def prepare(home: Path) -> None:
    """Have a gate hold the planted writes in a new home."""
    assembly, place = Assembly.at(Home(home)), Home(home)
    place.policy_file.parent.mkdir(parents=True, exist_ok=True)
    place.policy_file.write_text(holding(), encoding="utf-8")
    (home / "console.toml").write_text(SETTINGS, encoding="utf-8")
    issue_credential(assembly.keys, Role.USER_CHANNEL, "user", [TENANT], kid="user")
    signer, store = assembly.keys.credential("user").signer(), assembly.local_store()
    runtime = assembly.embedded(MemoEncoder(load_encoder()), store)
    for write in payloads(datetime.now(UTC)):
        message = build(write, [signer], source="urn:figure")
        runtime.append(topic_of(write), message.key, message.value, message.headers, append_ms=wall_ms())
    runtime.run_until_idle()
    runtime.close()
    store.close()


@contextmanager
def _index(home: Path) -> Iterator[ReviewIndex]:
    with ExitStack() as closing, ReviewIndex.open(home) as index:
        index.feed(desks.embedded(Home(home), closing))
        yield index


def states(home: Path) -> dict[str, str]:
    """Return what became of each held write, as the topics say."""
    with _index(home) as index:
        rows = index.page(HeldQuery.parse("state:any"), tenants=None, limit=10 * WRITES).rows
    return {row.event_id: row.state.value for row in rows}


def _groups(home: Path) -> dict[str, list[Planted]]:
    """Return the members of each group. Raises StateError where the gate held other writes, or groups are missing."""
    known = {one.event_id: one for one in planted()}
    found: dict[str, list[Planted]] = defaultdict(list)
    with _index(home) as index:
        for row in index.page(HeldQuery.parse("state:pending"), tenants=None, limit=10 * WRITES).rows:
            found[row.group].append(known.pop(row.event_id))
    if known or len(found) != GROUPS:
        raise StateError(f"the gate held all but {len(known)} writes, in {len(found)} groups: these are to be {GROUPS}")
    return dict(found)


def check(sitting: Session, came: dict[str, str]) -> None:
    """Raise StateError where a write was not decided once, as planned and seen, or the gate did otherwise."""
    _same(came)
    left = {one.event_id: one for one in planted()}
    for made in sitting.decided:
        one = left.pop(made.event_id, None)
        if one is None or made.action != one.deserves or made.shown != shown(one.text):
            raise StateError(f"the desk sent a command about {made.event_id} that nobody planned, or sent it twice")
        if not made.seen:
            raise StateError(f"{made.event_id} was decided, and its content had not stood on the screen whole")
    if left:
        raise StateError(f"the desk sent no command about {len(left)} writes")


def _same(came: dict[str, str], those: Sequence[Planted] | None = None) -> None:
    """Raise StateError where one of those writes (None: of all) did not become what it deserves."""
    wanted = {one.event_id: _BECOMES[one.deserves] for one in those or planted()}
    wrong = sorted(name for name in wanted if came.get(name) != wanted[name])
    if wrong:
        raise StateError(
            f"{len(wrong)} writes are not as they were decided, {wrong[0]} among them: {came.get(wrong[0])}"
        )


def _at_the_desk(home: Path) -> Session:
    with _console(home) as url, chromium() as browser, browser.new_context() as context:
        page = context.new_page()
        page.set_viewport_size(VIEWPORT)
        enrolled(page, url, KeyStore(home), "ana", Role.REVIEWER, (TENANT,))
        enter(page, url)
        sitting = Session(page, judge)
        sitting.clear(url)
    return sitting


@contextmanager
def _console(home: Path) -> Iterator[str]:
    """Give the address of a console in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (home / "console.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *START, "console", "--port", str(port), "--home", str(home)], stdout=log, stderr=log
        )
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + STARTS_S_MAX
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise StateError(f"the console did not come up: {(home / 'console.log').read_text()[-800:]}")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/livez", timeout=5):  # noqa: S310 - an address of our own
            return True
    except OSError:
        return False


@dataclass(slots=True)
class Typed:
    """Commands that were given in one home, with the keys that typing them takes, and how long they ran."""

    home: Path
    commands: list[str] = field(default_factory=list)
    keys: int = 0
    seconds: float = 0.0

    def give(self, *words: str, answer: str = "") -> str:
        """Run ``memsluice quarantine``, and return what it prints. Raises StateError where it fails."""
        typed = " ".join(("memsluice", "quarantine", *words))
        self.commands.append(typed)
        self.keys += len(typed) + 1 + len(answer)
        environment = {**os.environ, HOME_VARIABLE: str(self.home), "COLUMNS": "160", "NO_COLOR": "1"}
        began = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, *START, "quarantine", *words],
            input=answer, capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        self.seconds += time.perf_counter() - began
        if ran.returncode != 0:
            raise StateError(f"{typed} ended with {ran.returncode}: {ran.stderr[-400:] or ran.stdout[-400:]}")
        return ran.stdout

    def told(self) -> str:
        """Return commands, keys and seconds, as a row has them."""
        return f"{len(self.commands)}; {self.keys}; {self.seconds:.0f}"


def _by_group(home: Path, groups: dict[str, list[Planted]]) -> Typed:
    """Decide group by group: what deserves the same by the group's id, else by the ids of those that do."""
    typed = Typed(home)
    typed.give("groups")
    for group, members in groups.items():
        deserved = defaultdict(list)
        for one in members:
            deserved[one.deserves].append(one)
        if len(deserved) == 1:
            _read(typed.give(next(iter(deserved)), "--group", group, answer=ANSWERS), members)
            continue
        typed.give("groups", group)
        for action, those in deserved.items():
            _read(typed.give(action, *(one.event_id for one in those), answer=ANSWERS), those)
    return typed


def _one_by_one(home: Path) -> Typed:
    """Decide some of the writes of every theme, each by a command of its own."""
    typed, those = Typed(home), list(planted())[:: WRITES // ALONE][:ALONE]
    typed.give("list", "--limit", str(WRITES))
    for one in those:
        _read(typed.give(one.deserves, one.event_id, answer=ANSWERS), [one])
    _same(states(home), those)
    return typed


def _read(printed: str, those: list[Planted]) -> None:
    """Raise StateError where a command did not print each text whole before it asked; however it breaks lines."""
    letters = _MARKS.sub("", printed)
    for one in those:
        if _MARKS.sub("", one.text) not in letters:
            raise StateError(f"{one.event_id} was decided by a command that did not print it whole")
