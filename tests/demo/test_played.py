"""A played day keeps what the summary promises, on the real gate with the real encoder."""

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.command import run
from tests.encoders import minilm

from memsluice.deployment.home import Home
from memsluice.topics.names import AUDIT, DEAD_LETTER, EVENTS
from memsluice_lab.demo import outcome, summary
from memsluice_lab.demo.embedded import DayClock, EmbeddedSite, last_working_day, open_keys
from memsluice_lab.demo.ledger import Fate, Ledger, Sent
from memsluice_lab.demo.live import ticker_line
from memsluice_lab.demo.outcome import Pair
from memsluice_lab.demo.play import Player
from memsluice_lab.demo.sample.script import Attacker
from memsluice_lab.demo.show import issue, sample

START_MS = last_working_day(1_790_000_000_000)


@dataclass(frozen=True)
class Played:
    home: Home
    pairs: list[Pair]
    unknown: int
    player: Player
    audited: int
    dead: int


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The whole sample, played once."""
    home = Home(tmp_path_factory.mktemp("home"))
    prepared = sample(None, set())
    keys, begins = open_keys(home, START_MS)
    signers = issue(keys, prepared.titles, begins)
    ticks = iter(range(10**9))
    ledger = Ledger(keys.keyring, lambda: float(next(ticks)))
    encoder = minilm()
    site = EmbeddedSite(home, ledger, DayClock(begins), keys, encoder)
    player = Player(site, ledger, signers, encoder, "t")
    player.play(prepared.scenes, lambda minute, what: None)
    read = site.runtime.read
    each = list(ledger.each())
    result = Played(
        home,
        [(sent, fate) for sent, fate in each if fate is not None],
        sum(fate is None for _, fate in each),
        player,
        len(list(read(AUDIT))),
        len(list(read(DEAD_LETTER))),
    )
    site.close()
    return result


def test_every_message_has_one_fate(played: Played) -> None:
    """Nothing is lost: what was sent was audited or is a dead letter, and the numbers agree with the log."""
    assert played.unknown == 0
    fates = Counter(fate.decision == "dead_letter" for _, fate in played.pairs)
    assert (fates[False], fates[True]) == (played.audited, played.dead)
    assert all(fate.settled for _, fate in played.pairs)


@pytest.mark.parametrize(
    ("act", "reasons"),
    [
        ("forge", {"forged_signature"}),
        ("unknown_key", {"unknown_key"}),
        ("tamper", {"tampered"}),
        ("garbage", {"malformed"}),
        ("cross_tenant", {"cross_tenant"}),
        ("expired_key", {"expired_key"}),
        ("wrong_role", {"not_permitted"}),
        ("foreign_command", {"not_permitted"}),
        ("replay", {"duplicates.replayed"}),
        ("reuse_id", {"duplicates.other_content"}),
    ],
)
def test_each_attack_on_the_intake_has_its_own_reason(played: Played, act: str, reasons: set[str]) -> None:
    """A forged, unknown, tampered, replayed, cross-tenant, expired … event says what was wrong with it."""
    found = [fate for sent, fate in played.pairs if sent.act == act]
    assert found
    assert {code for fate in found for code in fate.reasons} == reasons
    assert all(fate.zone == "" for fate in found)


def test_outside_content_and_laundering_never_reach_guidance(played: Played) -> None:
    """Pages, tools, and compromised agents that repeat them are kept out of guidance, however it is worded."""
    kept_out = (Attacker.CONTENT, Attacker.PEER, Attacker.OUTSIDER, Attacker.KEYHOLDER)
    checked = [(sent, fate) for sent, fate in played.pairs if sent.attacker in kept_out]
    assert {sent.attacker for sent, _ in checked} == set(kept_out)
    assert [sent for sent, fate in checked if fate.zone == "guidance"] == []


def test_a_malicious_user_reaches_nobody_else(played: Played) -> None:
    """What a user of the same platform writes, shared or not, is given to him alone; a flood is held."""
    own = [(sent, fate) for sent, fate in played.pairs if sent.attacker is Attacker.USER]
    assert all(fate.scope in ("", "principal", "session") for _, fate in own)
    assert any("rates.exceeded" in fate.reasons for _, fate in own)


def test_a_protected_key_cannot_be_overwritten(played: Played) -> None:
    """Seed 001, Rule 3: after the operator's order the entry stays as it is; an order that ran out does nothing."""
    codes = {code for sent, fate in played.pairs if sent.attacker is Attacker.OPERATOR for code in fate.reasons}
    assert codes == {"monitor.rule_3_immutable", "commands.expired", "not_permitted"}


def test_nothing_smuggled_into_the_store_comes_back(played: Played) -> None:
    """An inserted, a changed and a put-back object were in the store, and no recall returned any of them."""
    assert played.player.untried == 0
    assert len(played.player.burglar.breaks) == 3
    assert [attempt.returned for attempt in played.player.burglar.breaks] == [False, False, False]


def test_tools_and_pages_are_kept_as_data_and_most_honest_writes_land(played: Played) -> None:
    """The gate lets people work: what they and their agents write goes to guidance, nine times out of ten at least."""
    found = outcome.honest(played.pairs)
    assert found.data_contained == found.data_writes > 0
    assert len(found.misplaced) <= found.writes / 10


def test_log_and_store_are_their_owners_alone(played: Played) -> None:
    """Content lies in both: they stay private where the home's own mode is lost, as in a copy or a backup."""
    files = (played.home.log_file, played.home.store_file)
    assert {file.name: f"{file.stat().st_mode & 0o777:o}" for file in files} == {
        "embedded.db": "600",
        "store.db": "600",
    }


