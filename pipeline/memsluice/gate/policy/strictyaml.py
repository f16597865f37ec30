"""YAML with one reading only: safe tags, no key twice in a mapping, no absurd nesting.

YAML's own loaders keep the last of two equal keys without a word: ``mode: enforce`` at the top of a long policy would
not count against a ``mode: shadow`` further down.
"""

from typing import Any

import yaml
from yaml.composer import ComposerError

DEPTH_MAX = 16
"""Mappings and lists inside one another; a policy needs five."""


class _Loader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth >= DEPTH_MAX:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # not in types-pyyaml
            raise ComposerError(None, None, f"is nested more than {DEPTH_MAX} levels deep", mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _value in node.value:
            name = (key.tag, str(key.value))
            if name in seen:
                problem = f"the key {key.value if isinstance(key.value, str) else '?'} is repeated"
                raise ComposerError("in a mapping", node.start_mark, problem, key.start_mark)
            seen.add(name)
        return node


def load(text: str) -> Any:
    """Return the one document's value. Raises yaml.YAMLError, and nothing else, for what is none."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        raise
    except Exception as error:  # PyYAML raises ValueError to AttributeError on values that their tag does not fit
        raise yaml.YAMLError(f"a value is not what it looks like ({type(error).__name__})") from None
