"""One showing of the demo, from an empty home to the summary."""

import shlex
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from rich.console import Console

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.dsse import Signer
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError
from memsluice.escaping import visible
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice_lab import cast
from memsluice_lab.demo import outcome, summary, window
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.demo.embedded import DayClock, EmbeddedSite, last_working_day, open_keys
from memsluice_lab.demo.forge import EXPIRED
from memsluice_lab.demo.ledger import Ledger
from memsluice_lab.demo.live import Watch
from memsluice_lab.demo.own_home import alone, wipe
from memsluice_lab.demo.play import Player
from memsluice_lab.demo.sample.day import WORLDS, day
from memsluice_lab.demo.sample.script import Act, Scene
from memsluice_lab.demo.sample.world import World
from memsluice_lab.demo.site import Site
from memsluice_lab.streams import Published, Restamp, Unsendable, ending, events_of, read_stream

DAY_MS = 86_400_000
SOURCES = ("runtime", "reader", "user", "agent", "tool", "web")


@dataclass(frozen=True, slots=True)
class Options:
    """What to show: ``data`` a stream file, else the sample; ``tenant`` only one; ``fresh`` empties the home first.

    ``window`` shows the chapter of the changed topic, and nothing of the others.
    """

    home: Path | None = None
    data: Path | None = None
    tenant: str | None = None
    fresh: bool = False
    stack: bool = False
    window: bool = False


@dataclass(slots=True)
class Prepared:
    """What there is to play: scenes of the sample, or a stream's items; and the tenants with their titles.

    ``worlds`` gives the sample's world of a tenant, ``turned`` the tenants of the last chapter by their policies.
    """

    titles: dict[str, str]
    scenes: list[Scene] = field(default_factory=list)
    items: list[Published | Unsendable] = field(default_factory=list)
    worlds: dict[str, World] = field(default_factory=dict)
    turned: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many things will happen."""
        return len(self.scenes) + len(self.items)


def prepare(options: Options, keys: KeyStore | None, restamp: Restamp | None) -> Prepared:
    """Return what the options ask for. ``keys`` of a home that was played on before give the day new tenants."""
    held: set[str] = set() if keys is None else {credential.kid for credential in keys.load_registry().all()}
    if options.window:
        return Prepared({}, turned=window.tenants(held))
    if options.data is not None:
        return stream(options.data, options.tenant, restamp)
    prepared = sample(options.tenant, held)
    if options.tenant is None:  # the whole sample ends with that chapter
        prepared.turned = window.tenants(held)
    return prepared


def sample(tenant: str | None, held: AbstractSet[str]) -> Prepared:
    """Return the sample's day, or one tenant's part of it. Raises ConfigError for a tenant that it does not have.

    Where ``held`` has credentials of the tenants already, they get a number: on a second day of the same people, their
    first one would count (rates, protected keys, questions asked before).
    """
    worlds = [world for world in WORLDS if tenant in (None, world.tenant)]
    if not worlds:
        raise ConfigError(f"the sample has no tenant {tenant!r}; it has {', '.join(w.tenant for w in WORLDS)}")
    number = next(n for n in count(1) if not any(cast.kid_of(_numbered(w.tenant, n), "agent") in held for w in worlds))
    names = {world.tenant: _numbered(world.tenant, number) for world in worlds}
    scenes = [
        replace(scene, tenant=names[scene.tenant], about=names.get(scene.about, scene.about))
        for scene in day()
        if scene.tenant in names and (scene.act is not Act.CROSS_TENANT or scene.about in names)
    ]
    return Prepared(
        titles={names[world.tenant]: world.title for world in worlds},
        scenes=scenes,
        worlds={names[world.tenant]: world for world in worlds},
    )


def _numbered(tenant: str, number: int) -> str:
    return tenant if number == 1 else f"{tenant}-{number}"


def stream(path: Path, tenant: str | None, restamp: Restamp | None) -> Prepared:
    """Return a stream's events, or one tenant's. Raises ConfigError where there are none.

    Without ``restamp`` the stream keeps its own pace and ends now, so that what it leaves has not expired yet.
    """
    lines = list(read_stream(path))
    now_ms = wall_ms()
    items = list(events_of(lines if restamp else ending(lines, now_ms), restamp=restamp, run=f"d{now_ms:x}"))
    items = [item for item in items if tenant is None or _tenant(item) == tenant]
    tenants = sorted({name for item in items if (name := _tenant(item)) is not None})
    if not tenants:
        raise ConfigError(f"{path} has no events" + (f" of tenant {tenant!r}" if tenant else ""))
    return Prepared({name: f"{path.name}, {name}" for name in tenants}, items=items)


def _tenant(item: Published | Unsendable) -> str | None:
    return item.payload.tenant if isinstance(item, Published) else None


def signers_of(keys: KeyStore, prepared: Prepared, now_ms: int) -> dict[tuple[str, str], Signer]:
    """Return signers of everybody who speaks in what is prepared."""
    day = issue(keys, prepared.titles, now_ms) if prepared.titles else {}
    return day | window.issue(keys, prepared.turned.values(), now_ms)


def issue(keys: KeyStore, titles: Mapping[str, str], now_ms: int) -> dict[tuple[str, str], Signer]:
    """Return signers of every tenant and source, an operator's, and one whose credential ran out long ago."""
    signers = cast.at_home(keys, titles, now_ms=now_ms, sources=SOURCES)
    first = next(iter(titles))
    signers |= cast.at_home(keys, [first], now_ms=now_ms, sources=("operator",))
    kid = cast.kid_of(first, EXPIRED)
    if kid not in {credential.kid for credential in keys.load_registry().all()}:
        issue_credential(
            keys, Role.PRODUCER, "agent", [first], now_ms=now_ms - 90 * DAY_MS, days=30, kid=kid, note="ran out"
        )
    signers[first, EXPIRED] = keys.credential(kid).signer()
    return signers


