"""Documents of frameworks as the contents of writes, and back."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from memsluice.errors import InvalidArgument
from memsluice.events.blobs import opaque
from memsluice.events.codes import opened
from memsluice.memory.documents import Document, document_of, key_of


@dataclass
class Admitted:
    written_ms: int = 5
    event_id: str = "w-1"


@dataclass
class Entry:
    content: str
    similarity: float = 0.5
    admission: Admitted = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.admission = Admitted()


def read(content: str) -> Any:
    """Return the document that an entry of this content is."""
    return document_of(Entry(content))  # type: ignore[arg-type]


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda one: some.lists(one, max_size=4) | some.dictionaries(some.text(), one, max_size=4),
    max_leaves=12,
)


@given(
    some.lists(some.text(), max_size=3), some.text(), some.none() | some.dictionaries(some.text(), JSON, max_size=4),
    some.none() | some.integers(1, 9_999), some.booleans(),
)  # fmt: skip
def test_a_document_is_read_back_as_it_was_written(path, key, value, ttl_s, searched) -> None:
    """Whatever JSON it is: texts with blank lines in them, names that look like our marks, one word or many."""
    made = Document(tuple(path), key, value, ttl_s, ttl_s and ttl_s * 1_000, searched)
    found = read(made.content())
    assert (found.path, found.key, found.value) == (tuple(path), key, value)
    assert (found.ttl_s, found.expires_ms, found.searched) == (ttl_s, ttl_s and ttl_s * 1_000, searched)
    assert (found.written_ms, found.similarity, found.event_id) == (5, 0.0, "w-1")


def test_texts_stand_first_then_names_then_a_structure_of_numbers() -> None:
    """A detector, and a question, meet texts and words as a reader would, and not the values of a record."""
    made = Document(("memories",), "m1", {"text": "Ada drinks tea.", "kind": "habit", "n": 3}).content()
    assert made == (
        "Ada drinks tea.\n\nmemories  m1  text  kind  habit  n\n\n3\n\n"
        "[[1,[2,0]],[2,1],[0,[2,2],[3,0,1,0,0],[2,3],[2,4],[2,5],[4,0]]]"
    )


@pytest.mark.parametrize(
    "drawn",
    [
        "0d073027-ea15-4127-833b-aaa993769bff", "de1e7ea1-1da7-4ba5-a5ab-adc0dedfaced",
        "9f86d081884c7d659a2feaa0c55ad015", "65F1C0A2B7E94D3F8A1B2C3D", "decadefacadedecadefacade2024",
    ],
)  # fmt: skip
def test_a_name_that_a_machine_drew_is_no_word(drawn: str) -> None:
    """A detector reads the same record whatever its id is: no honest one is held for it by chance."""
    made = Document((drawn,), drawn, {"text": "Ada drinks tea.", drawn: drawn})
    assert opened(made.content()).startswith("Ada drinks tea.\n\n#  #  text  #  #\n\n")
    found = read(made.content())
    assert (found.path, found.key, found.value) == (made.path, made.key, made.value)


@pytest.mark.parametrize(
    "name",
    [
        "deadbeef-cafe-babe", "a-decade-faded-facade", "42", "c0ffee", "decade-facade-2024", "2026-11-29-10-30",
        "4111-1111-1111-1111", "---------------1", "de1e7e-a11-da7a-ba5e5", "deadbeefcafe1234", "0" * 16, "0" * 24,
    ],
)  # fmt: skip
def test_a_name_that_people_may_read_stays_a_word(name: str) -> None:
    """What is no UUID and no run as random as a digest may say something, in figures that look like letters, too."""
    content = Document((), name, {"text": "Ada drinks tea."}).content()
    assert f"\n\n{name}  text\n\n" in content
    assert f"\n\n{name}  text\n\n" in opened(content) or opaque(name)


def test_what_stands_for_a_secret_is_read_in_its_place() -> None:
    """A number, a word or a text that the gate took out leaves the rest of the document as it was."""
    made = Document(("m",), "k", {"card": 4111111111111111, "code": "hunter2", "text": "The code is 4711."}).content()
    gone = made.replace("4111111111111111", "[redacted: card]").replace("hunter2", "[redacted: password]")
    assert read(gone.replace("4711", "[redacted: x]")).value == {
        "card": "[redacted: card]", "code": "[redacted: password]", "text": "The code is [redacted: x].",
    }  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        "", "Ada drinks tea.", "[]", "a\n\nb", "a\n\nb\n\nc", "k\n\n\n\n[]",
        "k\n\n\n\n[[1],[2,0]]", "k\n\n\n\n[[1],[2,0],5]",
        "k\n\n\n\n[[1],[2,0],[0,[2,0]]]", "k\n\n\n\n[[1],[2,9],[0]]", "k\n\n\n\n[[1],[2,0],[9]]", "k\n\n\n\n{}",
        "k\n\n\n\n[[1],[2,0],[0,[2,0],[3,0,1,0,0]]]", "k\n\n\n\n[[2,0],[2,0],[0]]", "k\n\n\n\n" + "[1," * 5_000,
        "k\n\n1e400  1\n\n[[1],[2,0],[0],[4,0],[4,1],[5]]", "t\n\nk\n\n\n\n[[1],[2,0],[0,[2,0],[3,0,1,0,9999999]]]",
    ],
)  # fmt: skip
def test_what_is_no_document_is_none(content: str) -> None:
    """An entry that somebody else wrote, or a text that a redaction took, is not a document and does no harm."""
    assert read(content) is None


@pytest.mark.parametrize(
    "value", [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}, {1: 1, "1": 2}, [1], "text", {"a": {None: 1}}]
)
def test_what_is_no_record_of_json_is_refused(value: Any) -> None:
    """The error names the argument and quotes nothing; no two names of a record become one."""
    with pytest.raises(InvalidArgument, match="argument value"):
        Document((), "k", value).content()


def test_a_value_that_is_nested_too_deep_is_refused() -> None:
    """Nobody's recursion is exhausted by it."""
    value: Any = {}
    for _ in range(500):
        value = {"a": value}
    with pytest.raises(InvalidArgument, match="levels deep"):
        Document((), "k", value).content()


@given(some.lists(some.text(), max_size=3), some.text(), some.lists(some.text(), max_size=3), some.text())
def test_two_documents_have_one_key_only_if_they_have_one_place(path, key, other_path, other_key) -> None:
    """("a", "b") + "c" is not ("a",) + "b/c", whatever stands in the parts; each is a name that an event may have."""
    same = key_of(tuple(path), key) == key_of(tuple(other_path), other_key)
    assert same == ((path, key) == (other_path, other_key))
    assert 1 <= len(key_of(tuple(path), key)) <= 128
