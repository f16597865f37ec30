"""The figure of hard honest writes: what is tried, in which state, and which share is told."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.golden.ring import WordEncoder

from memsluice.errors import ConfigError, StateError
from memsluice.gate.policy.model import parse
from memsluice_lab.figures import hard_negatives as hard
from memsluice_lab.figures.hard_negatives import Kind
from memsluice_lab.figures.registry import Setting
from memsluice_lab.table.honest import PREFERENCES, WISHES
from memsluice_lab.wording.grammar import templates

from .stream import line


def garden(writes: int, recalls: int) -> list[dict[str, Any]]:
    """Return a stream of so many honest writes and questions, and an attack and a page's note among them."""
    some = [line(at, "write", "user", f"Note {at} about bed {at % 5}.", "w") for at in range(writes)]
    some += [line(writes + at, "query", "user", f"What grows in bed {at}?", "q") for at in range(recalls)]
    some += [line(900, "write", "user", "Attack.", "x", label="attack"), line(901, "write", "web", "A page.", "y")]
    return [{**one, "time": "2026-03-02T08:00:00+00:00"} for one in some]


def stored(folder: Path, lines: list[dict[str, Any]], name: str = "qa-nq") -> Path:
    """Write a stream and return its path."""
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    return path


def test_a_tenant_is_made_warm_with_honest_writes_of_people_and_recalls_evenly_spread(tmp_path: Path) -> None:
    """Neither attacks nor pages make it warm, there are so many of each, and questions come all the way through."""
    warm = hard._warm(stored(tmp_path, garden(250, 120)))
    kinds = [one["kind"] for one in warm]
    assert (kinds.count("write"), kinds.count("query")) == (hard.WARM_WRITES, hard.WARM_RECALLS)
    assert {one["source"] for one in warm} == {"user"}
    assert {one["label"] for one in warm} == {"benign"}
    half = kinds[: len(kinds) // 2]
    assert abs(half.count("query") - hard.WARM_RECALLS / 2) <= 1


@pytest.mark.parametrize(("writes", "recalls"), [(99, 120), (250, 49)])
def test_a_stream_too_short_to_warm_a_tenant_is_refused(tmp_path: Path, writes: int, recalls: int) -> None:
    """A tenant that is hardly known holds nothing: its share would flatter."""
    with pytest.raises(StateError, match="too few honest writes or recalls"):
        hard._warm(stored(tmp_path, garden(writes, recalls)))


def test_each_write_begins_at_the_same_state_and_a_change_of_habits_is_one_sequence() -> None:
    """By a limit of one write a day the eighth, by the first one's writer, is held in the sequence alone."""
    policy = parse("name: once\nwrites_per_day: {user_observed: 1}\n").default
    warm = [{**one, "session": f"warm {one['session']}"} for one in garden(2, 1)[:3]]
    texts = tuple(
        f"The {plant} was watered in the evening."
        for plant in ("rose", "lily", "iris", "oak", "elm", "fern", "ivy", "moss")
    )
    kinds = [Kind("apart", texts), Kind("in a row", texts, sequence=True), Kind("apart again", texts)]
    found = {kind.name: held for kind, held in hard._measured(warm, kinds, "user", WordEncoder(), policy)}
    assert found == {"apart": 0, "in a row": 1, "apart again": 0}


def test_only_what_is_meant_to_repeat_a_known_question_does(tmp_path: Path) -> None:
    """Quotations and cached answers are about questions that nobody asked there, but for the two kinds named so."""
    for name, lines in (
        ("nq_open/dev_first2000.jsonl",
         [{"question": f"who planted tree {at}?", "answer": [f"gardener {at}"]} for at in range(160)]),
        ("bipia/email_train.jsonl", [{"context": "Dear all, " + "x" * 5_000}, {"context": ["Two", "lines"]}]),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    asked = [f"who planted tree {at}?" for at in range(10)]
    kinds = {kind.name: kind for kind in hard._kinds(tmp_path, asked)}
    known = {one.rstrip("?") for one in asked}
    repeating = {
        name
        for name, kind in kinds.items()
        if any(set(re.findall(r"who planted tree \d+", text.lower())) & known for text in kind.texts)
    }
    assert repeating == {"quoted questions that others asked", "cached answers to what others asked"}
    assert repeating == {name for name, kind in kinds.items() if not kind.by_agents}
    assert [len(kind.texts) for kind in kinds.values() if kind.sequence] == [50]
    assert max(map(len, kinds["e-mails"].texts)) == hard.MAIL_CHARS_MAX
    assert "Two\nlines" in kinds["e-mails"].texts
    own = kinds["cached answers that the session asked for"]
    assert all(text.startswith(question) for text, question in zip(own.texts, own.asked, strict=True))


def test_the_figure_is_the_worst_kind_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams add up; what does not count is told and moves no figure; without a stream to begin with it says so."""
    counted, apart = Kind("mails", ("a", "b", "c", "d")), Kind("repeats", ("a", "b"), by_agents=False)
    paths: list[Path] = []

    @contextmanager
    def streams(setting: Setting) -> Iterator[list[Path]]:
        yield paths

    def measured(warm: Any, kinds: Any, writer: str, *_: Any) -> Iterator[tuple[Kind, int]]:
        yield counted, 1 if writer == "user" else 3
        yield apart, 0 if writer == "user" else 2

    for name, value in {
        "streams": streams,
        "_measured": measured,
        "load_encoder": WordEncoder,
        "_kinds": _none,
    }.items():
        monkeypatch.setattr(hard, name, value)
    (tmp_path / "data").mkdir()
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "build_streams.py").touch()
    setting = Setting(tmp_path, lambda told: None)
    paths.append(stored(tmp_path, garden(250, 120), "other"))
    with pytest.raises(ConfigError, match="no stream whose name begins with"):
        hard.hard_negative_rate(setting)
    paths += [stored(tmp_path, garden(250, 120), name) for name in ("qa-nq", "conversation-conv-26")]
    found = hard.hard_negative_rate(setting)
    assert found.value == 0.75
    assert dict(found.rows)["mails, by an agent"] == "6 of 8 held, 75.0 %"
    assert dict(found.rows)["repeats, by a user"] == "0 of 4 held, 0.0 %"
    assert dict(found.rows)["not counted: repeats, by an agent"] == "4 of 4 held, 100.0 %"
    assert found.notes[0].startswith("Development figure: the wording models were fitted on")


def _none(data: Path, asked: Any) -> list[Kind]:
    return []


def test_no_wish_is_a_line_of_the_grammar() -> None:
    """What the models were fitted on, word for word, is no measure of them; nor does a wish count twice."""
    wishes = [" ".join(re.findall(r"\w+", one.casefold())) for one in PREFERENCES + WISHES]
    assert len(set(wishes)) == len(wishes) > 100
    known = {" ".join(re.findall(r"\w+", one.text.casefold())) for one in templates(range(1, 100))}
    assert len(known) > 5_000
    assert not known & set(wishes)
