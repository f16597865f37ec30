"""Experiments use the product: streams become signed events, and every write gets one verdict, always the same."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.encoders import minilm

from memsluice.encoder import Encoder
from memsluice.errors import ConfigError
from memsluice.events.models import Observation, Origin, Recall, Write
from memsluice_lab import cast
from memsluice_lab import run as lab
from memsluice_lab.streams import (
    HIDDEN,
    Published,
    Restamp,
    Unsendable,
    ending,
    events_of,
    read_stream,
    signed,
    tenant_of,
)

from .stream import line, small, write


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real encoder."""
    return minilm()


def decided(path: Path, out: Path, encoder: Encoder) -> tuple[bytes, dict[int, dict[str, Any]]]:
    """Run one stream; return the verdict file's bytes and its lines by seq."""
    lab.run_stream(path, out, encoder=encoder, chosen=lab.policy_set(None))
    data = (out / path.name).read_bytes()
    lines = [json.loads(raw) for raw in data.splitlines()]
    return data, {each["seq"]: each for each in lines}


def test_every_write_has_exactly_one_verdict_and_nothing_else_has(tmp_path: Path, encoder: Encoder) -> None:
    """The scorer's contract: one line a write, none for questions and observations, words that it knows."""
    path = write(tmp_path / "in", small())
    data, lines = decided(path, tmp_path / "out", encoder)
    assert sorted(lines) == [each["seq"] for each in small() if each["kind"] == "write"]
    assert data.count(b"\n") == len(lines)
    assert {each["decision"] for each in lines.values()} <= {"accept", "contain", "quarantine", "reject"}
    assert {each["scope"] for each in lines.values()} <= {"shared", "principal", "session"}


def test_provenance_decides_as_the_design_says(tmp_path: Path, encoder: Encoder) -> None:
    """User and clean agent writes land; tool, web and laundered writes are contained; an oversize one is refused."""
    _, lines = decided(write(tmp_path / "in", small()), tmp_path / "out", encoder)
    expected = {1: "accept", 2: "accept", 3: "contain", 4: "contain", 6: "contain", 7: "accept", 8: "contain"}
    expected |= {9: "accept", 10: "reject", 13: "contain", 14: "accept", 15: "accept"}
    assert {seq: each["decision"] for seq, each in lines.items()} == expected
    assert lines[1]["scope"] == "principal"
    assert lines[10]["reasons"] == ["limit_exceeded"]


def test_two_runs_give_the_same_bytes(tmp_path: Path, encoder: Encoder) -> None:
    """Nothing in a verdict file depends on the clock of the machine, on chance or on an earlier run."""
    path = write(tmp_path / "in", small())
    assert decided(path, tmp_path / "a", encoder)[0] == decided(path, tmp_path / "b", encoder)[0]


def test_hidden_fields_change_nothing(tmp_path: Path, encoder: Encoder) -> None:
    """A stream without its labels, or with wrong ones, gets the same verdicts to the last byte."""
    bare = [{name: value for name, value in each.items() if name not in HIDDEN} for each in small()]
    wrong = [{**each, "label": "attack", "attack": "x", "channel": "user", "category": "y"} for each in small()]
    results = [
        decided(write(tmp_path / name, lines), tmp_path / name / "out", encoder)[0]
        for name, lines in (("full", small()), ("bare", bare), ("wrong", wrong))
    ]
    assert results[0] == results[1] == results[2]
    assert all(not HIDDEN & set(each) for each in read_stream(write(tmp_path / "again", small())))


def test_a_later_event_does_not_change_an_earlier_verdict(tmp_path: Path, encoder: Encoder) -> None:
    """What is decided about a write depends on it and on earlier events alone: a cut stream gives a cut file."""
    _, whole = decided(write(tmp_path / "whole", small()), tmp_path / "a", encoder)
    _, cut = decided(write(tmp_path / "cut", small()[:9]), tmp_path / "b", encoder)
    assert cut == {seq: each for seq, each in whole.items() if seq < 9}


def test_each_session_is_opened_once_by_the_runtime_before_anything_else(tmp_path: Path) -> None:
    """An agent's writes count as untainted only in a session that the platform opened."""
    seen: set[str] = set()
    for item in events_of(small()):
        if not isinstance(item, Published):
            continue
        session = getattr(item.payload, "session", "")
        if session not in seen:
            assert isinstance(item.payload, Observation)
            assert item.payload.origin is Origin.OPEN
            assert item.source == "runtime"
            assert item.seq is None
            seen.add(session)
        else:
            assert item.seq is not None
    assert len(seen) == 10


def test_lines_become_the_right_payloads_of_the_right_credentials() -> None:
    """A question is a recall of a reader, outside content an observation of the runtime, a write its source's."""
    by_seq = {item.seq: item for item in events_of(small()) if isinstance(item, Published) and item.seq is not None}
    assert isinstance(by_seq[0].payload, Recall)
    assert by_seq[0].source == "reader"
    assert isinstance(by_seq[5].payload, Observation)
    assert (by_seq[5].payload.origin, by_seq[5].source) == (Origin.WEB, "runtime")
    written = by_seq[9].payload
    assert isinstance(written, Write)
    assert written.parents == ("garden-club.000001",)
    assert {seq: by_seq[seq].source for seq in (1, 2, 3, 4)} == {1: "user", 2: "agent", 3: "web", 4: "tool"}


