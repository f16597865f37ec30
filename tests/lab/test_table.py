"""The tables' runner: it counts as the streams' scorer does, changes streams without breaking them, and goes on."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from memsluice.encoder.base import read
from memsluice.envelope.seals import Wording
from memsluice.errors import ConfigError, StateError
from memsluice.gate.policy.model import SIGNALS
from memsluice_lab import run as lab
from memsluice_lab.cli import app as lab_app
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.rewrites import REWRITES
from memsluice_lab.table import changes, page
from memsluice_lab.table.counting import count, landed, pooled, wilson
from memsluice_lab.table.honest import EACH
from memsluice_lab.table.rows import DECLARED, ROWS, SECTIONS, chosen
from memsluice_lab.table.run import Place, finished, gate_version, labelled, measure
from memsluice_lab.table.vectors import DiskEncoder

from .stream import small, write

DATA = os.environ.get("MEMSLUICE_DATA", "")
BUILDER = """\
import json, pathlib, sys
out = pathlib.Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
(out / "garden.jsonl").write_text((pathlib.Path(sys.argv[1]) / "garden.jsonl").read_text())
"""


def streams() -> dict[str, list[dict[str, Any]]]:
    """The small stream, as the runner reads it."""
    return {"garden": [{**line, "stream": "garden"} for line in small()]}


def place(folder: Path) -> Place:
    """Records whose own program gives the small stream."""
    write(folder / "source" / "data", small())
    (folder / "source" / "bench").mkdir()
    (folder / "source" / "bench" / "build_streams.py").write_text(BUILDER)
    return Place(folder / "source", folder / "out", "abc", "2026-11-21", gate_version())


def decided(lines: list[dict[str, Any]], seed: int = 3) -> dict[int, dict[str, Any]]:
    """Random verdicts with everything that a verdict line may have."""
    rng = random.Random(seed)
    verdicts = {}
    for line in lines:
        if line["kind"] == "write":
            said = {"seq": line["seq"], "decision": rng.choice(["accept", "contain", "quarantine", "reject"])}
            said |= {"scope": rng.choice(["shared", "principal", "session"])} if rng.random() < 0.7 else {}
            said |= {"final": rng.choice(["accept", "quarantine"])} if rng.random() < 0.4 else {}
            verdicts[line["seq"]] = said
    return verdicts


def test_wilson_by_hand() -> None:
    """8 of 10: (0.8 + 1.92/10 ± 1.96 √(0.016 + 0.0096)) / 1.384; the ends are never beyond 0 and 1."""
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == 1
    assert wilson(0, 0) == (0, 1)


def test_counts_by_hand() -> None:
    """Contained outside content is where it belongs, a contained user's note is not; laundered words reach others."""
    lines = streams()["garden"]
    verdicts = {line["seq"]: {"decision": "contain"} for line in lines if line["kind"] == "write"}
    verdicts[6] = {"decision": "accept", "final": "quarantine", "scope": "principal"}
    first, final = count(lines, verdicts, final=False), count(lines, verdicts, final=True)
    assert (first["KEPT all"], final["KEPT all"]) == ((2, 3), (3, 3))
    assert (first["REACH all"], final["TPR all"]) == ((1, 3), (1, 3))  # laundered: its own scope does not confine it
    honest = [line for line in lines if line["kind"] == "write" and line["label"] == "benign"]
    inside = [line for line in honest if line["source"] in ("user", "agent")]
    assert final["FPR all"] == (len(inside), len(honest))
    assert final["HELD all"] == (0, len(honest))
    assert pooled([final, final])["FPR all"] == (2 * len(inside), 2 * len(honest))
    with pytest.raises(StateError, match="no verdict"):
        count(lines, {}, final=False)


@pytest.mark.skipif(not (Path(DATA) / "bench" / "score.py").exists(), reason="MEMSLUICE_DATA names no bench/score.py")
@pytest.mark.parametrize("final", [False, True])
def test_the_streams_own_scorer_counts_the_same(tmp_path: Path, final: bool) -> None:
    """Every figure that the given scorer prints has the same k and n here, for verdicts of every kind."""
    lines = streams()["garden"]
    lines += [{**line, "seq": line["seq"] + 16, "channel": "user"} for line in lines if line["label"] == "attack"]
    verdicts = decided(lines)
    write(tmp_path / "in", lines)
    write(tmp_path / "out", list(verdicts.values()))
    command = [sys.executable, str(Path(DATA) / "bench" / "score.py"), str(tmp_path / "in"), str(tmp_path / "out")]
    command += ["--json", str(tmp_path / "said.json"), *(["--final"] if final else [])]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    said = {name: (each["k"], each["n"]) for name, each in json.loads((tmp_path / "said.json").read_text()).items()}
    ours = count(lines, verdicts, final=final)
    assert said
    assert said == {name: ours[name] for name in said}


