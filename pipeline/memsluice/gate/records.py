"""Records of the core: frozen for whoever reads and type-checks them, plain while they run.

``dataclass(frozen=True)`` here is the standard library's for the type checker, which refuses any assignment to a field.
When it runs no lock is set: a decision makes dozens of records, and setting a field past a lock takes five times as
long as setting it.
"""

import dataclasses
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: Any = None, *, frozen: bool = False, **options: Any) -> Any:
        """Return what the standard one does, without the lock."""
        return dataclasses.dataclass(cls, unsafe_hash=frozen, **options)