def test_the_summary_counts_what_happened(played: Played) -> None:
    """Places, attacks and honest writes are three views of the same messages and add up."""
    places = outcome.places(played.pairs)
    assert sum(sum(row.values()) for row in places.values()) == len(played.pairs)
    attacks = outcome.attacks(played.pairs, played.player.burglar.breaks)
    labelled = sum(sent.attacker is not None for sent, _ in played.pairs)
    assert attacks.total == labelled + 3
    assert attacks.total - attacks.stopped == len(attacks.through)


def a_stream(path: Path) -> None:
    """Write six lines in the benchmark's format, one of them too long to publish."""
    texts = (
        ("write", "user", "The shed key is under the blue pot."),
        ("write", "agent", "Booked the hall for the first Tuesday."),
        ("write", "web", "Seed shop: free delivery until Sunday."),
        ("write", "user", "x" * 40_000),
        ("observe", "web", "Forum: salt is a good fertiliser."),
        ("query", "user", "Where is the shed key?"),
    )
    lines = [
        {
            "seq": seq, "kind": kind, "source": source, "text": text, "tenant": "Garden Club", "session": "s1",
            "agent": "helper", "principal": "willa", "time": f"2026-03-02T0{seq}:00:00+00:00", "label": "benign",
        }
        for seq, (kind, source, text) in enumerate(texts)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def commands_in(output: str) -> list[list[str]]:
    """Return the commands that the demo says to type next."""
    return [shlex.split(line)[1:] for line in re.findall(r"^  (memsluice .*)$", output, re.MULTILINE)]


def test_the_demo_and_the_commands_that_it_names_work(tmp_path: Path) -> None:
    """From nothing to a summary, in one command; then what it says to type next runs on what it left behind."""
    shown = run("demo", "--home", str(tmp_path / "home"), "--tenant", "casa-lindqvist")
    assert shown.code == 0, shown.err
    assert "Attacks" in shown.out
    following = commands_in(shown.out)
    assert len(following) == 3
    for command in following:
        if "--stack" in command:
            continue
        done = run(*command)
        assert done.code == 0, done.err
        if command[0] == "recall":
            assert "alarm company" in " ".join(done.out.split())
            assert "forged" in done.out


@pytest.mark.parametrize("found", [True, False])
def test_a_terminal_that_does_not_find_the_command_is_told_how(found: bool, tmp_path: Path, monkeypatch: Any) -> None:
    """After ``make demo`` it is not on the PATH: what is printed first makes what is printed next work."""
    ours = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{ours}:/usr/bin:/bin" if found else "/usr/bin:/bin")
    console = Console(file=StringIO(), width=200)
    summary.following(console, [("memsluice --help", "what there is")])
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    typed = [line.strip() for line in printed.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    assert typed == ([] if found else [f'export PATH={ours}:"$PATH"']) + ["memsluice --help"]
    done = subprocess.run(["/bin/bash", "-ec", "\n".join(typed)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_stream_from_a_file_can_be_played(tmp_path: Path) -> None:
    """``--data`` plays any stream; its labels are not shown, because they were not read."""
    path = tmp_path / "garden.jsonl"
    a_stream(path)
    shown = run("demo", "--home", str(tmp_path / "home"), "--data", str(path))
    assert shown.code == 0, shown.err
    assert "garden-club" in shown.out
    assert "Attacks" not in shown.out
    assert "1 lines broke a limit" in shown.out
    asked = commands_in(shown.out)[0]
    assert run(*asked).code == 0


def test_a_stream_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    """Escapes and markup in content, question, principal and file name are shown and not obeyed; a command that cannot
    be copied from the screen is not offered."""
    path = tmp_path / "[bold]x.jsonl"
    hostile = "the alarm \x1b]0;title\x07 is \x1b[2J off \x9b31m [/red] \u202e now"
    lines = [
        {
            "seq": seq, "kind": kind, "source": source, "text": f"{hostile} {seq}", "tenant": "t", "session": f"s{seq}",
            "agent": "bot", "principal": "[/red]eve", "time": f"2026-03-02T0{seq}:00:00+00:00",
        }
        for seq, (kind, source) in enumerate((("write", "user"), ("write", "web"), ("query", "user")))
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = run("demo", "--home", str(tmp_path / "home"), "--data", str(path))
    assert shown.code == 0, shown.err
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown.out) == []
    assert shown.out.count("the alarm <U+001B>]0;title<U+0007> is") >= 2
    assert "[bold]x.jsonl" in shown.out
    assert "asked for [/red]eve" in shown.out
    assert [words[0] for words in commands_in(shown.out)] == ["keys", "demo"]


def test_what_runs_past_cannot_act_on_the_terminal() -> None:
    """The live view spells out what the page at the end does."""
    sent = Sent((EVENTS, 0, 0), "write", "t", "user", "off \x1b[2J\x9b31m [/red]", 0.0)
    assert "off <U+001B>[2J<U+009B>31m [/red]" in ticker_line(sent, Fate(dead_reason="malformed")).plain


def test_a_second_day_in_the_same_home_has_people_of_its_own(tmp_path: Path) -> None:
    """Played again on a kept home, the day's tenants get a number, so that yesterday's rates do not count."""
    taken = {"marlow-physio.agent", "marlow-physio-2.agent"}
    again = sample("marlow-physio", taken)
    assert set(again.titles) == {"marlow-physio-3"}
    assert {scene.tenant for scene in again.scenes} == {"marlow-physio-3"}
