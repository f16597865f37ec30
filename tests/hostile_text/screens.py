"""Every command of the command line, as it is run among hostile texts. A command without a case here fails a test."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from tests.hostile_text.texts import NAMES, TEXTS
from tests.hostile_text.town import Town

from memsluice.cli.main import cli, parts
from memsluice.events.partition import partition_of
from memsluice.topics.names import PARTITIONS

ODD = "\x1b[2J\u202e[red]x\u200b\ud800\x9b"
"""A word of a command line that somebody was made to paste; no word has a NUL."""
SENT = ODD.replace("\ud800", "")
"""The same without what no file and no event can have."""
ANA = ("--principal", "ana", "-k", "100")
KEY = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
HELD, KEPT = "held-5", "kept-5"


@dataclass(frozen=True)
class Case:
    """The words after the command, its exit code, and what its screen is.

    ``whole``: lines are not wrapped, for they are copied (paths, ids) or belong to a log; else a table keeps its width.
    ``data``: JSON on standard output, ASCII alone.
    """

    words: tuple[str, ...] = ()
    code: int = 0
    whole: bool = False
    data: bool = False
    at_home: bool = True
    stdin: str = "n\n"


def cases(town: Town, scratch: Path) -> dict[str, list[Case]]:
    """Return the cases of every command that looks at the home, and of those that fail with words of their caller's."""
    files = _files(town, scratch)
    return {
        **_looks(town),
        **_filters(),
        **_decides(town),
        **_letters(scratch),
        **_landed(scratch),
        **_keys(scratch),
        **_policies(files),
        **_notices(scratch),
        **_servers(),
        **_plays(scratch, files),
    }


def _looks(town: Town) -> dict[str, list[Case]]:
    every = [Case((f"held-{n}",)) for n in range(len(TEXTS))]
    return {
        "trace": [*every, Case((HELD, "--json"), data=True), Case((KEPT,)), Case(("asked-5",)), Case(("seen-5",)),
                  Case((ODD, "--tenant", ODD), 5, whole=True)],
        "calibration show": [Case(("acme",)), Case(("acme", "--json"), data=True), Case((ODD,), 5, whole=True)],
        "top": [Case(("--once",)), Case(("--json",), data=True), Case(("--since", ODD), 2, whole=True)],
        "quarantine list": [Case(whole=True), Case(("--all",), whole=True), Case(("--json",), data=True),
                            Case(("--source", ODD), whole=True), Case(("--since", ODD), 2, whole=True),
                            Case(("--withdrawn",), whole=True), Case(("--withdrawn", "--json"), data=True),
                            Case(("--withdrawn", "--tenant", ODD), whole=True), Case(("--limit", "3"), whole=True),
                            *(Case((option, ODD), whole=True) for option in ("--tenant", "--reason")),
                            Case(("--tenant", ODD, "--json"), data=True),
                            Case(("--query", f"agent:{json.dumps(SENT)}"), whole=True),
                            *(Case((option, ODD), 2, whole=True) for option in ("--query", "--state", "--after")),
                            Case(("--filter", ODD), 5, whole=True)],
        "quarantine groups": [Case(whole=True), Case(("--all",), whole=True), Case(("--json",), data=True),
                              *(Case((town.group(n),), whole=True) for n in range(0, len(TEXTS), 5)),
                              Case((town.group(5), "--json"), data=True), Case((ODD,), 5, whole=True),
                              *(Case((option, ODD), whole=True) for option in ("--tenant", "--source")),
                              *(Case((option, ODD), 2, whole=True) for option in ("--query", "--after", "--state"))],
        "quarantine show": [*every, Case((HELD, "--json"), data=True), Case((ODD,), 5, whole=True),
                            Case((HELD, "--tenant", ODD), 5, whole=True)],
        "review": [Case(code=1, whole=True), Case((ODD,), 2, whole=True), Case((f"@{ODD}",), 1, whole=True),
                   Case(("--tenant", ODD), 2, whole=True), Case((f"tenant:{SENT}",), 1, whole=True)],
        "quarantine stats": [Case(whole=True), Case(("--json",), data=True)],
        "doctor": [Case(whole=True), Case(("--json",), data=True)],
        "store verify": [Case(), Case(("--json",), data=True), Case(("--tenant", ODD), 5, whole=True)],
        "store repair": [Case(), Case(("--json",), data=True), Case(("--tenant", ODD), 5, whole=True)],
        "store rebuild": [Case(("--tenant", "acme"), 1, whole=True), Case(("--tenant", ODD, "--yes"), 5, whole=True),
                          Case(("--tenant", "acme", "--yes", "--json"), data=True)],
        "recall": [*(Case(("acme", text, *ANA)) for text in ("pay", TEXTS["right to left"], TEXTS["bidi isolate"])),
                   Case(("acme", TEXTS["markup"], "--research", *ANA)),
                   Case(("acme", "pay", "--json", *ANA), data=True),
                   Case(("acme", ODD)), Case((ODD, "pay"), 5, whole=True)],
    }  # fmt: skip


