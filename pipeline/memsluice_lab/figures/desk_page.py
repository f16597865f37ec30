"""What a page of the review desk costs among a hundred thousand held writes, beside plain reads of the same size."""

import http
import http.client
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

import orjson
import yaml

from memsluice.client import requests
from memsluice.client.build import build, topic_of
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.console.logins import signed_bytes
from memsluice.deployment.home import Home
from memsluice.deployment.local_log import LocalLog
from memsluice.encoder import load_encoder
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import held_from_bytes, held_to_bytes
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Position, Sealed, payload_digest, sealed_from_bytes, sealed_to_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import StateError
from memsluice.events.models import Write
from memsluice.events.records import Output, Record
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.held import desk as desks
from memsluice.operations.held.entries import read_entry
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.assembly import Assembly
from memsluice.topics.names import QUARANTINE
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

DEPENDS = ("memsluice.cli.console",)
"""The command that is measured; the command tree is read by name, so imports do not show it."""
HELD, TEXTS, PAGE, ROUNDS, WARM = 100_000, 400, 50, 60, 5
TENANTS = tuple(f"desk-{number}" for number in range(8))
REVIEWER = "reviewer"
SPREAD_MS = 800
"""Between one held write and the next: all of them within a day."""
BATCH = 2_000
STARTS_S_MAX = 600
ANSWER_S_MAX = 60
GROWS_MIB_MAX = 128
"""What all the pages that are opened may add to the memory of the console: nothing that grows with what is held."""
POLICY = {"name": "desk", "writes_per_day": {"user_observed": 1}, "quarantine": {"per_principal_max": 100_000}}
"""Holds all but the first write of each person, for its rate."""