class Loading:
    """The encoder, loading in a thread of its own while the rest is prepared.

    One thread of torch: a demo encodes few texts at a time, and more threads only wait for one another.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[Encoder] = self._pool.submit(load_encoder, threads=1)

    def wait(self, console: Console) -> Encoder:
        """Return the encoder; say so while it is not there yet."""
        started = time.monotonic()
        with console.status("loading all-MiniLM-L6-v2"):
            encoder = MemoEncoder(self._future.result())
        self._pool.shutdown()
        waited = time.monotonic() - started
        console.print(f"  [green]✓[/] encoder {encoder.model_id} [dim]({waited:.1f} s more)[/]", highlight=False)
        return encoder


def embedded(console: Console, options: Options) -> None:
    """Play on the embedded runtime and print the summary."""
    home = Home((options.home or Home.at().path / "demo").expanduser().resolve())
    with alone(home):
        _embedded(console, options, home)


def _embedded(console: Console, options: Options, home: Home) -> None:
    if options.fresh or options.home is None:
        wipe(home, named=options.home is not None)
    loading = Loading()
    with console.status("issuing credentials"):
        known = KeyStore(home.path) if (home.path / "registry.yaml").exists() else None
        prepared = prepare(options, known, None)
        keys, begins_ms = open_keys(home, _start_ms(prepared))
        signers = signers_of(keys, prepared, begins_ms)
    where = summary.safe(str(home.path))
    console.print(f"  [green]✓[/] {len(signers)} credentials, keys of the gate in {where}", highlight=False)
    ledger = Ledger(keys.keyring, time.monotonic)
    encoder = loading.wait(console)
    with console.status("loading the detectors; the first start after an installation compiles them: half a minute"):
        site = EmbeddedSite(home, ledger, DayClock(begins_ms), keys, encoder)
    with ExitStack() as stack:
        stack.callback(site.close)
        play(console, prepared, site, ledger, signers, encoder, begins_ms)
        summary.following(console, next_commands(prepared, home, stack=False))


def _start_ms(prepared: Prepared) -> int:
    published = [item.append_ms for item in prepared.items if isinstance(item, Published)]
    return min(published) if published else last_working_day(wall_ms())


def play(
    console: Console,
    prepared: Prepared,
    site: Site,
    ledger: Ledger,
    signers: Mapping[tuple[str, str], Signer],
    encoder: Encoder,
    start_ms: int,
) -> None:
    """Play what is prepared on a site and print everything but the next commands."""
    run = f"d{wall_ms():x}"
    player = Player(site, ledger, signers, encoder, run)
    if prepared.titles:
        _day(console, prepared, site, ledger, player, start_ms)
    if prepared.turned:
        chapter = window.Chapter(site, ledger, signers, player, prepared.turned, f"{run}t", start_ms)
        with console.status("a household changes its topic") as status:
            told = chapter.play(lambda part: status.update(f"a household changes its topic: {part}"))
        window.show(console, told)


def _day(console: Console, prepared: Prepared, site: Site, ledger: Ledger, player: Player, start_ms: int) -> None:
    """Play the day, or the stream, and print its summary."""
    with console.status("waiting for the stages"):
        player.warm_up(prepared.titles)
    console.print(f"  [green]✓[/] gate is up ({site.title})\n", highlight=False)
    unsendable = 0
    began_s = time.monotonic()
    with Watch(console, ledger, prepared.titles, prepared.total) as watch:
        if prepared.items:
            unsendable = player.play_stream(prepared.items, watch.on_scene, start_ms)
        else:
            player.play(prepared.scenes, watch.on_scene)
    seconds = time.monotonic() - began_s
    pairs = [(sent, fate) for sent, fate in ledger.each() if fate is not None]
    summary.landed(console, pairs, prepared.titles)
    summary.why(console, pairs, labelled=bool(prepared.scenes))
    if prepared.scenes:
        summary.attacks(console, outcome.attacks(pairs, player.burglar.breaks))
        if player.untried:
            console.print(f"{player.untried} attacks on the store could not be tried: their target had not landed.")
        summary.honest(console, outcome.honest(pairs))
    elif unsendable:
        console.print(f"{unsendable} lines broke a limit that no producer may break, and were not sent.")
    lost = sum(fate is None for _, fate in ledger.each())
    if lost:
        console.print(f"[red]{lost} events have no verdict.[/]")
    summary.speed(console, outcome.speed(pairs, seconds), site.title)
    _ask(console, prepared, player)


def _asked(prepared: Prepared) -> tuple[str, str, str]:
    """Return whose memory the summary asks, for whom, and what: of the sample's last tenant, or of the stream."""
    for tenant, world in reversed(prepared.worlds.items()):
        asker = next(
            (scene.principal for scene in prepared.scenes if scene.text == world.fact), next(iter(world.people))
        )
        return tenant, asker, world.question
    recalls = [item.payload for item in prepared.items if isinstance(item, Published) and item.source == "reader"]
    for payload in reversed(recalls):
        return payload.tenant, getattr(payload, "principal", ""), getattr(payload, "question", "")
    return "", "", ""