def _decides(town: Town) -> dict[str, list[Case]]:
    every = [Case((f"held-{n}",), 1) for n in range(len(TEXTS))]
    asked = [Case((HELD, "--why", text[:500])) for text in TEXTS.values() if text.isprintable()]
    why = [Case((f"held-{n}", "--yes", "--why", text[:500])) for n, text in enumerate(TEXTS.values()) if n in (10, 16)]
    return {
        "quarantine release": [*every, *(Case(c.words, 1) for c in asked), Case((ODD,), 5, whole=True), *why[:1],
                               *(Case((name, "--withdrawn"), 5, whole=True) for name in (HELD, ODD)),
                               *(Case(("--group", town.group(n)), 1) for n in range(0, len(TEXTS), 5)),
                               Case(("--group", ODD), 5, whole=True), Case(("--query", ODD), 2, whole=True),
                               Case(("--query", "principal:nobody\u202e"), 5, whole=True),
                               Case(("--group", ODD, "--yes"), 2, whole=True),
                               Case((HELD, "--group", ODD), 2, whole=True)],
        "quarantine reject": [*every, *(Case(c.words, 1) for c in asked), *why[1:],
                              Case(("held-7", "held-8", "held-9"), 1), Case(("held-16", ODD), 5, whole=True),
                              Case(("--query", "tenant:acme", "--tenant", "acme"), 1),
                              Case(("--filter", ODD), 5, whole=True),
                              Case(("--query", f"tenant:{SENT[:3]}x"), 5, whole=True)],
        "quarantine reopen": [Case(("held-16", "--why", SENT), 1), Case((ODD,), 5, whole=True),
                              Case(("held-16", "--yes", "--json"), data=True)],
        "quarantine note": [*(Case((HELD, text[:500]), whole=True) for text in list(TEXTS.values())[:6]
                              if text.isprintable()), Case((HELD, "n", "--assign", ODD), 2, whole=True),
                            Case((HELD, "n", "--claim", ODD), 2, whole=True), Case((ODD, "n"), 5, whole=True)],
        "quarantine replay": [Case(("--dry-run",), whole=True), Case(("--resume", ODD), 2, whole=True),
                              Case(("--dry-run", "--json"), data=True), Case(("--tenant", ODD), whole=True)],
    }  # fmt: skip


def _filters() -> dict[str, list[Case]]:
    """Cases of filters: a query's value may be anything that a verdict has, and a name whatever can be seen."""
    kept = NAMES["right to left"]
    texts = [text[:500] for text in TEXTS.values()]
    return {
        "quarantine filters save": [
            Case((kept, f"agent:{json.dumps(text, ensure_ascii=False)}"), whole=True) for text in texts
        ]
        + [Case((ODD, "tenant:acme"), 2, whole=True), Case((kept, ODD), 2, whole=True)],
        "quarantine filters list": [Case(whole=True), Case(("--json",), data=True)],
        "quarantine filters delete": [Case((ODD,), 5, whole=True), Case((kept,), 5, whole=True)],
    }