def test_oversize_content_still_taints_and_oversize_writes_are_counted() -> None:
    """No session stays clean by reading something too long to publish; no write is dropped silently for its size."""
    items = list(events_of(small()))
    observed = next(i.payload for i in items if isinstance(i, Published) and i.seq == 12)
    assert isinstance(observed, Observation)
    assert observed.content is None
    assert observed.digest is not None
    refused = [item for item in items if isinstance(item, Unsendable)]
    assert [(item.seq, item.kind, item.field) for item in refused] == [(10, "write", "content")]


def test_restamping_moves_to_now_and_makes_ids_and_sessions_its_own() -> None:
    """The same stream can be played on a real broker again and again: ids differ, lineage inside stays whole."""
    first, second = (list(events_of(small(), restamp=Restamp(run, lambda: 1_800_000_000_000))) for run in ("a", "b"))
    ids = [{i.payload.id for i in items if isinstance(i, Published)} for items in (first, second)]
    assert not ids[0] & ids[1]
    child = next(i.payload for i in first if isinstance(i, Published) and i.seq == 9)
    assert isinstance(child, Write)
    assert set(child.parents) <= ids[0]
    assert all(i.append_ms == 1_800_000_000_000 for i in first if isinstance(i, Published))


def test_a_stream_can_be_moved_to_end_now() -> None:
    """Moving keeps the distances between events and puts the last one at the stated time."""
    moved = [i.append_ms for i in events_of(ending(small(), 1_800_000_000_000)) if isinstance(i, Published)]
    original = [i.append_ms for i in events_of(small()) if isinstance(i, Published)]
    assert max(moved) == 1_800_000_000_000
    assert [b - a for a, b in pairwise(moved)] == [b - a for a, b in pairwise(original)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ('{"seq": 1}', "missing"),
        ("", ""),
        (json.dumps(line(0, "query", "user", "?") | {"seq": "first"}), "seq is no whole number"),
        (json.dumps(line(0, "query", "user", "?") | {"seq": True}), "seq is no whole number"),
        (json.dumps(line(0, "write", "user", "!", parents=["first"])), "parents no list of them"),
        (json.dumps(line(0, "write", "user", "!", parents="first")), "parents no list of them"),
        (json.dumps(line(0, "write", "user", "!", tenant=None) | {"text": None}), "tenant, text: no text"),
        (json.dumps(line(0, "write", "user", "!") | {"kind": ["write"]}), "kind: no text"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, text: str, says: str) -> None:
    """A stream that cannot be read says which line, and why; an empty line is none."""
    path = tmp_path / "s.jsonl"
    path.write_text(text + "\n")
    if not says:
        assert list(read_stream(path)) == []
        return
    with pytest.raises(ConfigError, match=rf"s\.jsonl:1: .*{says}"):
        list(read_stream(path))


def test_a_seq_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Two writes of one seq would have one verdict between them, and nobody would know whose."""
    path = write(tmp_path, [small()[1], small()[2] | {"seq": 1}])
    with pytest.raises(ConfigError, match=r"garden\.jsonl:2: seq 1 stands on a line before"):
        list(read_stream(path))


def test_verdicts_never_take_the_place_of_the_streams(tmp_path: Path) -> None:
    """``lab run X X``, by whatever way the folder is named, changes nothing and says why."""
    path = write(tmp_path / "in", small())
    (tmp_path / "link").symlink_to(tmp_path / "in")
    before = path.read_bytes()
    for out in (tmp_path / "in", tmp_path / "link", tmp_path / "in" / ".." / "in"):
        with pytest.raises(ConfigError, match="the streams themselves"):
            lab.run(tmp_path / "in", out)
    assert path.read_bytes() == before


def test_a_stream_s_name_need_not_be_text() -> None:
    """A file name of any bytes gives keys, and the others' keys stay as they were."""
    assert cast.in_memory(["a"], seed="\udcff")[0] != cast.in_memory(["a"], seed="x")[0]


def test_a_source_without_a_credential_is_refused() -> None:
    """An adapter that does not know a source says so and signs nothing."""
    _, _, signers = cast.in_memory(["garden-club"], seed="t")
    item = next(i for i in events_of([{**small()[1], "source": "oracle"}]) if isinstance(i, Published) and i.seq == 1)
    with pytest.raises(ConfigError, match="oracle"):
        signed(item, signers)


@pytest.mark.parametrize(
    ("name", "tenant"), [("Garden Club", "garden-club"), ("-x", "t-x"), ("é" * 80, "t" + "-" * 62)]
)
def test_any_tenant_name_becomes_a_tenant_id(name: str, tenant: str) -> None:
    """Streams from elsewhere may name tenants as they like."""
    assert tenant_of(name) == tenant


def test_several_jobs_give_the_same_files(tmp_path: Path) -> None:
    """Streams in parallel processes are decided as one after the other."""
    write(tmp_path / "in", small(), "one")
    write(tmp_path / "in", small()[:8], "two")
    told: list[str] = []
    watch = lab.Watch(finished=lambda result: told.append(result.name))
    lab.run(tmp_path / "in", tmp_path / "a", watch=watch)
    lab.run(tmp_path / "in", tmp_path / "b", jobs=2, watch=watch)
    assert sorted(told) == ["one", "one", "two", "two"]
    for name in ("one.jsonl", "two.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
