"""Filters that people keep under a name, in a file of the home: the index may be made anew, these may not."""

from collections.abc import Mapping
from pathlib import Path

import orjson

from memsluice.deployment.paths import using, write_private
from memsluice.errors import ConfigError, InvalidArgument, NotFound
from memsluice.escaping import visible
from memsluice.events.limits import NAME_CHARS_MAX
from memsluice.operations.review.query import HeldQuery

FILE = "desk-filters.json"
SAVED_MAX = 200
LISTED_CHARS_MAX = 60


class SavedFilters:
    """The filters of a home by their names; at most SAVED_MAX. Whoever may see some tenants alone is shown the filters
    that name one of these: another filter may name a person of another tenant."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE

    def all(self, *, tenants: frozenset[str] | None) -> dict[str, HeldQuery]:
        """Return the filters by name. Raises ConfigError where the file cannot be read."""
        read = {name: HeldQuery.parse(text) for name, text in self._read().items()}
        return {name: query for name, query in sorted(read.items()) if tenants is None or query.tenant in tenants}

    def get(self, name: str, *, tenants: frozenset[str] | None) -> HeldQuery:
        """Return a filter. Raises NotFound, ConfigError."""
        found = self.all(tenants=tenants)
        if name not in found:
            known = ", ".join(visible(one, LISTED_CHARS_MAX) for one in found) or "none yet"
            raise NotFound(f"no filter is kept as {visible(name, LISTED_CHARS_MAX)!r}; there are: {known}")
        return found[name]

    def save(self, name: str, query: HeldQuery, *, tenants: frozenset[str] | None) -> None:
        """Keep a filter under a name, in the place of the one that had it. Raises InvalidArgument, ConfigError."""
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise InvalidArgument(f"name: write 1 to {NAME_CHARS_MAX} characters that can be seen, on one line")
        kept = self._read()
        hidden = tenants is not None and name in kept and HeldQuery.parse(kept[name]).tenant not in tenants
        if (tenants is not None and query.tenant not in tenants) or hidden:
            raise InvalidArgument("tenant: name one of your own tenants in the filter, and keep it under another name")
        if name not in kept and len(kept) >= SAVED_MAX:
            raise InvalidArgument(f"name: {SAVED_MAX} filters are kept already: delete one first")
        self._write({**kept, name: query.text()})

    def delete(self, name: str, *, tenants: frozenset[str] | None) -> None:
        """Forget a filter. Raises NotFound, ConfigError."""
        self.get(name, tenants=tenants)
        self._write({one: text for one, text in self._read().items() if one != name})

    def _read(self) -> dict[str, str]:
        if not self._file.exists():
            return {}
        try:
            with using(self._file):
                value = orjson.loads(self._file.read_bytes())
            return {str(name): HeldQuery.parse(str(text)).text() for name, text in value.items()}
        except (orjson.JSONDecodeError, AttributeError, InvalidArgument) as error:
            raise ConfigError(f"{self._file} cannot be read ({visible(str(error))}): mend it, or delete it") from None

    def _write(self, kept: Mapping[str, str]) -> None:
        with using(self._file):
            write_private(self._file, orjson.dumps(kept, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode())
