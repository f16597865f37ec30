"""Documents of frameworks as the contents of writes, and back."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from memsluice.errors import InvalidArgument
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


def test_a_text_stands_before_its_structure() -> None:
    """A detector, and a question, meet the text as its writer wrote it, and not one value of a record."""
    made = Document(("memories",), "m1", {"text": "Ada drinks tea.", "kind": "habit"}).content()
    assert made == 'Ada drinks tea.\n\n[["memories"], "m1", {"text": {"$": [0, 1]}, "kind": "habit"}]'


@pytest.mark.parametrize(
    "content",
    ["", "Ada drinks tea.",
     "[]", "[1, 2, 3]", '[["a"], "k", 5]', '[["a"], 7, {}]', '[["a"], "k", {"t": {"$": [0, 1]}}]',
     "a\n\nb", '[["a"], "k", {"t": {"$": "x"}}]', '[["a"], "k", {}, 4]', "[" * 5_000],
)  # fmt: skip
def test_what_is_no_document_is_none(content: str) -> None:
    """An entry that somebody else wrote, or a text that a redaction took, is not a document and does no harm."""
    assert read(content) is None


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}])
def test_what_is_no_json_is_refused(value: Any) -> None:
    """The error names the argument and quotes nothing."""
    with pytest.raises(InvalidArgument, match="value is no JSON"):
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
