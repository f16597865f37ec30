"""What differs between the files and the broker, and what is done about it."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from memsluice.errors import BrokerUnavailable, TopicsError
from memsluice.topics.names import BROKER_REMEDY
from memsluice.topics.spec import Desired, TopicSpec

REQUEST_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 10.0
"""How long the first question waits: a broker that runs answers it at once."""
SETTLE_TIMEOUT_S = 20.0
SETTLE_POLL_S = 0.1
AUTO_CREATE = "auto.create.topics.enable"


class Acl(NamedTuple):
    """One access rule, in plain strings. ``host`` is the address it is limited to, ``*`` for any."""

    principal: str
    resource: str
    name: str
    pattern: str
    operation: str
    permission: str = "ALLOW"
    host: str = "*"


@dataclass(frozen=True, slots=True)
class TopicChange:
    """One difference.

    ``kind`` says what would be done about it: ``create`` a topic, ``set`` or ``unset`` a setting, ``grant`` or
    ``revoke`` a rule; ``refused`` differences are never applied, ``manual`` ones can't be applied from here.
    """

    kind: Literal["create", "set", "unset", "grant", "revoke", "refused", "manual"]
    subject: str
    what: str
    have: str = ""
    want: str = ""
    topic: TopicSpec | None = field(default=None, compare=False, repr=False)
    acl: Acl | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """All differences between files and broker, in the order in which they are carried out."""

    changes: tuple[TopicChange, ...]
    brokers: int

    @property
    def empty(self) -> bool:
        """Whether the broker is exactly as the files say."""
        return not self.changes

    @property
    def refused(self) -> tuple[TopicChange, ...]:
        """The differences that block an apply."""
        return tuple(change for change in self.changes if change.kind == "refused")


def plan(admin: AdminClient, desired: Desired, where: str = "the broker") -> TopicPlan:
    """Compare. Reads only. Raises BrokerUnavailable, naming the broker (``where``), if it does not answer."""
    try:
        metadata = admin.list_topics(timeout=ANSWER_TIMEOUT_S)
        present = {spec.name: metadata.topics[spec.name] for spec in desired.topics if spec.name in metadata.topics}
        settings = _settings(admin, ConfigResource.Type.TOPIC, present)
        broker_ids = [str(broker) for broker in metadata.brokers]
        broker_settings = _settings(admin, ConfigResource.Type.BROKER, broker_ids[:1])
        existing_acls = _existing_acls(admin)
    except KafkaException as error:
        raise BrokerUnavailable(f"{where} did not list its topics ({_words(error)}): {BROKER_REMEDY}") from error
    changes: list[TopicChange] = []
    for entries in broker_settings.values():
        if AUTO_CREATE in entries and entries[AUTO_CREATE].value != "false":
            changes.append(
                TopicChange("manual", "broker", AUTO_CREATE, "true", "false (in the broker's configuration)")
            )
    for spec in desired.topics:
        if spec.name not in present:
            copies = f"{spec.spec.partitions} partitions × {spec.replicas(len(broker_ids))}, {spec.spec.cleanup}"
            changes.append(TopicChange("create", spec.name, "topic", "absent", copies, topic=spec))
            continue
        changes += _shape(spec, present[spec.name], len(broker_ids))
        changes += _setting_changes(spec, settings[spec.name], len(broker_ids))
    changes += _acl_changes(desired, existing_acls)
    return TopicPlan(tuple(changes), len(broker_ids))


def _settings(admin: AdminClient, kind: Any, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    resources = [ConfigResource(kind, name) for name in names]
    if not resources:
        return {}
    futures = admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
    return {resource.name: future.result() for resource, future in futures.items()}


def _shape(spec: TopicSpec, found: Any, brokers: int) -> Iterable[TopicChange]:
    """Partitions and copies: a change of the first would send a tenant's events to another partition."""
    have = len(found.partitions)
    if have != spec.spec.partitions:
        yield TopicChange("refused", spec.name, "partitions", str(have), str(spec.spec.partitions))
    copies = {len(partition.replicas) for partition in found.partitions.values()}
    if copies and copies != {spec.replicas(brokers)}:
        have_text = "/".join(map(str, sorted(copies)))
        yield TopicChange(
            "manual", spec.name, "replication", have_text, f"{spec.replicas(brokers)} (reassign partitions)"
        )


def _setting_changes(spec: TopicSpec, entries: dict[str, Any], brokers: int) -> Iterable[TopicChange]:
    wanted = spec.settings(brokers)
    for name, value in wanted.items():
        have = entries[name].value if name in entries else None
        if have != value:
            yield TopicChange("set", spec.name, name, str(have), value, topic=spec)
    for name, entry in entries.items():
        if name not in wanted and entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value:
            yield TopicChange("unset", spec.name, name, str(entry.value), "the broker's default", topic=spec)


def wanted_acls(desired: Desired) -> set[Acl]:
    """Return every rule that the files ask for."""
    rules: set[Acl] = set()
    for topic in desired.topics:
        for access in topic.spec.access:
            for operation in access.operations:
                rules.add(Acl(f"User:{access.principal}", "TOPIC", topic.name, "LITERAL", operation))
    for grant in desired.grants:
        for operation in grant.operations:
            pattern = grant.match.upper()
            rules.add(Acl(f"User:{grant.principal}", grant.resource.upper(), grant.name, pattern, operation))
    return rules


