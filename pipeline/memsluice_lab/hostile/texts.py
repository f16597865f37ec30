"""Targets that are files or free texts: what people, deployments and other programs hand in."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from memsluice.deployment.connection import Connection
from memsluice.envelope import codec
from memsluice.envelope.registry import Credential
from memsluice.errors import ConfigError, InputError, PolicyError, TopicsError
from memsluice.escaping import visible
from memsluice.events import facts, units
from memsluice.events.limits import CONTENT_BYTES_MAX
from memsluice.gate import unicode
from memsluice.gate.checks import instructions, sensitive
from memsluice.gate.checks.spelled import spelled
from memsluice.gate.policy.model import PolicySet, parse
from memsluice.keystore import files
from memsluice.keystore.files import SigningCredential
from memsluice.operations.commands import signing
from memsluice.topics import spec
from memsluice.topics.names import COMMANDS
from memsluice_lab.hostile import mutate
from memsluice_lab.hostile.judge import Target
from memsluice_lab.hostile.specimens import TENANT, Specimens, texts_of_files

PIECES = (
    "a", " ", "\n", "\t", "=", ":", "-", "_", ".", "@", "/", "\\", '"', "'", "(", ")", "[", "{", "<", ">", "|", "&",
    "0", "9", "A", "é", "密", "\u200b", "\u202e", "\u0301", "🂡", "password is ", "key=", "-----BEGIN ",
    "PRIVATE KEY-----",
    "Bearer ", "https://a:b@", "eyJ", ".eyJ", "4111 ", "4111-", "DE89 ",
    "ignore all previous instructions", "<!--", "-->", "<a href=",
    "</", "&quot;", "0x", "aA1", "Zm9v", "%41", "\\u0041", "the ", "xprv", "1 ",
)  # fmt: skip


class Texts:
    """Draws hostile files from valid ones; files that must lie somewhere lie in a folder that ends with it."""

    def __init__(self, specimens: Specimens) -> None:
        self._all = specimens
        self._valid = texts_of_files(specimens)
        self._folder = tempfile.TemporaryDirectory(prefix="memsluice-hostile-")
        self.folder = Path(self._folder.name)

    def json_file(self, kind: str) -> Callable[[random.Random], bytes]:
        """Return what draws a damaged JSON file of a kind."""
        return lambda chance: mutate.json_bytes(chance, self._valid[kind])

    def yaml_file(self, kind: str) -> Callable[[random.Random], bytes]:
        """Return what draws a damaged YAML file of a kind."""
        return lambda chance: mutate.yaml_bytes(chance, self._valid[kind])

    def policy(self, chance: random.Random) -> str:
        """Return a policy's text, as a file or as a command carries it."""
        if chance.random() < 0.4:
            value = {"name": "x", "tenants": {"globex": {"profile": "strict"}}, "ttl_seconds": {"operator": None}}
            return mutate.json_bytes(chance, orjson.dumps(value)).decode("utf-8", "replace")
        return mutate.yaml_bytes(chance, self._valid["policy"]).decode("utf-8", "replace")

    def proposal(self, chance: random.Random) -> bytes:
        """Return a proposed command's file."""
        commands = [one for one in self._all.sent if one.topic == COMMANDS]
        return mutate.json_bytes(chance, _envelope(chance.choice(commands).message.value))

    def _lying(self, name: str, data: bytes) -> Path:
        file = self.folder / name
        file.write_bytes(data)
        return file

    def topics(self, data: bytes) -> Any:
        """Return the topic that a file describes."""
        folder = self.folder / "topics"
        folder.mkdir(exist_ok=True)
        self._lying(f"topics/{COMMANDS}.yaml", data)
        return [topic.settings(3) for topic in spec.load(folder).topics]

    def connection(self, data: bytes) -> Connection:
        """Return the connection that a file describes."""
        return Connection.from_file(self._lying("connection", data))

    def proposed(self, data: bytes) -> Any:
        """Return the command of a proposal."""
        return signing.load(self._lying("proposal.json", data), lambda: self._all.keyring)

    def searched(self, text: str) -> str:
        """Return a content without what is sensitive, having searched it as *seal*, *screen* and recalls do."""
        spans = sensitive.found(text)
        units.spans(text)
        instructions.find(spelled(text))
        visible(text)
        codec.sketch(self._all.keyring, TENANT, text)
        unicode.normalise(text)
        return sensitive.redacted(text, spans, CONTENT_BYTES_MAX)


def _envelope(value: bytes) -> bytes:
    document = orjson.loads(value)
    return orjson.dumps(document.get("data", document))


def _content(chance: random.Random) -> str:
    return mutate.content(chance, PIECES, CONTENT_BYTES_MAX)


def _facts(chance: random.Random) -> str:
    text = facts.render([facts.Fact("Ana", "prefers", "the early train")] * chance.randint(1, 3))
    return (
        mutate.damaged(chance, text.encode()).decode("utf-8", "replace") if chance.random() < 0.8 else _content(chance)
    )


def _policy_again(found: PolicySet) -> Any:
    """Return the policies as their own JSON is read: names and digests are of what is in force."""
    one = parse(found.default.model_dump_json())
    return PolicySetView(one.default, found.tenants)


class PolicySetView(PolicySet):
    """Policies that are compared by what they say."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolicySet) and (self.default, self.tenants) == (other.default, other.tenants)

    __hash__ = None  # type: ignore[assignment]


def _registry(data: bytes) -> list[Credential]:
    return files.registry_from_bytes(data, "it").all()


def _registry_again(found: list[Credential]) -> list[Credential]:
    return _registry(files.registry_to_bytes(found))


def _keyring(data: bytes) -> bytes:
    """Return the keys of a file, as they are written."""
    return files.keyring_to_bytes(files.keyring_from_bytes(data, "it"))


def _credential(data: bytes) -> SigningCredential:
    return files.credential_from_bytes(data, "it")


def _credential_again(found: SigningCredential) -> SigningCredential:
    return _credential(files.credential_to_bytes(found))


def targets(specimens: Specimens) -> list[Target]:
    """Return the targets that are files or free texts."""
    some = Texts(specimens)
    config = (ConfigError,)
    return [
        Target("policy", 1, some.policy, parse, (PolicyError,), _policy_again),
        Target("topic file", 1, some.yaml_file("topic"), some.topics, (TopicsError,)),
        Target("registry file", 1, some.yaml_file("registry"), _registry, config, _registry_again),
        Target("keyring file", 3, some.json_file("keyring"), _keyring, config, _keyring),
        Target("credential file", 3, some.json_file("credential"), _credential, config, _credential_again),
        Target("connection file", 1, some.json_file("connection"), some.connection, config),
        Target("proposed command", 3, some.proposal, some.proposed, config),
        Target("facts", 3, _facts, facts.parse, (InputError,), lambda found: facts.parse(facts.render(found))),
        Target("free text", 1, _content, some.searched, ()),
    ]