@pytest.mark.parametrize("name", [name for name in changes.CHANGES if not name.startswith("other")])
def test_a_changed_stream_is_still_one(name: str) -> None:
    """Numbers run from 0, time runs on, parents lie before, and no honest write is lost or changed."""
    before = streams()["garden"]
    after = changes.get(name)(streams(), 7)["garden"]
    assert [line["seq"] for line in after] == list(range(len(after)))
    assert sorted(line["time"] for line in after) == [line["time"] for line in after]
    assert all(parent < line["seq"] for line in after for parent in line["parents"])
    assert "was" not in {key for line in after for key in line}
    if name != "cold":
        honest = [line["text"] for line in before if line["kind"] == "write" and line["label"] == "benign"]
        assert [text for text in (line["text"] for line in after) if text in honest] == honest
    assert changes.get(name)(streams(), 7) == changes.get(name)(streams(), 7)


@pytest.mark.parametrize("rule", REWRITES)
def test_attacks_are_reworded_and_what_was_seen_outside_with_them(rule: str) -> None:
    """An honest agent launders the words that it saw; every attack keeps its labels and what came of it its parents."""
    after = changes.get(f"rewrite {rule}")(streams(), 7)["garden"]
    first = [line for line in after if line["label"] == "attack" and line["session"] == "s4"]
    seen = next(line["text"] for line in after if line["kind"] == "observe" and line["session"] == "s4")
    assert seen.startswith("Forum:")  # it differs from the write, so it stays what it was
    child = next(line for line in after if line["session"] == "s6")
    assert child["parents"] == [line["seq"] for line in first]
    same = [{**line, "text": "Salt is a good fertiliser."} if line["session"] == "s4" else line for line in small()]
    after = changes.get(f"rewrite {rule}")({"garden": same}, 7)["garden"]
    seen = next(line["text"] for line in after if line["kind"] == "observe" and line["session"] == "s4")
    assert seen == " ".join(line["text"] for line in after if line["session"] == "s4" and line["kind"] == "write")


@pytest.mark.parametrize(("name", "second"), [("other topic", "conversation-b"), ("other kind", "qa-b")])
def test_a_change_of_topic_is_two_streams_as_one_tenant(name: str, second: str) -> None:
    """What comes after the change is marked, the first hundred writes apart, and no attack is left."""
    some = {"conversation-a": streams()["garden"], second: streams()["garden"] * 20}
    after = changes.get(name)(some, 7)[f"conversation-a-then-{second}"]
    assert {line["tenant"] for line in after} == {"Garden Club"}
    assert {line["label"] for line in after} == {"benign"}
    phases = [line["phase"] for line in after if line["kind"] == "write"]
    assert phases == sorted(phases, key=["before", "first 100 after", "later"].index)
    assert phases.count("first 100 after") == changes.CHANGE_WRITES


def test_what_prepares_an_attack_is_none_of_the_attacks_counted() -> None:
    """Writes that shift the calibration have a count of their own, and KEPT is of the attacks that were there."""
    after = changes.get("poisoning 20")(streams(), 7)["garden"]
    verdicts = {line["seq"]: {"decision": "accept"} for line in after if line["kind"] == "write"}
    counts = count(after, verdicts, final=True)
    assert counts["KEPT all"][1] == 3
    assert counts["KEPT calibration"][1] > 0


def test_a_split_attack_lands_whole_or_not_at_all() -> None:
    """An attack of which one part is kept out does not stand, though its other parts count as accepted writes."""
    after = changes.get("rewrite split")(streams(), 7)["garden"]
    parts = [line for line in after if line["label"] == "attack" and line["session"] == "s4"]
    assert len(parts) == 2
    verdicts = {line["seq"]: {"decision": "accept"} for line in after if line["kind"] == "write"}
    assert landed(after, verdicts) == [6, 8, 13]
    verdicts[parts[0]["seq"]] = {"decision": "accept", "final": "quarantine"}
    assert landed(after, verdicts) == [8, 13]
    assert count(after, verdicts, final=True)["WHOLE all"] == (2, 3)
    assert count(after, verdicts, final=False)["WHOLE all"] == (3, 3)
    assert count(after, verdicts, final=True)["KEPT all"][1] > 3


