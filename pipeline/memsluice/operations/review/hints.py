"""What a reviewer may have meant by a query that finds nothing: the values that no held write has, and near ones."""

import difflib

from memsluice.envelope.verdict import rule_of
from memsluice.escaping import visible
from memsluice.operations.held.filters import SOURCES
from memsluice.operations.review.index import ReviewIndex, Tenants
from memsluice.operations.review.query import HeldQuery

FIELDS = (
    "tenant",
    "reason",
    *SOURCES,
    "source",
    "policy",
    "group",
    "assignee",
    "claimed_by",
    "visibility",
    "mode",
    "model",
)
SHOWN_CHARS_MAX = 80


def unknown(index: ReviewIndex, query: HeldQuery, *, tenants: Tenants) -> list[str]:
    """Return a sentence for every value of a query that no entry has, in whatever state: most often it is misspelt.

    Raises what a question to the index does.
    """
    anything, told = HeldQuery.parse("state:any"), []
    for field in FIELDS:
        value = getattr(query, field)
        if not value or index.page(anything.narrowed(**{field: value}), tenants=tenants, limit=1).rows:
            continue
        near = difflib.get_close_matches(value, _known(index, field, tenants), n=1)
        hint = f"; did you mean {visible(near[0], SHOWN_CHARS_MAX)}?" if near else ""
        told.append(f"there is no {field} {visible(value, SHOWN_CHARS_MAX)} among the held writes{hint}")
    return told


def _known(index: ReviewIndex, field: str, tenants: Tenants) -> list[str]:
    columns = SOURCES if field == "source" else (field,)
    known = [value for column in columns for value, _ in index.values(column, tenants=tenants)]
    return [*known, *dict.fromkeys(map(rule_of, known))] if field == "reason" else known
