"""What every section of a policy is: frozen, strict about its fields, and hashed once."""

from functools import cached_property
from typing import Self

from pydantic import BaseModel, ConfigDict

from memsluice.events.models import Tier


class Part(BaseModel):
    """One section of a policy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).model_fields))

    def __copy__(self) -> Self:
        """Return a copy without what was taken from its fields, which a changed copy does not share."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def __hash__(self) -> int:
        """Taken once: what follows from a policy alone is kept by it, and asked for with every decision."""
        return self._hash


FIELD_OF = {tier: tier.name.lower() for tier in Tier}
