"""Known-good questions (seed 002): an operator names questions, and the entries that should answer each.

A question is answered as it should be where every entry that it names is among the k that a recall would return. What
pushes them out (a flood, an entry made to be near, an index that lost them) shows as a share that falls, whoever
wrote it and however honest it looked.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memsluice.errors import ConfigError
from memsluice.escaping import visible
from memsluice.events.limits import RETURNED_MAX
from memsluice.events.models import Name, Question, Tenant, Zone
from memsluice.gate.policy import strictyaml
from memsluice.recall.recaller import Named
from memsluice.recall.recaller import Question as Asked

QUESTIONS_MAX = 200
"""One round asks them all, one after the other."""
NAMED_MAX = 20


class KnownGood(BaseModel):
    """One question, who asks it, and the entries that should answer it: each an event id, or an object's id.

    A write that replaces an entry of a key has another event id; the object's id stays.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant: Tenant
    question: Question
    entries: Annotated[tuple[Name, ...], Field(min_length=1, max_length=NAMED_MAX)]
    principal: Name = "holdout"
    agent: Name = "holdout"
    session: Name = "holdout"
    namespace: Name = "default"
    zone: Zone = Zone.GUIDANCE
    k: Annotated[int, Field(ge=1, le=RETURNED_MAX)] = 5

    def asked(self) -> Asked:
        """Return it as a recaller takes it."""
        return Asked(
            self.tenant, self.question, self.agent, self.principal, self.session, self.namespace, self.zone, self.k
        )

    def missed(self, found: Collection[Named]) -> tuple[str, ...]:
        """Return the entries that should have answered and are not among those found."""
        names = {name for one in found for name in one}
        return tuple(name for name in self.entries if name not in names)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: Annotated[tuple[KnownGood, ...], Field(min_length=1, max_length=QUESTIONS_MAX)]


@dataclass(frozen=True, slots=True)
class Holdout:
    """The questions of a file, in its order."""

    questions: tuple[KnownGood, ...]


def parse(text: str, name: str) -> Holdout:
    """Return the questions of a YAML file's text. Raises ConfigError, which says where in ``name`` what is wrong."""
    try:
        found = _File.model_validate(strictyaml.load(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        raise ConfigError(f"{name}{where}: the known-good questions are no valid YAML") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(visible(f"{name}: {where}: {first['msg']}")) from None
    return Holdout(found.questions)
