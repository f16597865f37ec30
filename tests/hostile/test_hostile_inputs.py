"""Every decoder under hostile input: a small share of what the figure runs, and what it once found, by hand."""

import random
from pathlib import Path

import orjson
import pytest

from memsluice.encoder import load_encoder
from memsluice.envelope import codec, dsse, records
from memsluice.errors import ConfigError, MalformedEvent, SealError, TopicsError
from memsluice.events.models import Command
from memsluice.events.names import DEAD_LETTER_HEADER, SEALED
from memsluice.events.records import Record
from memsluice.gate.policy.model import default
from memsluice.keystore import files
from memsluice.stages.dead_letter import PARTS_MAX, original
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.topics import spec
from memsluice.topics.names import EVENTS, PARTITIONS
from memsluice_lab.hostile import campaign, mutate
from memsluice_lab.hostile.judge import Judgement, Target
from memsluice_lab.hostile.specimens import NOW_MS, PARTITION, TENANT, Specimens, collect
from memsluice_lab.model.production import DictRows

INPUTS = 4_000
DEEP = b"[" * 1_000 + b"]" * 1_000


@pytest.fixture(scope="module")
def specimens() -> Specimens:
    """Valid inputs of every kind, once."""
    return collect(load_encoder())


@pytest.fixture(scope="module")
def targets(specimens: Specimens) -> list[Target]:
    """Every target, once."""
    return campaign.all_targets(specimens)


def test_a_share_of_the_figure_finds_nothing(targets: list[Target]) -> None:
    """Whatever arrives is read as what it is or refused in the project's own words, by every decoder there is."""
    tally = campaign.run(targets, INPUTS)
    assert tally.failures == []
    assert sum(tally.of(one) for one in (Judgement.READ, Judgement.WRITTEN, Judgement.REFUSED)) == INPUTS


def test_every_decoder_reads_what_is_valid_and_refuses_what_is_not(targets: list[Target]) -> None:
    """A campaign whose inputs are all refused, or all read, would test one branch: each target sees hostile input."""
    tally = campaign.run([target for target in targets if target.refusals], INPUTS, first=10**9)
    for target in targets:
        if target.refusals:
            assert tally.counts[target.name, Judgement.REFUSED], target.name
    assert tally.of(Judgement.READ) + tally.of(Judgement.WRITTEN) > INPUTS / 20


def test_an_appeal_that_carries_deep_nesting_does_not_end_screen(specimens: Specimens) -> None:
    """Any producer may appeal, and what an appeal carries is opened before its permissions are looked at: nesting that
    Python can not print ended *screen*, again after each restart."""
    appeal = next(one for one in specimens.sent if isinstance(one.payload, Command) and one.source == "agent")
    held = b'{"admission":{},"content":' + DEEP + b',"vector":""}'
    payload = appeal.payload.model_copy(update={"held": held.decode()})
    envelope = dsse.sign(
        "application/vnd.memory.command.v1+json",
        payload.model_dump_json().encode(),
        [specimens.signers[TENANT, "agent"]],
    )
    message = appeal.message._replace(
        value=orjson.dumps(envelope),
        headers=tuple(header for header in appeal.message.headers if header[0] != "ce_payloadsha256"),
    )
    ((sealed,),) = specimens.stage.process([Record(EVENTS, PARTITION, 0, *message, timestamp_ms=NOW_MS)])
    assert sealed.topic == "memory.sealed.v1"
    policy = default().default
    screen = ScreenStage(lambda: specimens.keyring, lambda _tenant: policy, PARTITIONS, lambda: NOW_MS)
    step = screen.process(Record(sealed.topic, PARTITION, 0, sealed.key, sealed.value, (), NOW_MS), DictRows())
    verdict = records.verdict_from_bytes(specimens.keyring, TENANT, step.outputs[0].value or b"")
    assert verdict.event_id == payload.id


@pytest.mark.parametrize("depth", [codec.DEPTH_MAX + 1, 300, 1_000])
def test_a_record_too_deep_to_be_written_is_not_read(specimens: Specimens, depth: int) -> None:
    """The parser follows 1,024 levels and the writer 254: a verdict between them could be read and not sent again."""
    data = b'{"a":' * depth + b"1" + b"}" * depth
    envelope = dsse.sign(SEALED, data, [specimens.keyring.tenant_key(specimens.kid, TENANT)])
    with pytest.raises(SealError):
        records.verdict_from_bytes(specimens.keyring, TENANT, orjson.dumps(envelope))
    with pytest.raises(MalformedEvent, match="nested"):
        codec.from_json(data)
    assert codec.from_json(b'"' + b"[" * 10_000 + b'"') == "[" * 10_000  # brackets in a text are no nesting