def _landed(scratch: Path) -> dict[str, list[Case]]:
    """Cases of what an entry came from, what came of it, and the commands about it; nobody says yes here."""
    landed = [f"{kind}-{n}" for n in range(len(TEXTS)) for kind in ("kept", "data")]
    odd = Case((ODD,), 5, whole=True)
    proposed = scratch / "proposed\u202e.json"
    proposed.write_text('{"payload": "\x1b[2J"}')
    asked = [Case((name,), 1, whole=True) for name in (KEPT, "data-5")]
    return {
        "lineage": [*(Case((name,), whole=True) for name in landed), Case((KEPT, "--json"), data=True), odd],
        "blast-radius": [*(Case((f"held-{n}",), whole=True) for n in range(len(TEXTS))),
                         *(Case((f"session:{name}",), whole=True) for name in list(NAMES.values())[:4]),
                         Case((HELD, "--json"), data=True), odd],
        "revoke": [Case((HELD, "--contain", "--dry-run"), whole=True), Case((HELD, "--remove"), 1, whole=True),
                   Case((HELD, "--contain", "--dry-run", "--json"), data=True),
                   Case((ODD, "--contain"), 5, whole=True)],
        "promote": [*asked, odd],
        "declassify": [*asked, odd],
        "renew": [*asked, odd],
        "protect": [*asked, odd],
        "approve": [Case((str(proposed),), 1, whole=True), Case((SENT,), 1, whole=True)],
    }  # fmt: skip


def _letters(scratch: Path) -> dict[str, list[Case]]:
    """Cases of the dead letters: those on partitions where nobody signs anything, each with a hostile text in it."""
    ours = partition_of("acme", PARTITIONS)
    names = [f"memory.events.v1/{part}/{offset}" for part in range(PARTITIONS) if part != ours for offset in range(12)]
    odd = Case((ODD,), 5, whole=True)
    return {
        "dead-letters list": [Case(whole=True), Case(("--all",), whole=True), Case(("--json",), data=True),
                              Case(("--tenant", ODD), whole=True), Case(("--reason", ODD), whole=True)],
        "dead-letters show": [*(Case((name,), whole=True) for name in names), Case((names[0], "--json"), data=True),
                              odd],
        "dead-letters stats": [Case(whole=True), Case(("--json",), data=True)],
        "dead-letters export": [Case((str(scratch / "letters\u202e.jsonl"),), whole=True)],
        "dead-letters replay": [Case(("--dry-run",), whole=True), Case(("--dry-run", "--json"), data=True),
                                Case(("--resume", ODD), 2, whole=True)],
        "dead-letters reject": [*(Case((names[0], "--why", text[:500]), 1) for text in TEXTS.values()
                                  if text.isprintable()), Case((ODD, "--why", "x"), 5, whole=True)],
        "dead-letters release": [Case((names[0],), 2, whole=True), Case((ODD,), 2, whole=True)],
    }  # fmt: skip


def _keys(scratch: Path) -> dict[str, list[Case]]:
    lost = [Case((ODD,), 5, whole=True)]
    return {
        "keys init": [Case(whole=True)],
        "keys list": [Case(whole=True), Case(("--json",), data=True)],
        "keys new": [Case((ODD,), 2, whole=True), Case(("producer", "--tenant", ODD), 2, whole=True),
                     Case(("producer", "--tenant", "acme", "--channel", ODD), 2, whole=True),
                     Case(("producer", "--tenant", "acme", "--note", SENT), whole=True)],
        "keys enrol": [Case((ODD, *_enrolled(KEY, "ana")), 2, whole=True),
                       Case(("reviewer", *_enrolled(ODD, "ana")), 2, whole=True),
                       Case(("reviewer", *_enrolled(KEY, ODD)), 2, whole=True),
                       Case(("reviewer", *_enrolled(KEY, "ana\u202e"), "--note", SENT), whole=True)],
        "keys rotate": [*lost, Case(("user", "--overlap", ODD), 2, whole=True)],
        "keys retire": lost,
        "keys revoke": [*lost, *(Case((kid,), 1, whole=True) for kid in ("odd", "user", "reader"))],
        "keys public": [Case((str(scratch / "\x1b[2J\u202epublic"), "--tenant", "acme"), whole=True),
                        Case((str(scratch / "ring"), "--tenant", ODD), 2, whole=True)],
    }  # fmt: skip


def _enrolled(public: str, principal: str) -> tuple[str, ...]:
    return ("--public", public, "--principal", principal, "--tenant", "acme")