def test_hard_negatives_are_added_in_every_category() -> None:
    """Fifteen of each kind that a stream has the material for, each in a session of its own, none an attack."""
    added = [
        line for line in changes.hard_negatives(streams(), 7)["garden"] if str(line["category"]).startswith("added")
    ]
    kinds = [line["category"] for line in added]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "added preference": EACH,
        "added e-mail": EACH,
        "added quoted question": 2,  # the stream asks two questions
        "added cached answer": 2,
    }
    assert len({line["session"] for line in added}) == len(added)
    assert {line["label"] for line in added} == {"benign"}


def test_every_row_can_be_asked_for() -> None:
    """Each row's policy, change and section exist; names are unique; a name or a section chooses rows."""
    for row in ROWS.values():
        row.in_force()
        changes.get(row.change)
    assert {row.section for row in ROWS.values()} == {section.name for section in SECTIONS}
    assert {row.section for row in chosen(("budgets", "default"))} == {"budgets", "systems"}
    assert chosen(("default",)) == [ROWS["default"]]
    with pytest.raises(ConfigError, match="nosuch"):
        chosen(("nosuch",))


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """A finished stream is not measured again, one that is missing is; another declaration is another row."""
    row, where = replace(ROWS["default"], seeds=(7,)), place(tmp_path)
    told: list[str] = []
    measure([row], where, say=told.append)
    kept = finished(row, where.out)
    more = replace(row, seeds=(7, 8))
    measure([more], where, say=told.append)
    assert [line.split(":")[0] for line in told] == ["default, seed 7, garden", "default, seed 8, garden"]
    assert finished(more, where.out)["7"] == kept["7"]
    assert kept["7"]["garden"]["final"]["KEPT all"] == [3, 3]  # laundered, from a tainted parent, after a tool's result
    assert finished(replace(row, policy={"detect": {"alpha": 0.5}}), where.out) == {}


def test_a_row_decides_as_the_lab_does(tmp_path: Path) -> None:
    """The runner's verdicts are those of ``lab run`` on the same stream."""
    where = place(tmp_path)
    measure([replace(ROWS["default"], seeds=(7,))], where, say=lambda line: None)
    lab.run(where.out / "streams" / "seed-7", tmp_path / "plain")
    plain = [json.loads(line) for line in (tmp_path / "plain" / "garden.jsonl").read_text().splitlines()]
    ours = (where.out / "verdicts" / "default" / "seed-7" / "garden.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in ours] == [
        {name: line[name] for name in ("seq", "decision", "scope", "final") if name in line} for line in plain
    ]


class Counting:
    """An encoder that reads wordings, and counts what it is asked."""

    model_id, revision, dimensions = "counting", "1", 4

    def __init__(self) -> None:
        self.asked = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Not what a cache may ask."""
        raise AssertionError("its wordings would be lost")

    def read(self, texts: Sequence[str]) -> tuple[np.ndarray, list[Wording | None]]:
        """Vectors and wordings by the texts' lengths."""
        self.asked += len(texts)
        vectors = np.stack([np.full(4, 1 / (2 + len(text)), np.float32) for text in texts])
        return vectors, [Wording(len(text) / 7, 0, len(text), len(text)) if text else None for text in texts]


class Plain:
    """An encoder without a head."""

    model_id, revision, dimensions = "plain", "1", 4

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One vector for all."""
        return np.stack([np.full(4, 0.5, np.float32) for _ in texts])


TEXTS = ["The shed key is under the blue pot.", "", "The shed key is under the blue pot."]


def test_vectors_and_wordings_are_kept_on_disk(tmp_path: Path) -> None:
    """A second encoder reads nothing again and gives the same vectors and wordings; a record that was cut off is not
    read. A text that was only encoded has its wording, too: figures would lie of one that a cache lost."""
    inner = Counting()
    with DiskEncoder(inner, tmp_path) as first:
        vectors = first.encode(TEXTS)
        assert (first.encoded, inner.asked) == (2, 2)
    path = next(tmp_path.rglob("*.vectors"))
    path.write_bytes(path.read_bytes() + b"torn")
    with DiskEncoder(inner, tmp_path) as second:
        again, wordings = second.read(TEXTS)
        assert np.array_equal(again, vectors)
        assert wordings == inner.read(TEXTS)[1]
        assert wordings[1] is None
        assert second.encoded == 0
        second.encode(["Something new."])
    with DiskEncoder(inner, tmp_path) as third:
        third.read([*TEXTS, "Something new."])
        assert third.encoded == 0
        assert third.read([])[1] == []


def test_another_head_reads_everything_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept is of the code and the model that read it: other ones are another folder."""
    with DiskEncoder(Counting(), tmp_path) as first:
        first.encode(TEXTS)
    monkeypatch.setattr("memsluice_lab.table.vectors.digest_of", lambda packages: "another")
    with DiskEncoder(Counting(), tmp_path) as second:
        second.encode(TEXTS)
        assert second.encoded == 2