def _acl_changes(desired: Desired, existing: set[Acl]) -> Iterable[TopicChange]:
    """Rules to add, and rules nobody wrote down: on a resource of the files, or for a user of the files."""
    wanted = wanted_acls(desired)
    resources = {(rule.resource, rule.name, rule.pattern) for rule in wanted}
    resources |= {("TOPIC", topic.name, "LITERAL") for topic in desired.topics}
    principals = {f"User:{principal}" for principal in desired.principals()}
    for rule in sorted(wanted - existing):
        yield TopicChange("grant", rule.principal, _phrase(rule), "absent", "allowed", acl=rule)
    for rule in sorted(existing - wanted):
        if (rule.resource, rule.name, rule.pattern) in resources or rule.principal in principals:
            yield TopicChange("revoke", rule.principal, _phrase(rule), rule.permission.lower(), "absent", acl=rule)


def _phrase(rule: Acl) -> str:
    star = "*" if rule.pattern == "PREFIXED" else ""
    host = "" if rule.host == "*" else f" from {rule.host}"
    return f"{rule.operation} on {rule.resource.lower()} {rule.name}{star}{host}"


def _existing_acls(admin: AdminClient) -> set[Acl]:
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    bindings = admin.describe_acls(everything, request_timeout=REQUEST_TIMEOUT_S).result()
    return {
        Acl(
            binding.principal,
            binding.restype.name,
            binding.name,
            binding.resource_pattern_type.name,
            binding.operation.name,
            binding.permission_type.name,
            binding.host,
        )
        for binding in bindings
    }


def apply(admin: AdminClient, desired: Desired, where: str = "the broker") -> TopicPlan:
    """Change the broker to match the files, and return what was done. Doing it again does nothing.

    Raises TopicsError, with nothing changed, when a difference is of a kind that is refused; ``manual`` differences
    are left as they are, and stay in a later plan.
    """
    todo = plan(admin, desired, where)
    if todo.refused:
        told = "; ".join(
            f"{change.subject} has {change.have} {change.what}, the file says {change.want}" for change in todo.refused
        )
        raise TopicsError(
            f"Refused: {told}. A tenant's events are found by murmur2 over the partition count, so the count "
            "of a topic never changes: restore the old number, or write a new topic version (….v2)"
        )
    try:
        _create(admin, todo)
        _alter(admin, todo)
        _grant(admin, todo)
    except KafkaException as error:
        raise TopicsError(f"The broker refused a change: {_words(error)}") from error
    if todo.changes:
        _settle(admin, desired)
    return todo


def _settle(admin: AdminClient, desired: Desired) -> None:
    """Wait until the broker shows what its controller has already accepted; only then do the rules hold."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while left := [change for change in plan(admin, desired).changes if change.kind != "manual"]:
        if time.monotonic() > deadline:
            first = left[0]
            raise TopicsError(
                f"The broker still shows {len(left)} differences {SETTLE_TIMEOUT_S:.0f} s after the change, the first: "
                f"{first.subject}, {first.what}: {first.have}, not {first.want}"
            )
        time.sleep(SETTLE_POLL_S)


def _create(admin: AdminClient, todo: TopicPlan) -> None:
    new = [
        NewTopic(
            spec.name,
            num_partitions=spec.spec.partitions,
            replication_factor=spec.replicas(todo.brokers),
            config=spec.settings(todo.brokers),
        )
        for change in todo.changes
        if change.kind == "create" and (spec := change.topic) is not None
    ]
    if new:
        futures = admin.create_topics(new, operation_timeout=REQUEST_TIMEOUT_S, request_timeout=REQUEST_TIMEOUT_S)
        for future in futures.values():
            future.result()


def _alter(admin: AdminClient, todo: TopicPlan) -> None:
    entries: dict[str, list[ConfigEntry]] = {}
    for change in todo.changes:
        if change.kind in ("set", "unset"):
            operation = AlterConfigOpType.SET if change.kind == "set" else AlterConfigOpType.DELETE
            entry = ConfigEntry(change.what, change.want, incremental_operation=operation)
            entries.setdefault(change.subject, []).append(entry)
    resources = [
        ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=changed)
        for name, changed in entries.items()
    ]
    if resources:
        for future in admin.incremental_alter_configs(resources, request_timeout=REQUEST_TIMEOUT_S).values():
            future.result()


def _grant(admin: AdminClient, todo: TopicPlan) -> None:
    new = [_binding(AclBinding, change.acl) for change in todo.changes if change.kind == "grant" and change.acl]
    if new:
        for future in admin.create_acls(new, request_timeout=REQUEST_TIMEOUT_S).values():
            future.result()
    old = [_binding(AclBindingFilter, change.acl) for change in todo.changes if change.kind == "revoke" and change.acl]
    if old:
        for future in admin.delete_acls(old, request_timeout=REQUEST_TIMEOUT_S).values():
            future.result()


def _binding(kind: Any, rule: Acl) -> Any:
    return kind(
        ResourceType[rule.resource],
        rule.name,
        ResourcePatternType[rule.pattern],
        rule.principal,
        rule.host,
        AclOperation[rule.operation],
        AclPermissionType[rule.permission],
    )


def _words(error: KafkaException) -> str:
    """Return what the broker said, without the wrapping."""
    cause = error.args[0] if error.args else error
    return str(cause.str()) if hasattr(cause, "str") else str(cause)
