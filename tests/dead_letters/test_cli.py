"""``memsluice dead-letters`` on the embedded runtime: real stages, a real log, real signatures."""

import json
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.held.desk import PEOPLE, Office
from tests.held.test_cli import HOSTILE, acts
from typer.testing import CliRunner, Result

from memsluice.cli.dead_letters.dead_letters import app
from memsluice.cli.held.quarantine import app as quarantine
from memsluice.client import requests
from memsluice.client.build import Message, build
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import open_
from memsluice.events.models import Action, Zone
from memsluice.events.names import EVERYBODY, NOT_UNPACKED_HEADER, VERDICT
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.keystore.store import issue_credential
from memsluice.operations.dead_letters import desk as desks
from memsluice.operations.dead_letters.collect import look, look_whole
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import LetterState
from memsluice.operations.dead_letters.replay import LetterRun, plan, replay
from memsluice.operations.dead_letters.view import lines
from memsluice.stages import seal
from memsluice.stages.letter_budget import LetterBudget
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics.names import ACCEPTED, AUDIT, COMMANDS, DEAD_LETTER, EVENTS, PARTITIONS

TEA = "The tea is in the second cupboard."


class Morgue(Office):
    """An office whose reviewer for all tenants looks after dead letters."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        issue_credential(self.keys, Role.REVIEWER, "operator", [EVERYBODY], kid="reviewer-all")

    def message(
        self, event_id: str = "w-1", content: str = TEA, *, source: str = "user", tenant: str = "acme"
    ) -> Message:
        """Return a signed write."""
        payload = requests.write(event_id, datetime.now(UTC), Session(tenant, **PEOPLE), content, {})
        return build(payload, [self.keys.credential(source).signer()], source=f"urn:test:{source}")

    def append(self, *messages: Message, topic: str = EVENTS, partition: int | None = None) -> None:
        """Append records as they are, and run the stages until nothing waits."""
        store = FaissStore(self.home.store_file)
        runtime = self.assembly.embedded(self._encoder, store)
        for key, value, headers in messages:
            runtime.append(topic, key, value, headers, append_ms=wall_ms(), partition=partition)
        runtime.run_until_idle()
        runtime.close()
        store.close()

    def misplaced(self, event_id: str = "w-1", **options: Any) -> str:
        """Publish a write beside its tenant's partition; return the letter's name."""
        tenant = options.get("tenant", "acme")
        wrong = (partition_of(tenant, PARTITIONS) + 1) % PARTITIONS
        self.append(self.message(event_id, **options), partition=wrong)
        return f"{EVENTS}/{wrong}/{len(self._at(wrong)) - 1}"

    def _at(self, partition: int) -> list[Record]:
        return [record for record in self.records(EVENTS) if record.partition == partition]

    def call(self, *arguments: str, input: str = "", env: dict[str, str] | None = None) -> Result:
        """Run ``memsluice dead-letters`` on this home."""
        variables = {"COLUMNS": "160", "NO_COLOR": "1", **(env or {})}
        return CliRunner().invoke(app, [*arguments, "--home", str(self.home.path)], input=input, env=variables)

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the letters that a listing shows."""
        found = self.call("list", "--json", *arguments)
        assert found.exit_code == 0, found.output
        letters: list[dict[str, Any]] = json.loads(found.stdout)["letters"]
        return letters

    def landed(self, tenant: str = "acme") -> int:
        """Return how many entries of a tenant agents may follow."""
        store = FaissStore(self.home.store_file)
        count = store.count(tenant, Zone.GUIDANCE)
        store.close()
        return count


@pytest.fixture
def morgue(tmp_path: Path) -> Morgue:
    """A home whose log is empty."""
    return Morgue(tmp_path / "home")