def _policies(files: dict[str, Path]) -> dict[str, list[Case]]:
    good, bad = str(files["good"]), str(files["bad"])
    return {
        "policy check": [Case((good,), whole=True, at_home=False), Case((bad,), 1, whole=True, at_home=False),
                         Case((SENT,), 1, whole=True, at_home=False),
                         Case((good, "--json"), data=True, at_home=False)],
        "policy diff": [Case((good,), 4, whole=True), Case((good, good), whole=True), Case((bad,), 1, whole=True),
                        Case((good, "--json"), 4, data=True), Case((good, "--in-force", ODD), 4, whole=True)],
        "policy evaluate": [Case((good,), whole=True), Case((good, "--json"), data=True), Case((bad,), 1, whole=True),
                            Case((good, "--tenant", ODD), whole=True), Case((good, "--since", ODD), 2, whole=True)],
        "rescreen": [Case(("--policy", good, "--limit", "1000"), whole=True), Case(("--policy", bad), 1, whole=True),
                     Case(("--policy", good, "--json"), data=True), Case(("--policy", SENT), 1, whole=True),
                     Case(("--policy", good, "--tenant", ODD), whole=True),
                     Case(("--policy", good, "--since", ODD), 2, whole=True)],
        "policy shipped": [Case((), whole=True, at_home=False), Case(("default",), whole=True, at_home=False),
                           Case((ODD,), 1, whole=True, at_home=False)],
        "policy show": [Case(("acme",), whole=True), Case((ODD,), whole=True)],
        "policy activate": [Case((good, "--why", SENT), 1, whole=True), Case((good, "--kid", ODD), 1, whole=True),
                            Case((good, "--tenant", ODD), 1, whole=True),
                            Case((good, "--kid", "op-1", "--kid", "op-2", "--yes"), 1, whole=True)],
    }  # fmt: skip


def _notices(scratch: Path) -> dict[str, list[Case]]:
    """Nobody is there who takes a notice: what is said of held writes, and of settings that somebody else wrote."""
    away, odd = scratch / "notices.yaml", scratch / "no\x1b[2Jtices\u202e.yaml"
    webhook = "webhook: {url: 'http://127.0.0.1:1/', secret: {environment: PATH}}"
    away.write_text(f"rules: {{group_grew: {{by: 1, within: 1d}}, pending_over: 1ms}}\n{webhook}\n")
    odd.write_text('"\\e[2Jru\\nles\\u202E": 1\nmail: {host: "\\e[2J", from: "\\u202E@x", to: ["\\e]0;x@y"]}\n')
    return {
        "notices run": [Case(("--once", "--settings", str(away)), 9, whole=True), Case(("--once",), 1, whole=True),
                        Case(("--once", "--settings", str(odd)), 1, whole=True),
                        Case(("--once", "--every", ODD), 2, whole=True)],
        "notices test": [Case(("--settings", str(away)), 9, whole=True), Case(("--settings", str(odd)), 1, whole=True),
                         Case(("--settings", SENT), 1, whole=True)],
    }  # fmt: skip


def _servers() -> dict[str, list[Case]]:
    """No server runs here; what the stack's own screens show of a running one is in tests/stack and tests/topics."""
    no_home = ("--home", f"/proc/{ODD[:-2]}")
    return {
        "stack status": [Case(code=6, whole=True), Case(("--json",), 6, data=True)],
        "stack logs": [Case(whole=True), Case(("kafka",), whole=True), Case((ODD,), 2, whole=True)],
        "stack up": [Case(no_home, 1, whole=True, at_home=False)],
        "stack down": [Case(whole=True), Case((ODD,), 2, whole=True)],
        "stack doctor": [Case((ODD,), 2, whole=True, at_home=False)],
        "stack roles": [Case(code=1, whole=True)],
        "partition status": [Case(code=1, whole=True), Case(("--json",), 1, whole=True)],
        "partition resume": [Case((ODD, "3"), 1, whole=True), Case(("screen", ODD), 2, whole=True)],
        "partition acknowledge-gap": [
            Case((ODD, "3", "--from", "1", "--to", "2", "--why", SENT), 1, whole=True),
            Case(("screen", "3", "--from", ODD, "--to", "2", "--why", "x"), 2, whole=True),
        ],
        "topics plan": [Case(("--files", ODD[:-2]), 1, whole=True)],
        "topics apply": [Case(code=1, whole=True)],
        "topics check": [Case(("--files", ODD[:-2]), 1, whole=True)],
        "recall-service": [Case(("--host", ODD), 2, whole=True), Case(("--tls-certificate", "no\x1b[2J.pem"), 2)],
        "console": [Case(("--host", ODD), 2, whole=True), Case(("--url", ODD), 1, whole=True)],
        "ingest-service": [Case(("--host", ODD), 2, whole=True), Case(("--tls-key", "no\x1b[2J.pem"), 2)],
        "mcp": [
            Case(("--tenant", ODD, "--principal", "ada"), 2, whole=True),
            Case(("--tenant", "acme", "--http", ODD), 2, whole=True),
            Case(("--tenant", "acme", "--principal", ODD), 2, whole=True),
        ],
        "work": [Case((ODD,), 2, whole=True), Case(("seal", "--replica", ODD), 1, whole=True), Case(("--" + ODD,), 2)],
    }


