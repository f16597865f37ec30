"""Whether the recall service returns anything that somebody with the store's master key changed."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from memsluice.clock import wall_ms
from memsluice.deployment.paths import HOME_VARIABLE
from memsluice.envelope.registry import Role
from memsluice.errors import StackError
from memsluice.events.models import Zone
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.recall.recaller import Question
from memsluice.recall.remote import RemoteRecaller
from memsluice.stores.base import StoredObject
from memsluice.stores.weaviate.rpc import Rpc
from memsluice.stores.weaviate.store import WeaviateStore, address_of
from memsluice.stores.weaviate.wire import to_wire
from memsluice.topics import names
from memsluice_lab.figures.bed import Bed, Process, bed, tail
from memsluice_lab.figures.landing import land
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.tampering import in_process
from memsluice_lab.tampering.entries import Gate
from memsluice_lab.tampering.ways import Case, cases

CASES, TENANTS, AT_ONCE, BATCH = 10_000, 8, 4, 200
READY_S_MAX = 120
SAY_EVERY, SHOWN_MAX = 2_000, 8
ADDRESS = "recall service: "
MODES = {
    "by a reader in the agent's process, with the log as it ships": True,
    "by such a reader that is given no log (not counted)": False,
}


def tampered_returned(setting: Setting) -> Measured:
    """Tampered objects that were returned, or not counted by their reason, and honest ones beside them that were not
    returned."""
    with bed(setting) as running, TemporaryDirectory(prefix="memsluice-stranger-") as scratch:
        stranger = KeyStore.init(Path(scratch), wall_ms())
        now_ms = wall_ms()
        gates = (Gate(running.store.keyring(), now_ms, 1), Gate(stranger.keyring(), now_ms, 2))
        every = cases(*gates, [f"tenant-{number}" for number in range(TENANTS)], CASES)
        land(running, (landing for case in every for landing in case.lands))
        _tamper(running, every)
        setting.say(f"{len(every):,} cases landed and tampered with")
        with service(running) as (url, credential), RemoteRecaller(url, credential) as remote:
            wrong = list(_asked(remote, every, setting))
        modes = [(mode, in_process.returned(running, every, log=log)) for mode, log in MODES.items()]
    counts = Counter(case.way for case in every)
    bad = Counter(case.way for case, _ in wrong)
    rows = [(way, f"{count:,}, {bad[way]} wrong") for way, count in counts.items()]
    rows += [(f"{way}, {mode}", f"{got[way]:,} returned") for mode, got in modes for way in in_process.ROLLED_BACK]
    rows += [(f"wrong: {case.way}", why) for case, why in wrong[:SHOWN_MAX]]
    return Measured(float(len(wrong)), (("objects, each beside an honest one", f"{len(every):,}"), *rows), (_NOTE,))


def _tamper(running: Bed, every: Sequence[Case]) -> None:
    """Write and delete with the store's master key."""
    store = WeaviateStore.of(running.connection, names.WEAVIATE_ADMIN)
    rpc = Rpc(address_of(running.connection, names.WEAVIATE_ADMIN))
    for case in every:
        if case.deleted:
            store.delete(case.tenant, Zone.GUIDANCE, [item.object_id for item in case.deleted])
    planted: list[StoredObject] = [item for case in every for item in case.planted]
    for first in range(0, len(planted), BATCH):
        refused = rpc.insert([to_wire(item) for item in planted[first : first + BATCH]])
        if refused:
            raise StackError(f"the store refused {len(refused)} planted objects: {next(iter(refused.values()))}")
    rpc.close()
    store.close()


@contextmanager
def service(running: Bed) -> Iterator[tuple[str, Path]]:
    """Give the address of a recall service on a bed, and the file of a credential that may ask it for all tenants."""
    _, credential = issue_credential(running.store, Role.READER, "agent", ["*"])
    log = running.home / "logs" / "recall-service.log"
    words = ["recall-service", "--port", "0", "--quota-per-s", "100000", "--quota-burst", "100000"]
    with log.open("wb") as file:
        process = running.launch(words, {**os.environ, HOME_VARIABLE: str(running.home)}, file)
    try:
        yield _address(log, process), credential
    finally:
        process.terminate()
        process.wait(30)


def _address(log: Path, process: Process) -> str:
    until = time.monotonic() + READY_S_MAX
    while time.monotonic() < until:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith(ADDRESS):
                return line.removeprefix(ADDRESS).strip()
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise StackError(f"the recall service did not start:\n{tail(log)}")


def _asked(remote: RemoteRecaller, every: Sequence[Case], setting: Setting) -> Iterator[tuple[Case, str]]:
    """Ask in the namespace of each case; yield those that were answered with anything but the honest entry."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, (case, why) in enumerate(zip(every, pool.map(lambda one: _wrong(remote, one), every), strict=True)):
            if why:
                yield case, why
            if number % SAY_EVERY == SAY_EVERY - 1:
                setting.say(f"{number + 1:,} asked")


def _wrong(remote: RemoteRecaller, case: Case) -> str:
    """Return what was wrong about an answer, "" for nothing."""
    answer = remote.ask(Question(case.tenant, case.question, "figures", "ana", "tampered", namespace=case.namespace))
    shown, counted = [entry.content for entry in answer.entries], dict(answer.withheld)
    if shown != [case.honest]:
        return f"returned {len(shown)}: {', '.join(shown)[:80]}"
    return "" if counted == case.counted else f"counted as {counted}"


_NOTE = (
    "Real: broker, store, a land worker, the recall service as a process, asked over HTTP by the client that agents "
    "use. Landed by *land* from records signed with the gate's keys; tampered with by the store's master key while no "
    "worker that would mend it runs. A reader without the log has signatures alone, and what was rolled back is "
    "signed: that mode is a choice of whoever builds a Recaller without `freshness`."
)