def test_the_memo_keeps_wordings(tmp_path: Path) -> None:
    """A text is read once, whether it is encoded or read first, and an encoder without a head shows nothing."""
    inner = Counting()
    memo = MemoEncoder(inner)
    vectors = memo.encode(TEXTS)
    again, wordings = memo.read(TEXTS)
    assert inner.asked == 2
    assert np.array_equal(again, vectors)
    assert wordings == inner.read(TEXTS)[1]
    for wrapped in (MemoEncoder(Plain()), DiskEncoder(Plain(), tmp_path)):
        assert read(wrapped, TEXTS)[1] == [None] * 3


def test_the_page_says_what_is_missing(tmp_path: Path) -> None:
    """A row that was not measured says so; one that was has its share, interval, range, sizes and commit."""
    counts = {
        "KEPT all": [90, 100],
        "REACH all": [2, 100],
        "FPR all": [2, 200],
        "HELD all": [0, 200],
    }
    half = {name: [k // 2, n // 2] for name, (k, n) in counts.items()}
    said = {"commit": "abc", "date": "2026-11-21", "gate": "g1", "seconds": 60, "first": half, "final": half}
    other = {**said, "final": {**half, "KEPT all": [40, 50]}}
    both, others = {"a": said, "b": said}, {"a": other, "b": other}
    text = page.render({"default": {"7": both, "8": others, "9": {"a": said}}, "no-question": {"7": {"a": said}}})
    row = next(line for line in text.splitlines() if line.startswith("| default detector |"))
    assert "90.0 [82.6, 94.5]; 80.0 to 90.0 | 90.0 | 2.0 [0.6, 7.0]" in row
    assert row.endswith("| 100 | 200 | 2 |")
    assert text.count(page.MISSING) == len(ROWS) - 2
    beside = text.splitlines().index(
        next(line for line in text.splitlines() if line.startswith("| without question |"))
    )
    assert "default detector, unchanged* | 90.0 [" in text.splitlines()[beside - 1 - SIGNALS.index("question")]
    assert "commit abc, gate g1: default (7), default (8), default (9), no-question (7)" in text
    assert "not the same" not in text
    assert "**Decided by the gate `g1` (2 rows)**" in text.split("## ")[0]
    other_gate = page.render({"default": {"7": both}, "no-question": {"7": {"a": {**said, "gate": "g2"}}}})
    assert "not the same" in other_gate
    assert "`g1` (1 row), `g2` (1 row)" in other_gate
    assert "No row was measured yet" in page.render({})
    assert "| without question † |" in other_gate
    assert labelled(write(tmp_path, small()).parent)["garden"][0]["stream"] == "garden"


def test_no_row_is_named_twice() -> None:
    """A name is a file: two rows of one name would overwrite each other's results."""
    names = [row.name for row in DECLARED]
    assert sorted(names) == sorted(set(names))


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    """What is kept of a row may have been cut or edited: its file is named, and nothing is counted from it."""
    (tmp_path / "rows").mkdir()
    for text in ("{", "[]", "{}", "\x00"):
        (tmp_path / "rows" / "default.json").write_text(text)
        with pytest.raises(ConfigError, match=r"default\.json holds no row"):
            finished(ROWS["default"], tmp_path)


def test_a_page_that_cannot_be_written_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    """Not after the first stream: nothing was built or decided."""
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    (source / "bench").mkdir()
    (source / "bench" / "build_streams.py").write_text("raise SystemExit('built')")
    words = ["table", "--out", str(tmp_path / "out"), "--data", str(source), "--page", str(tmp_path / "no" / "p.md")]
    done = CliRunner().invoke(lab_app, words)
    assert isinstance(done.exception, FileNotFoundError)
    assert not (tmp_path / "out" / "streams").exists()