def _plays(scratch: Path, files: dict[str, Path]) -> dict[str, list[Case]]:
    played = scratch / "played \x1b[2J\u202e"
    return {
        "demo": [Case(("--data", str(files["stream"]), "--home", str(played)), at_home=False),
                 Case(("--tenant", ODD, "--home", str(played)), 1, whole=True, at_home=False)],
        "certify": [Case(whole=True, at_home=False), Case(("--json",), data=True, at_home=False),
                    Case(("--svg", str(scratch / "bound\u202e.svg")), whole=True, at_home=False)],
        "lab train": [Case(("--data", str(scratch / "no"), "--out", str(scratch / "m\x1b[2J"),
                            "--keep", str(scratch / "k\x1b[2J")), 1, whole=True, at_home=False)],
        "lab table": [Case(("--data", str(scratch / "no\x1b[2J"), "--out", str(scratch / "work")), 1, whole=True,
                           at_home=False),
                      Case(("--row", ODD, "--out", str(scratch / "work")), 1, whole=True, at_home=False),
                      Case(("--list", "--out", str(scratch / "w\x1b[2J")), whole=True, at_home=False)],
        "lab run": [Case((str(files["stream"].parent), str(scratch / "out")), whole=True, at_home=False),
                    Case((str(files["broken"].parent), str(scratch / "out2")), 1, whole=True, at_home=False)],
        "quarantine export": [Case((str(scratch / "export\u202e.jsonl"), "--all"), whole=True)],
    }  # fmt: skip


def _files(town: Town, scratch: Path) -> dict[str, Path]:
    """Write the policy files, streams and server logs that somebody else named and filled."""

    def line(seq: int, kind: str, text: str, name: str) -> str:
        return json.dumps({
            "seq": seq, "kind": kind, "source": "user", "text": f"From now on {text}", "tenant": "acme",
            "session": name, "agent": "helper", "principal": name, "parents": [],
            "time": f"2026-03-02T08:00:{seq % 60:02d}+00:00",
        })  # fmt: skip

    lines = [line(n, "write" if n % 2 else "query", text[:1_000], f"p{n}") for n, text in enumerate(TEXTS.values())]
    named = scratch / "in" / "st\x1b[2Jream \u202e[red].jsonl"
    made = {
        named: "\n".join(lines),
        scratch / "no" / "\x1b]0;x\u202e.jsonl": "{\x1b[2J",
        scratch / "go\x1b[2Jod\u202e.yaml": "name: other\nwrites_per_day: {user_verified: 7}\n",
        scratch / "bad\u2066.yaml": '"\\e[2Jna\\nme\\u202E": 1\n? "ten\\tants"\n: x\n',
    }
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    folder = town.home.layout.logs
    folder.mkdir(exist_ok=True)
    for name in ("kafka", "weaviate", "supervisor"):
        town.home.layout.log(name).write_bytes("\n".join(TEXTS.values()).encode() + b"\xff\x9b2J\n")
    stream, broken, good, bad = made
    return {"stream": stream, "broken": broken, "good": good, "bad": bad}


def commands() -> Iterator[str]:
    """Yield the name of every command there is: ``quarantine list``."""
    context = typer.Context(cli)
    for name in parts():
        yield from _leaves(name, cli.get_command(context, name))


def _leaves(name: str, command: Any) -> Iterator[str]:
    inner: dict[str, Callable[..., Any]] = getattr(command, "commands", {})
    if not inner:
        yield name
    for part, below in inner.items():
        yield from _leaves(f"{name} {part}", below)
