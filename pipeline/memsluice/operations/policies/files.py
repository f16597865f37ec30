"""A policy file that a person names: what is wrong with it, in one plain sentence."""

from pathlib import Path

import yaml

from memsluice.deployment.paths import using
from memsluice.errors import PolicyError
from memsluice.escaping import visible
from memsluice.gate.policy import model, strictyaml
from memsluice.gate.policy.model import PolicySet

PROBLEM_CHARS_MAX = 200


def load(path: Path) -> PolicySet:
    """Read a policy file. Raises ConfigError for one that cannot be read, PolicyError for one that is not valid."""
    with using(path):
        path.open("rb").close()
    try:
        return model.load(path)
    except PolicyError as error:
        if told := _not_yaml(path):
            raise PolicyError(told) from error
        raise


def _not_yaml(path: Path) -> str:
    """Return which line is no YAML and why; "" for a file of which something else is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) <= model.POLICY_BYTES_MAX:
            strictyaml.load(text)
    except UnicodeDecodeError:
        return f"{visible(str(path))} is not a policy file: it is not UTF-8 text"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        why = visible(str(getattr(error, "problem", None) or "it cannot be read"), PROBLEM_CHARS_MAX)
        return f"{visible(str(path))}{line}: {why}. A policy file is YAML: correct the line, or name another file"
    return ""