@pytest.mark.parametrize(
    "told",
    [
        None, b"", b"{", b"[]", b'"x"', b'{"kind":"value","part":1,"parts":"2","head_parts":0}',
        b'{"kind":"value","part":1,"parts":%d,"head_parts":0}' % (PARTS_MAX + 1),
        b'{"kind":"value","part":1,"parts":1,"head_parts":99999999999999}',
        b'{"kind":[],"part":1,"parts":1,"head_parts":0}',
        b'{"kind":"value"}',
    ],
)  # fmt: skip
def test_a_dead_letters_header_that_says_nonsense_is_refused(told: bytes | None) -> None:
    """Who writes to the topic may claim any number of parts: none is counted up to, and none is a crash."""
    with pytest.raises(MalformedEvent):
        original([(b"k", b"v", ((DEAD_LETTER_HEADER, told),))])


@pytest.mark.parametrize("head", [b"{", b"[]", b'{"key":1,"headers":[]}', b'{"key":null,"headers":[[1]]}'])
def test_a_dead_letters_head_that_is_none_is_refused(head: bytes) -> None:
    """Key and headers of a large record travel as a document of their own, which may be anything by the time."""
    first = {"kind": "value", "part": 1, "parts": 1, "head_parts": 1}
    letters = [
        (None, b"v", ((DEAD_LETTER_HEADER, orjson.dumps(first)),)),
        (None, head, ((DEAD_LETTER_HEADER, orjson.dumps({**first, "kind": "head"})),)),
    ]
    with pytest.raises(MalformedEvent):
        original(letters)


@pytest.mark.parametrize(
    ("field", "value"), [("not_before_ms", 2**70), ("not_after_ms", -1), ("kid", 7), ("tenant", [])]
)
def test_a_key_that_could_not_be_written_again_is_not_read(specimens: Specimens, field: str, value: object) -> None:
    """A keyring file that was read and cannot be saved would lose every key that is added to it."""
    document = orjson.loads(files.keyring_to_bytes(specimens.keyring))
    document["keys"][0][field] = value if value != 2**70 else "2**70"
    data = orjson.dumps(document).replace(b'"2**70"', b"%d" % 2**70)
    with pytest.raises(ConfigError, match=r"keys\.0"):
        files.keyring_from_bytes(data, "keyring.json")


@pytest.mark.parametrize("line", ["when: 2001-13-45", "a: " + "[" * 2_000, "a: !!int ''", "a: !!timestamp x"])
def test_a_topic_file_that_only_looks_like_yaml_is_refused_in_words(tmp_path: Path, line: str) -> None:
    """PyYAML raises what it likes on values that their tag does not fit: the file is named all the same."""
    (tmp_path / "memory.x.v1.yaml").write_text(f"meta: {{name: memory.x.v1}}\n{line}\n")
    with pytest.raises(TopicsError, match=r"memory\.x\.v1\.yaml"):
        spec.load(tmp_path)


def test_the_same_number_draws_the_same_input(targets: list[Target]) -> None:
    """A failure is reported by its number, from which its input can be had again."""
    target = targets[0]
    first, again = (target.draw(random.Random(77)) for _ in range(2))
    assert first == again
    assert first != target.draw(random.Random(78))
    assert mutate.bomb(random.Random(1)) == mutate.bomb(random.Random(1))


def test_one_hostile_record_takes_no_other_with_it(specimens: Specimens) -> None:
    """A batch of *seal* has the hostile record's dead letter and the valid one's sealed event."""
    valid = specimens.sent[1]
    hostile = Record(EVENTS, PARTITION, 0, b"\xff", DEEP, (("ce_id", None),), NOW_MS)
    stage: SealStage = specimens.stage
    first, second = stage.process([hostile, specimens.record(valid.message, EVENTS, offset=1)])
    assert [one.topic for one in first] == ["memory.dead-letter.v1", "memory.sealed.v1"]
    assert [one.topic for one in second] == ["memory.sealed.v1"]
