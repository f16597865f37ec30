"""The YAML files of ``topics/``: one topic a file, and the grants that belong to no single topic.

A file has ``meta`` (name, description, schema) and ``spec`` (partitions, policy, limits, access). The file
``access.yaml`` holds only ``grants``: consumer groups and name prefixes.
"""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from memsluice.clock import UNITS_MS, duration_ms
from memsluice.errors import TopicsError

FILES_MAX = 256
FILE_BYTES_MAX = 64 * 1024
FOREVER_MS = -1
_ACCESS_FILE = "access.yaml"
_UNITS_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}

Model = TypeVar("Model", bound=BaseModel)

Operation = Literal["ALL", "READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS", "DELETE"]


def _duration(text: object) -> object:
    """Return ``14d`` in milliseconds; anything but a string unchanged."""
    if not isinstance(text, str):
        return text
    found = FOREVER_MS if text == "forever" else duration_ms(text)
    if found is None:
        raise ValueError(f"expected forever, or a number with a unit of {', '.join(UNITS_MS)}, such as 14d")
    return found


def _size(text: object) -> object:
    """Return ``2.5 MiB`` in bytes; anything but a string unchanged."""
    if not isinstance(text, str):
        return text
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text.strip())
    if match is None or match[2] not in _UNITS_BYTES:
        raise ValueError(f"expected a number with a unit of {', '.join(_UNITS_BYTES)}, such as 2.5 MiB")
    return round(float(match[1]) * _UNITS_BYTES[match[2]])


DurationMs = Annotated[int, BeforeValidator(_duration), Field(ge=FOREVER_MS)]
SizeBytes = Annotated[int, BeforeValidator(_size), Field(gt=0)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Access(_Model):
    """Who may do what with the topic of the file it stands in."""

    principal: str = Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")
    operations: tuple[Operation, ...] = Field(min_length=1)


class Grant(_Model):
    """Who may do what with a consumer group or a transactional id, or with all whose names start with a prefix."""

    principal: str = Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")
    resource: Literal["topic", "group", "transactional_id"]
    name: str = Field(min_length=1, max_length=249)
    match: Literal["literal", "prefixed"] = "literal"
    operations: tuple[Operation, ...] = Field(min_length=1)
    reason: str = Field(min_length=1)


class Meta(_Model):
    """What the topic is, and why."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")
    description: str = Field(min_length=1)
    schema_: str = Field(alias="schema", min_length=1)
    """What its records carry, in words or as the name of a file in ``schemas/``."""


class Spec(_Model):
    """How the topic is on the broker."""

    partitions: int = Field(ge=1, le=4096)
    replication: int = Field(ge=1, le=7)
    """Copies of each partition; a cluster with fewer brokers gets as many as it has brokers."""
    cleanup: Literal["delete", "compact"]
    retention: DurationMs
    """Milliseconds a record is kept, -1 for ever; with ``compact`` it must be ``forever``."""
    retention_size: SizeBytes | None = None
    """Most bytes kept of a partition, oldest segments deleted first; None: by age alone. Not with ``compact``."""
    max_message: SizeBytes
    """Largest record batch in bytes."""
    timestamp: Literal["CreateTime", "LogAppendTime"]
    config: dict[str, str] = Field(default_factory=dict)
    """Any other topic setting by its Kafka name."""
    access: tuple[Access, ...] = ()

    @model_validator(mode="after")
    def _compacted_is_kept(self) -> "Spec":
        if self.cleanup == "compact" and self.retention != FOREVER_MS:
            raise ValueError("a compacted topic keeps each key's last record: retention must be forever")
        if self.cleanup == "compact" and self.retention_size is not None:
            raise ValueError("a compacted topic keeps each key's last record: it can have no retention_size")
        return self


class TopicSpec(_Model):
    """One file."""

    meta: Meta
    spec: Spec

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.meta.name

    def settings(self, brokers: int) -> dict[str, str]:
        """Return the topic's settings by their Kafka names, for a cluster of ``brokers`` brokers."""
        copies = self.replicas(brokers)
        return {
            "cleanup.policy": self.spec.cleanup,
            "retention.ms": str(self.spec.retention),
            **({} if self.spec.retention_size is None else {"retention.bytes": str(self.spec.retention_size)}),
            "max.message.bytes": str(self.spec.max_message),
            "message.timestamp.type": self.spec.timestamp,
            "min.insync.replicas": str(max(1, copies - 1)),  # one broker may be away, and no record has one copy only
            **self.spec.config,
        }

    def replicas(self, brokers: int) -> int:
        """Return the copies that a cluster of ``brokers`` brokers can have."""
        return max(1, min(self.spec.replication, brokers))


class _AccessFile(_Model):
    grants: tuple[Grant, ...]


class Desired(_Model):
    """Everything the files say."""

    topics: tuple[TopicSpec, ...]
    grants: tuple[Grant, ...]

    def principals(self) -> set[str]:
        """Return every user that the files grant something to."""
        named = {access.principal for topic in self.topics for access in topic.spec.access}
        return named | {grant.principal for grant in self.grants}


def default_directory() -> Path:
    """Return the ``topics/`` of the checkout this package lies in, else the copy installed with the package.

    Raises TopicsError when neither is there.
    """
    checkout = Path(__file__).resolve().parents[3] / "topics"
    if (checkout / _ACCESS_FILE).exists():
        return checkout
    installed = Path(str(resources.files("memsluice"))) / "_data" / "topics"
    if installed.is_dir():
        return installed
    raise TopicsError(
        f"There are no topic files: neither {checkout} nor {installed} exists. Name their folder with --files DIR"
    )


def load(directory: Path | None = None) -> Desired:
    """Read all files of ``directory`` (default: the project's). Raises TopicsError naming file and field."""
    directory = directory or default_directory()
    files = sorted(directory.glob("*.yaml"))
    if not files:
        raise TopicsError(f"There are no topic files (*.yaml) in {directory}")
    if len(files) > FILES_MAX:
        raise TopicsError(f"{directory} has more than {FILES_MAX} topic files")
    topics: list[TopicSpec] = []
    grants: tuple[Grant, ...] = ()
    for file in files:
        if file.name == _ACCESS_FILE:
            grants = _parse(_AccessFile, file).grants
            continue
        topic = _parse(TopicSpec, file)
        if file.stem != topic.name:
            raise TopicsError(f"{file} describes topic {topic.name}, so it must be named {topic.name}.yaml")
        topics.append(topic)
    return Desired(topics=tuple(topics), grants=grants)


def load_topics(directory: Path | None = None) -> list[TopicSpec]:
    """Return the topics that the files describe, by name. Raises TopicsError."""
    return list(load(directory).topics)


def _parse(model: type[Model], file: Path) -> Model:
    try:
        text = file.read_text(encoding="utf-8")
        if len(text) > FILE_BYTES_MAX:
            raise TopicsError(f"{file} is larger than {FILE_BYTES_MAX} bytes")
        raw: Any = yaml.safe_load(text)
        return model.model_validate(raw)
    except yaml.YAMLError as error:
        raise TopicsError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise TopicsError(f"{file}: {'; '.join(_problems(error))}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TopicsError(f"{file} cannot be read: {error}") from error
    except (ValueError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        # PyYAML raises these on values that their tag does not fit, and on absurd nesting
        raise TopicsError(f"{file}: a value is not what it looks like ({type(error).__name__})") from error


def _problems(error: ValidationError) -> Iterator[str]:
    for item in error.errors():
        yield f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}"