def names(letters: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of letters."""
    return [one["letter"] for one in letters]


def test_filters_show_what_was_asked_for(morgue: Morgue) -> None:
    """Reason, intake topic, partition, time and claimed tenant narrow the list; what is claimed is called so."""
    first = morgue.misplaced()
    second = morgue.misplaced(tenant="globex")
    morgue.append(Message(b"acme", b"\xff\xfe no event", ()))
    morgue.append(Message(b"acme", b"{}", ()), topic=COMMANDS)
    assert len(morgue.listed()) == 4
    assert names(morgue.listed("--reason", "wrong_partition")) == [first, second]
    assert names(morgue.listed("--tenant", "globex")) == [second]
    assert names(morgue.listed("--topic", COMMANDS)) == [f"{COMMANDS}/{partition_of('acme', PARTITIONS)}/0"]
    assert names(morgue.listed("--partition", first.split("/")[1], "--reason", "wrong_partition")) == [first]
    assert len(morgue.listed("--since", "1h")) == 4
    assert morgue.listed("--until", "1h") == []
    (told,) = morgue.listed("--tenant", "globex")
    assert told["claimed"] == {"tenant": "globex", "type": "memory.write.v1", "event_id": "w-1", "kid": "user"}
    assert "claims tenant globex, memory.write.v1, id w-1, key user" in morgue.call("list").stdout
    assert "9 does not exist" in str(morgue.call("list", "--partition", "9").exception)


def test_show_and_export_have_the_input_byte_for_byte(morgue: Morgue, tmp_path: Path) -> None:
    """A person sees the payload as claimed and bytes that are no text as hex; a file has all of it, and is private."""
    letter = morgue.misplaced()
    shown = morgue.call("show", letter).stdout
    assert "none of it is verified" in shown
    assert TEA in shown
    morgue.append(Message(None, b"\xff\xfe\x00", (("x", b"1"), ("x", None))))
    (other,) = morgue.listed("--reason", "malformed")
    assert "3 bytes: hex fffe00" in morgue.call("show", other["letter"]).stdout
    assert json.loads(morgue.call("show", other["letter"], "--json").stdout)["headers"] == [["x", "MQ=="], ["x", None]]
    file = tmp_path / "letters.jsonl"
    assert morgue.call("export", str(file)).exit_code == 0
    rows = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    assert sorted(names(rows)) == sorted([letter, other["letter"]])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert morgue.call("export", str(file)).exit_code != 0


def test_a_letter_in_parts_is_one_letter(morgue: Morgue) -> None:
    """What is larger than a part comes in several records, here repeated and out of order, and is shown as one."""
    morgue.append(Message(b"acme", b"x" * 5_000_000, ()))
    (letter,) = morgue.listed()
    assert (letter["value_bytes"], letter["reason"]) == (5_000_000, "limit_exceeded")
    records = morgue.records(DEAD_LETTER)
    log = morgue.assembly.local_log()
    for record in (records[2], records[0]):
        log.append(DEAD_LETTER, record.key, record.value, record.headers, append_ms=1, partition=record.partition)
    log.append(DEAD_LETTER, b"acme", b"no letter at all", (), append_ms=1, partition=records[0].partition)
    log.close()
    found = json.loads(morgue.call("list", "--json").stdout)
    assert (names(found["letters"]), found["damaged"]) == ([letter["letter"]], 3)
    shown = morgue.call("show", letter["letter"]).stdout
    assert ("5000000 bytes:" in shown, "(4998976 more bytes)" in shown) == (True, True)


def test_a_misplaced_letter_mends_itself_at_a_replay(morgue: Morgue) -> None:
    """The same bytes again, now on its tenant's partition: it lands, the list knows, and nothing is doubled."""
    letter = morgue.misplaced()
    tried = morgue.call("replay", "--dry-run")
    assert f"{letter}  claims acme  wrong_partition → authentic: the gate would decide it" in tried.stdout
    assert (morgue.landed(), len(morgue.records(EVENTS))) == (0, 1)
    done = morgue.call("replay", "--yes")
    assert done.exit_code == 0, done.output
    assert f"{letter}  claims acme  wrong_partition → accept" in done.stdout
    old, new = sorted(morgue.records(EVENTS), key=lambda record: record.timestamp_ms)
    assert (new.key, new.value, new.headers) == (old.key, old.value, old.headers)
    assert new.partition == partition_of("acme", PARTITIONS)
    assert morgue.landed() == 1
    assert morgue.listed() == []
    assert [one["state"] for one in morgue.listed("--all")] == ["decided"]
    assert "0 dead letters" in morgue.call("replay", "--yes").stdout


def test_what_landed_already_is_a_duplicate(morgue: Morgue) -> None:
    """Two letters of one event: the first lands, the second is a duplicate, whoever publishes it how often."""
    message = morgue.message()
    wrong = (partition_of("acme", PARTITIONS) + 1) % PARTITIONS
    morgue.append(message, message._replace(headers=(*message.headers, ("x-again", b"1"))), partition=wrong)
    done = morgue.call("replay", "--yes")
    assert "→ accept" in done.stdout
    assert "→ duplicate duplicates.replayed" in done.stdout
    assert morgue.landed() == 1


def test_the_same_bytes_again_are_the_same_letter(morgue: Morgue) -> None:
    """What dies again after a replay does not double: one letter with its attempts, of which the newest is replayed."""
    message = morgue.message()
    wrong = (partition_of("acme", PARTITIONS) + 1) % PARTITIONS
    morgue.append(message, message, message, partition=wrong)
    (letter,) = morgue.listed()
    assert (letter["letter"], letter["attempts"]) == (f"{EVENTS}/{wrong}/2", 3)
    assert "the same bytes were refused 3 times" in morgue.call("list").stdout
    first = f"{EVENTS}/{wrong}/0"
    assert first in morgue.call("show", first).stdout
    assert "1 of 1 looked at" in morgue.call("replay", "--dry-run").stdout
    assert morgue.call("replay", "--yes").exit_code == 0
    assert len(morgue.records(EVENTS)) == 4
    assert (morgue.landed(), morgue.listed()) == (1, [])


def test_a_dismissed_letter_hides_its_older_copies(morgue: Morgue) -> None:
    """Whoever dismisses the newest has dismissed the letter; the same bytes after that are open again."""
    message = morgue.message()
    wrong = (partition_of("acme", PARTITIONS) + 1) % PARTITIONS
    morgue.append(message, message, partition=wrong)
    (letter,) = morgue.listed()
    assert morgue.call("reject", letter["letter"], "--yes", "--why", "noise").exit_code == 0
    assert morgue.listed() == []
    morgue.append(message, partition=wrong)
    assert [one["attempts"] for one in morgue.listed()] == [3]


def test_what_is_dismissed_takes_no_room_from_what_is_open(morgue: Morgue) -> None:
    """A look counts its room over what is asked for: old letters hide no new one."""
    named = [morgue.misplaced(f"w-{number}") for number in range(3)]
    morgue.call("reject", *named[:2], "--yes", "--why", "noise")
    with ExitStack() as closing:
        desk = desks.embedded(morgue.home, closing)
        wanted = LetterFilter(states=frozenset({LetterState.OPEN}))
        found = look(desk.letters, desk.desk.audit, morgue.keys.keyring(), wanted, partitions=PARTITIONS, letters_max=1)
        assert ([one.letter.letter_id for one in found.seen], found.left_out) == ([named[2]], 0)


class Killed(BaseException):
    """The simulated death of the process."""


def test_a_run_killed_after_publishing_and_resumed_lands_each_letter_once(morgue: Morgue) -> None:
    """Killed between publishing and the answers, with the stages stopped: the repetition is a duplicate."""
    for number in range(5):
        morgue.misplaced(f"w-{number}")
    run = LetterRun("d1", 0, False, 10, LetterFilter())
    with ExitStack() as closing:
        desk = desks.embedded(morgue.home, closing)

        def killed() -> None:
            raise Killed

        dying = replace(desk, desk=replace(desk.desk, settle=killed))
        found = look(desk.letters, desk.desk.audit, morgue.keys.keyring(), run.wanted, partitions=PARTITIONS)
        todo = plan(run, found).todo
        with pytest.raises(Killed):
            next(replay(dying, run, todo, rate=1e6, batch=2, wait_s=5, partitions=PARTITIONS, now_ms=wall_ms))
    file = morgue.home.path / "replays" / "d1.json"
    file.parent.mkdir()
    replace(run, started_ms=wall_ms()).save(file)
    refused = morgue.call("replay", "--resume", "d1", "--yes", "--dry-run", "--reason", "malformed")
    assert (refused.exit_code, "leave out --reason, --dry-run," in str(refused.exception)) == (1, True)
    resumed = morgue.call("replay", "--resume", "d1", "--yes")
    assert resumed.exit_code == 0, resumed.output
    assert (resumed.stdout.count("→ accept"), resumed.stdout.count("→ duplicate")) == (3, 2)
    assert (morgue.landed(), morgue.listed()) == (5, [])


def test_what_would_fail_again_is_not_published_and_stops_the_run(morgue: Morgue) -> None:
    """A key that nobody knows, until the operator mends it: the run stops, says how to go on, and goes on."""
    issue_credential(morgue.keys, Role.USER_CHANNEL, "user", ["acme"], kid="late")
    message = morgue.message(source="late")
    ring, registry = morgue.keys.load_keyring(), morgue.keys.load_registry()
    morgue.keys.save_keyring(type(ring)([key for key in ring if key.kid != "late"]))
    morgue.append(message)
    second = morgue.misplaced("w-2")
    stopped = morgue.call("replay", "--yes", "--batch", "1")
    assert stopped.exit_code == 3, stopped.output
    assert "unknown_key → still unknown_key, not published" in stopped.stdout
    assert len(morgue.records(DEAD_LETTER)) == 2
    assert f"{second}" not in stopped.stdout
    run = stopped.stdout.split("--resume ")[1].split()[0]
    went_on = morgue.call("replay", "--yes", "--batch", "1", "--go-on")
    assert (went_on.exit_code, f"{second}  claims acme  wrong_partition → accept" in went_on.stdout) == (3, True)
    morgue.keys.save_keyring(ring)
    morgue.keys.save_registry(registry)
    resumed = morgue.call("replay", "--yes", "--resume", run)
    assert resumed.exit_code == 0, resumed.output
    assert "unknown_key → accept" in resumed.stdout
    assert (morgue.landed(), morgue.listed()) == (2, [])


def test_a_run_is_bounded_and_asks_first(morgue: Morgue) -> None:
    """At most so many, in the order of the log; without a yes nothing is published."""
    for number in range(3):
        morgue.misplaced(f"w-{number}")
    assert morgue.call("replay", input="\n").exit_code == 1
    assert len(morgue.records(EVENTS)) == 3
    done = morgue.call("replay", "--yes", "--max-messages", "2")
    assert "1 more are left for another run" in done.stdout
    assert (morgue.landed(), len(morgue.listed())) == (2, 1)


def test_what_came_from_the_gate_itself_is_never_published(morgue: Morgue) -> None:
    """A replay writes to intake topics alone: a letter of what *screen* sent is refused, in words."""
    morgue.append(morgue.message())
    record = morgue.records(ACCEPTED)[0]
    forged = (record.value or b"").replace(b'"sig":"', b'"sig":"A')
    log = morgue.assembly.local_log()
    log.append(ACCEPTED, record.key, forged, record.headers, append_ms=wall_ms(), partition=record.partition)
    log.close()
    morgue.append()
    (letter,) = morgue.listed()
    assert (letter["topic"], letter["reason"]) == (ACCEPTED, "seal")
    before = len(morgue.records(ACCEPTED))
    done = morgue.call("replay", "--yes")
    assert (done.exit_code, "seal → still not_intake, not published" in done.stdout) == (3, True)
    assert len(morgue.records(ACCEPTED)) == before


def test_a_dismissal_is_signed_audited_and_hides_the_letter(morgue: Morgue) -> None:
    """By a reviewer of all tenants, for a reason; the letter stays in its topic, and another one in the list."""
    letter, other = morgue.misplaced(), morgue.misplaced("w-2")
    done = morgue.call("reject", letter, "--yes", "--why", "a test of the \u202enew partner")
    assert done.exit_code == 0, done.output
    assert f"{letter}: dismissed" in done.stdout
    assert names(morgue.listed()) == [other]
    told = next(one for one in morgue.listed("--all") if one["letter"] == letter)
    assert (told["state"], told["dismissed"]["by"]) == ("dismissed", "reviewer-all")
    assert "dismissed by reviewer-all" in morgue.call("show", letter).stdout
    assert acts(morgue.call("show", letter).stdout) == set()
    assert "1 dead letters," in morgue.call("replay", "--dry-run").stdout.replace(" are", "")
    assert morgue.call("reject", letter, "--yes").exit_code == 2  # --why is not an option


def test_a_tenants_reviewer_dismisses_nothing(morgue: Morgue) -> None:
    """What a letter claims gives nobody a say: without a credential for all tenants nothing is signed."""
    letter = morgue.misplaced()
    morgue.keys.credential_path("reviewer-all").unlink()
    done = morgue.call("reject", letter, "--yes", "--why", "mine")
    assert "no reviewer credential for tenant *" in str(done.exception)
    assert morgue.records(COMMANDS) == []


@pytest.mark.parametrize(
    ("tenant", "digest", "why", "code"),
    [
        ("acme", "0" * 64, "noise", "dismissal.one_tenant"),
        (EVERYBODY, None, "noise", "dismissal.incomplete"),
        (EVERYBODY, "0" * 64, "", "dismissal.incomplete"),
    ],
)
def test_a_dismissal_that_says_too_little_is_refused(
    morgue: Morgue, tenant: str, digest: str | None, why: str, code: str
) -> None:
    """Addressed to a tenant, without a digest, without a reason: the gate refuses it, and the audit says so."""
    now = datetime.now(UTC)
    payload = requests.command(
        "c-1", now, tenant, Action.DISMISS, "memory.events.v1/0/0", now + timedelta(minutes=5), digest=digest,
        reason=why,
    )  # fmt: skip
    message = build(payload, [morgue.keys.credential("reviewer-all").signer()], source="urn:test:reviewer")
    morgue.append(message, topic=COMMANDS)
    (record,) = morgue.records(AUDIT)
    verdict = open_(morgue.keys.keyring(), tenant, VERDICT, record.value or b"")
    assert (verdict["decision"], verdict["reasons"]) == ("reject", [code])


def test_a_dismissal_counts_for_those_bytes_alone(morgue: Morgue) -> None:
    """Another input under the same name (a topic made anew) is open; so is one that a forged audit record names."""
    letter = morgue.misplaced()
    morgue.call("reject", letter, "--yes", "--why", "noise")
    assert morgue.listed() == []
    record = morgue.records(DEAD_LETTER)[0]
    log = morgue.assembly.local_log()
    log._connection.execute("DELETE FROM records WHERE topic = ?", (DEAD_LETTER,))
    log.append(DEAD_LETTER, record.key, b"other bytes", record.headers, append_ms=wall_ms(), partition=record.partition)
    log.close()
    assert names(morgue.listed()) == [letter]


def test_several_letters_are_dismissed_at_once_or_none(morgue: Morgue) -> None:
    """Letters of several partitions in one call; a name that is none dismisses nothing, and is shown escaped."""
    named = [morgue.misplaced(), morgue.misplaced("w-2", tenant="globex")]
    missing = morgue.call("reject", *named, "memory.events.v1/0/\u202e9", "--yes", "--why", "noise")
    assert "there is no dead letter memory.events.v1/0/<U+202E>9" in str(missing.exception)
    assert names(morgue.listed()) == named
    done = morgue.call("reject", *named, "--yes", "--why", "noise")
    assert (done.exit_code, done.stdout.count(": dismissed")) == (0, 2)
    assert morgue.listed() == []


def test_a_release_is_refused_in_one_sentence(morgue: Morgue) -> None:
    """Nothing in a dead letter is authenticated, so no signature of a reviewer makes it land."""
    letter = morgue.misplaced()
    done = morgue.call("release", letter)
    assert (done.exit_code, "nothing in it is authenticated" in str(done.exception)) == (1, True)
    assert morgue.records(COMMANDS) == []


def test_stats_count_what_is_open(morgue: Morgue) -> None:
    """States, and what is open by reason, topic, partition and claimed tenant."""
    letter = morgue.misplaced()
    morgue.misplaced("w-2", tenant="globex")
    morgue.call("reject", letter, "--yes", "--why", "noise")
    told = json.loads(morgue.call("stats", "--json").stdout)
    assert told["states"] == {"dismissed": 1, "open": 1}
    assert (told["reasons"], told["claimed_tenants"]) == ({"wrong_partition": 1}, {"globex": 1})
    assert "is open for" in morgue.call("stats").stdout


def test_no_dead_letter_acts_on_the_terminal(morgue: Morgue) -> None:
    """Escapes, bidi, zero width, 8 KiB without a space, emoji, markup, tags: in key, headers, value and payload."""
    for number, text in enumerate(HOSTILE.values()):
        morgue.misplaced(f"w-{number}", content=text)
        raw = text.encode("utf-8", "surrogatepass")
        morgue.append(Message(raw[:200], raw, ((text[:60] or "x", raw), ("ce_id", raw))))
    letters = morgue.listed()
    assert len(letters) == 2 * len(HOSTILE)
    commands = [("list",), ("stats",), ("replay", "--dry-run"), *(("show", one) for one in names(letters))]
    for command in commands:
        for width in ("40", "160"):
            done = morgue.call(*command, env={"COLUMNS": width})
            assert done.output
            assert acts(done.output) == set(), command


def test_a_letters_words_are_known_to_other_commands(morgue: Morgue) -> None:
    """A dismissal is no held write's affair: the quarantine neither lists nor counts it."""
    letter = morgue.misplaced()
    morgue.call("reject", letter, "--yes", "--why", "noise")
    told = CliRunner().invoke(quarantine, ["stats", "--json", "--home", str(morgue.home.path)])
    assert json.loads(told.stdout)["states"] == {}


def test_a_note_is_shown_and_replayed_with_the_bytes_that_the_intake_has(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a flood only notes are kept: as long as the intake has the record, a note is as good as the letter."""
    monkeypatch.setattr(seal, "LetterBudget", lambda: LetterBudget(letter_bytes_max=0))
    letter = morgue.misplaced()
    assert names(morgue.listed()) == [letter]
    shown = morgue.call("show", letter)
    assert shown.exit_code == 0, shown.output
    assert TEA in shown.output
    assert "found in the intake topic" in shown.output.replace("\n", " ")
    with ExitStack() as closing:
        desk = desks.embedded(morgue.home, closing)
        keyring = desk.desk.keys.keyring()
        found = look(desk.letters, desk.desk.audit, keyring, LetterFilter(), partitions=PARTITIONS)
        (whole,) = look_whole(desk.letters, keyring, found.seen, desk.intake)
        (gone,) = look_whole(desk.letters, keyring, found.seen, lambda why: None)
    assert whole.letter.original is not None
    assert whole.letter.claims.tenant == "acme"
    assert whole.letter.digest == gone.letter.digest == found.seen[0].letter.digest  # what a dismissal is bound to
    assert gone.letter.original is None


def test_a_note_whose_bytes_are_gone_is_told_and_not_replayed(morgue: Morgue, monkeypatch: pytest.MonkeyPatch) -> None:
    """What neither topic has any more is no empty record: it is shown as a note, and its replay fails in words."""
    monkeypatch.setattr(seal, "LetterBudget", lambda: LetterBudget(letter_bytes_max=0))
    morgue.misplaced()
    with ExitStack() as closing:
        desk = replace(desks.embedded(morgue.home, closing), intake=lambda why: None)
        keyring = desk.desk.keys.keyring()
        found = look(desk.letters, desk.desk.audit, keyring, LetterFilter(), partitions=PARTITIONS, whole=True)
        told = {line.label: line.pieces[0].text for line in lines(found.seen[0], wall_ms(), str)}
        run = LetterRun("d1", wall_ms(), False, 10, LetterFilter())
        results = list(
            replay(desk, run, found.seen, rate=100, batch=10, wait_s=1, partitions=PARTITIONS, now_ms=wall_ms)
        )
    assert "gone from the intake" in told["kept"]
    assert [(one.reason, one.published) for one in results[0]] == [("not_kept", False)]


def test_a_note_of_a_batch_that_is_not_unpacked_is_not_read_by_anybody_else(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kB may unpack to more than there is memory. The gate judged the record without its bytes, and a reader that
    looks for them would unpack the batch in the operator's process: the view says so, and nothing is read."""
    monkeypatch.setattr(seal, "LetterBudget", lambda: LetterBudget(letter_bytes_max=0))
    morgue.append(Message(None, None, ((NOT_UNPACKED_HEADER, b"1"),)), partition=3)  # what the runtime has in its place

    def nobody(_topic: str) -> Any:
        raise AssertionError("the intake topic is read")

    with ExitStack() as closing:
        desk = desks.embedded(morgue.home, closing)
        desk = replace(desk, intake=desks._intake_of(nobody, desk.desk.keys.keyring))
        keyring = desk.desk.keys.keyring()
        found = look(desk.letters, desk.desk.audit, keyring, LetterFilter(), partitions=PARTITIONS)
        (whole,) = look_whole(desk.letters, keyring, found.seen, desk.intake)
        told = {line.label: line.pieces[0].text for line in lines(whole, wall_ms(), str)}
        run = LetterRun("d1", wall_ms(), False, 10, LetterFilter())
        results = list(
            replay(desk, run, found.seen, rate=100, batch=10, wait_s=1, partitions=PARTITIONS, now_ms=wall_ms)
        )
    assert "gone" not in told["kept"]
    assert "lie in the intake topic, and its batch unpacks to more than is read" in told["kept"]
    assert [(one.reason, "unpacks" in one.detail, one.published) for one in results[0]] == [("not_kept", True, False)]