def desk_page_ratio(setting: Setting, count: int = HELD) -> Measured:
    """Return the median time of a page of the console over that of a plain read of as many records, taking turns.

    Raises StateError where a page does not show what it should, or the console does not come up.
    """
    with streams(setting) as paths, tempfile.TemporaryDirectory(prefix="memsluice-desk-") as folder:
        lines = [line for path in paths for line in read_stream(path)]
        texts = list(dict.fromkeys(str(line["text"]) for line in lines if line["kind"] == "write"))
        home = Path(folder) / "home"
        store = _many(home, texts[:: max(1, len(texts) // TEXTS)][:TEXTS], count, setting)
        fed_s, file_mib = _fed(home, count)
        setting.say(f"{count:,} held writes are in the index after {fed_s:.0f} s")
        with _console(home, store, count, setting) as console, _Plain(home) as plain:
            asked: dict[str, Callable[[], int]] = {
                "page": console.page, "later page": console.later, "groups": console.groups, "index": plain.index,
                "topic": plain.topic, "sql": plain.sql,
                "anew": plain.anew,
            }  # fmt: skip
            before_mib, times, mib = console.mib(), _taking_turns(asked), console.mib()
    if mib - before_mib > GROWS_MIB_MAX:
        raise StateError(f"the console grew from {before_mib:.0f} to {mib:.0f} MiB, {GROWS_MIB_MAX} more are allowed")
    topic, sql = median(times["topic"]), median(times["sql"])
    rows = [("held writes; different texts; a page", f"{count:,}; {TEXTS}; {PAGE}")]
    rows += [
        (told, f"{_spread(times[name])}; {median(times[name]) / topic:.2f} x, {median(times[name]) / sql:.1f} x SQL")
        for name, told in (
            ("topic", "plain: the newest records read from the topic, verified, decoded"),
            ("sql", "plain: the newest waiting rows of one table by SQL"),
            ("index", "the index's page, in this process"),
            ("page", "the console's page over HTTP, rendered"),
            ("later page", "a page in the middle of the list over HTTP"),
            ("groups", "the page of groups over HTTP"),
            ("anew", "counting all entries anew, as the first page after a change does"),
        )
    ]
    rows += [
        ("the index is filled once, then kept", f"{fed_s:.0f} s; {file_mib:.0f} MiB on disk"),
        ("memory of the console before its first page; after all of them", f"{before_mib:.0f}; {mib:.0f} MiB"),
    ]
    return Measured(median(times["page"]) / topic, tuple(rows), (_NOTE,))


_NOTE = (
    "Real: records that the gate sealed and held, under other ids, in an embedded log; the console in a process of its "
    "own, asked over HTTP by somebody who logged in with his key and sees all tenants. Its page also has the values to "
    "filter by with their counts, which are kept until an entry changes; nothing changes while this is measured: the "
    "row of counting anew is to be added where writes are held all the time."
)


def _many(home: Path, texts: Sequence[str], count: int, setting: Setting) -> KeyStore:
    """Fill a home's quarantine with held writes: those that a real gate held, sealed again under other ids."""
    assembly = Assembly.at(Home(home))
    policy = Home(home).policy_file
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(yaml.safe_dump(POLICY), encoding="utf-8")
    issue_credential(assembly.keys, Role.USER_CHANNEL, "user", list(TENANTS), kid="user")
    issue_credential(assembly.keys, Role.REVIEWER, "operator", ["*"], kid=REVIEWER)
    signer, store = assembly.keys.credential("user").signer(), assembly.local_store()
    runtime = assembly.embedded(MemoEncoder(load_encoder()), store)
    for number, text in enumerate(["The first one lands."] * len(TENANTS) + list(texts)):
        session = Session(TENANTS[number % len(TENANTS)], "helper", "ana", f"s-{number % 50}")
        write = requests.write(f"w-{number}", datetime.now(UTC), session, text[:2_000] or "-", {})
        message = build(write, [signer], source="urn:figure")
        runtime.append(topic_of(write), message.key, message.value, message.headers, append_ms=wall_ms())
    runtime.run_until_idle()
    runtime.close()
    store.close()
    keyring = assembly.keys.keyring()
    log = LocalLog(Home(home).log_file, durable=False)
    examples = [(one, *_read(keyring, one)) for one in log.read(QUARANTINE)]
    setting.say(f"{len(examples)} writes were held by the gate")
    if len(examples) < len(texts) // 2:
        raise StateError(f"the gate held {len(examples)} of {len(texts)} writes: too few to stand for others")
    began_ms, numbered = wall_ms() - count * SPREAD_MS, enumerate(islice(cycle(examples), count - len(examples)))
    while chunk := list(islice(numbered, BATCH)):
        with log.transaction():
            for number, example in chunk:
                log.put(_again(keyring, *example, number, began_ms), began_ms + number * SPREAD_MS)
    log.close()
    return assembly.keys


def _read(keyring: Keyring, record: Record) -> tuple[Sealed, Verdict]:
    tenant = (record.key or b"").decode()
    value, verdict = held_from_bytes(keyring, tenant, record.value or b"")
    return sealed_from_bytes(keyring, tenant, value), verdict


def _again(
    keyring: Keyring, record: Record, sealed: Sealed, verdict: Verdict, number: int, began_ms: int
) -> Output:  # fmt: skip
    """Return the record of another write of the same text, sealed by the same keys."""
    assert isinstance(sealed.payload, Write)
    name, at_ms, offset = f"n-{number:06}", began_ms + number * SPREAD_MS, 1_000_000 + number
    payload = sealed.payload.model_copy(update={"id": name, "session": f"s-{number % 997}"})
    position = Position(sealed.position.topic, sealed.position.partition, offset, at_ms)
    other = replace(sealed, payload=payload, payload_digest=payload_digest(keyring, payload), position=position)
    told = replace(verdict, event_id=name, session=payload.session, decided_ms=at_ms, append_ms=at_ms, offset=offset)
    tenant, kid = payload.tenant, verdict.seal_kid
    held = held_to_bytes(keyring, kid, tenant, sealed=sealed_to_bytes(keyring, kid, other), verdict=told)
    return Output(QUARANTINE, record.partition, record.key, held, record.headers)


def _fed(home: Path, count: int) -> tuple[float, float]:
    """Fill the index by its own feeding; return the seconds that it took and the MiB that it has."""
    from contextlib import ExitStack

    began = time.monotonic()
    with ExitStack() as closing, ReviewIndex.open(home) as index:
        index.feed(desks.embedded(Home(home), closing))
        found = index.counts(tenants=None)
        if found.states["pending"] != count or found.unverified:
            raise StateError(f"the index has {found.states}, {found.unverified} records did not verify")
        files = home.glob("desk.sqlite3*")
        return time.monotonic() - began, sum(file.stat().st_size for file in files) / 2**20


class _Plain:
    """Reads as anybody would who has the topic, or a table, and no desk."""

    def __init__(self, home: Path) -> None:
        self._home, self._index = home, ReviewIndex.open(home)
        self._log = LocalLog(Home(home).log_file, reading=True)
        self._topic = LocalTopic(self._log, topic=QUARANTINE)
        self._keyring = KeyStore(home).keyring()
        self._table = sqlite3.connect(home / "desk.sqlite3")
        with ReviewIndex.open(home) as index:
            newest = index.page(HeldQuery(), tenants=None, limit=PAGE).rows
        self._partitions = sorted({row.seen.entry.partition for row in newest})

    def __enter__(self) -> "_Plain":
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()
        self._log.close()
        self._index.close()

    def index(self) -> int:
        """Return how many entries the index's page has."""
        return len(self._index.page(HeldQuery(), tenants=None, limit=PAGE).rows)

    def topic(self) -> int:
        """Read as many of the newest records from their partitions, verify and decode them."""
        each, found = -(-PAGE // len(self._partitions)), 0
        for partition in self._partitions:
            for record in islice(self._topic.read(partition, self._topic.end(partition) - each), each):
                found += len(read_entry(self._keyring, record, whole=True).preview) > 0
        return found

    def anew(self) -> int:
        """Count the entries as if something had changed."""
        with ReviewIndex.open(self._home) as index:
            return sum(index.counts(tenants=None).states.values())

    def sql(self) -> int:
        """Read as many rows of one table, the newest that wait."""
        asked = (
            "SELECT tenant, event_id, held_ms, reasons, score, channel, principal, session, preview FROM entries "
            "WHERE state = 'pending' AND until_ms > ? ORDER BY held_ms DESC LIMIT ?"
        )
        return len(self._table.execute(asked, (wall_ms(), PAGE)).fetchall())


class _Console:
    """A running console, and a browser's connection to it."""

    def __init__(self, port: int, process: "subprocess.Popen[str]", count: int) -> None:
        self._process, self._count = process, count
        self.origin = f"http://127.0.0.1:{port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S_MAX)
        self._headers = {"Accept": "text/html"}
        self._middle = ""

    def close(self) -> None:
        """Let the connection go; the next question opens another."""
        self._connection.close()

    def log_in(self, store: KeyStore) -> None:
        """Log in as the browser's script does."""
        page = self._ask("GET", "/login")
        challenge = re.search(r'data-challenge="([^"]+)"', page)
        if challenge is None:
            raise StateError("the console's login page has no challenge")
        signature = store.credential(REVIEWER).signer().sign(signed_bytes(self.origin, REVIEWER, challenge[1]))
        said = {"kid": REVIEWER, "challenge": challenge[1], "signature": b64encode(signature).decode()}
        self._headers |= {"Origin": self.origin, "Content-Type": "application/json"}
        self._ask("POST", "/login", orjson.dumps(said))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> str:
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.status != http.HTTPStatus.OK:
            raise StateError(f"the console answered {answer.status} to {path}")
        if cookie := answer.headers["Set-Cookie"]:
            self._headers["Cookie"] = cookie.partition(";")[0]
        return text

    def page(self) -> int:
        """Open the first page of entries."""
        text = self._ask("GET", "/held/entries")
        if not self._middle and (after := re.search(r"after=([0-9.]+)", text)):
            held_ms, rest = after[1].split(".", 1)
            self._middle = f"{int(held_ms) - self._count // 2 * SPREAD_MS}.{rest}"
        return _entries(text)

    def later(self) -> int:
        """Open a page in the middle."""
        return _entries(self._ask("GET", f"/held/entries?after={self._middle}"))

    def groups(self) -> int:
        """Open the first page of groups."""
        return len(set(re.findall(r"/held/groups/[0-9a-f]{16}", self._ask("GET", "/held"))))

    def mib(self) -> float:
        """Return the memory of its process."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1_024


def _entries(page: str) -> int:
    """Return how many entries a page links to."""
    return len(set(re.findall(r'href="(/held/entries/[^"/]+/[^"]+)"', page)))


@contextmanager
def _console(home: Path, store: KeyStore, count: int, setting: Setting) -> Iterator[_Console]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "memsluice.cli.main", "console", "--port", str(port), "--home", str(home)]
    with (home / "console.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log, text=True)
    try:
        console, deadline = _Console(port, process, count), time.monotonic() + STARTS_S_MAX
        while True:
            try:
                console.log_in(store)
                break
            except OSError:
                console.close()
                if process.poll() is not None or time.monotonic() > deadline:
                    raise StateError(
                        f"the console did not come up: {(home / 'console.log').read_text()[-800:]}"
                    ) from None
                time.sleep(0.2)
        setting.say("the console answers")
        yield console
    finally:
        process.terminate()
        process.wait()


def _taking_turns(asked: dict[str, Callable[[], int]]) -> dict[str, list[float]]:
    """Return the times of each, in seconds. Raises StateError where one does not show a whole page."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(WARM + ROUNDS):
        for name, do in asked.items():
            began = time.perf_counter()
            found = do()
            took = time.perf_counter() - began
            if found < (1 if name == "groups" else PAGE):
                raise StateError(f"{name} showed {found} of {PAGE} entries")
            if number >= WARM:
                times[name].append(took)
    return times


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1e3:.2f} ms median, {quantiles(seconds, n=100)[94] * 1e3:.2f} p95"