def _ask(console: Console, prepared: Prepared, player: Player) -> None:
    tenant, principal, question = _asked(prepared)
    if tenant:
        answer = player.recaller.recall(
            tenant, question, agent="summary", principal=principal, session=f"summary-{wall_ms():x}", k=3
        )
        summary.recall(console, tenant, principal, question, answer)


def next_commands(prepared: Prepared, home: Home, *, stack: bool) -> list[tuple[str, str]]:
    """Return the commands that work after this demo, with what they do."""
    place = f"--home {shlex.quote(str(home.path))}"
    tenant, principal, question = _asked(prepared)
    commands = []
    asks = f"memsluice recall {tenant} {shlex.quote(question)} --principal {shlex.quote(principal)} {place}"
    if tenant and visible(asks, len(asks)) == asks:  # else it could not be copied from the terminal
        commands.append((asks, "ask this memory yourself; only what verifies is shown"))
    for turned in list(prepared.turned.values())[:1]:
        commands.append((f"memsluice calibration show {turned} {place}", "see the line follow the change of topic"))
    commands.append((f"memsluice keys list {place}", "who may write, observe, read and order here"))
    if stack:
        commands.append((f"memsluice stack down {place}", "stop the broker and the store"))
    else:
        commands.append(("memsluice demo --stack", "the same day on a real Kafka and a real Weaviate"))
    return commands
