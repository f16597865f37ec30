"""plan, apply and check against the real broker, with topics and users of the test's own."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from tests.patience import HANG_S
from typer.testing import CliRunner

from memsluice.cli.topics import app
from memsluice.errors import BrokerUnavailable, TopicsError
from memsluice.topics import plan as plans
from memsluice.topics.spec import Desired, load

FILE = """
meta: {{name: test.plan.v1, schema: text, description: the plan's own test}}
spec:
  partitions: {partitions}
  replication: 1
  cleanup: delete
  retention: 1d
  max_message: 1 MiB
  timestamp: CreateTime
  access:
    - {{principal: tester, operations: [READ]}}
"""
NAME = "test.plan.v1"


def _desired(folder: Path, partitions: int = 2) -> Desired:
    (folder / f"{NAME}.yaml").write_text(FILE.format(partitions=partitions))
    return load(folder)


@pytest.fixture
def admin(stack, patient: None) -> Iterator[AdminClient]:
    """A client of the super user; the test's topic and rules are gone afterwards."""
    client = AdminClient({**stack.connection.confluent("admin"), "socket.timeout.ms": int(HANG_S * 1000)})
    yield client
    if NAME in client.list_topics(timeout=HANG_S).topics:
        client.delete_topics([NAME])[NAME].result()
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:  # until the broker shows that they are gone: the next test must not see them
        left = [rule for rule in plans._existing_acls(client) if rule.principal == "User:tester"]
        if not left and NAME not in client.list_topics(timeout=HANG_S).topics:
            return
        for rule in left:
            binding = plans._binding(plans.AclBindingFilter, rule)
            client.delete_acls([binding])[binding].result()
        time.sleep(0.05)


def _kinds(found: plans.TopicPlan) -> list[tuple[str, str]]:
    return [(change.kind, change.what) for change in found.changes]


def _differences(admin: AdminClient, desired: Desired, count: int) -> tuple[plans.TopicChange, ...]:
    """Return the differences once there are ``count``: the broker shows a change a moment after it took it."""
    deadline = time.monotonic() + HANG_S
    while len(found := plans.plan(admin, desired).changes) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.stack
def test_nothing_is_left_to_do_after_apply(admin: AdminClient, tmp_path: Path):
    """apply carries out the whole plan, and doing it again does nothing."""
    desired = _desired(tmp_path)
    assert _kinds(plans.plan(admin, desired)) == [("create", "topic"), ("grant", "READ on topic test.plan.v1")]
    assert len(plans.apply(admin, desired).changes) == 2
    assert plans.plan(admin, desired).empty
    assert plans.apply(admin, desired).empty


@pytest.mark.stack
def test_a_changed_partition_count_is_refused_and_nothing_else_is_done(admin: AdminClient, tmp_path: Path):
    """More partitions would scatter tenants, fewer would lose records: the whole plan stops before its first change."""
    plans.apply(admin, _desired(tmp_path))
    changed = _desired(tmp_path, partitions=3)
    (tmp_path / f"{NAME}.yaml").write_text(FILE.format(partitions=3).replace("1d", "2d"))
    with pytest.raises(TopicsError, match=r"Refused: test\.plan\.v1 has 2 partitions, the file says 3"):
        plans.apply(admin, load(tmp_path))
    assert _kinds(plans.plan(admin, changed)) == [("refused", "partitions")]
    assert plans.plan(admin, _desired(tmp_path)).empty


@pytest.mark.stack
def test_settings_changed_by_hand_are_put_back(admin: AdminClient, tmp_path: Path):
    """Both a changed value and a setting that no file names are differences."""
    desired = _desired(tmp_path)
    plans.apply(admin, desired)
    entries = [
        ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("segment.ms", "60000", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, NAME, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()
    found = _differences(admin, desired, 2)
    assert {(change.kind, change.what) for change in found} == {("set", "retention.ms"), ("unset", "segment.ms")}
    plans.apply(admin, desired)
    assert plans.plan(admin, desired).empty


@pytest.mark.stack
def test_a_rule_nobody_wrote_down_is_revoked(admin: AdminClient, tmp_path: Path):
    """A stranger's grant on our topic, and our user's grant elsewhere, are both found; other people's rules are not."""
    desired = _desired(tmp_path)
    plans.apply(admin, desired)

    def rule(principal: str, topic: str) -> AclBinding:
        kinds = (AclOperation.WRITE, AclPermissionType.ALLOW)
        return AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{principal}", "*", *kinds)

    extra = [rule("stranger", NAME), rule("tester", "elsewhere"), rule("stranger", "elsewhere")]
    for future in admin.create_acls(extra).values():
        future.result()
    found = _differences(admin, desired, 2)
    assert {(change.kind, change.subject) for change in found} == {
        ("revoke", "User:stranger"),
        ("revoke", "User:tester"),
    }
    plans.apply(admin, desired)
    left = [acl for acl in plans._existing_acls(admin) if acl.principal == "User:stranger"]
    assert [acl.name for acl in left] == ["elsewhere"]
    for future in admin.delete_acls([plans._binding(plans.AclBindingFilter, left[0])]).values():
        future.result()


@pytest.mark.stack
def test_check_is_an_exit_code(stack, admin: AdminClient, tmp_path: Path):
    """For pipelines: 0 and a sentence when all is as written, 2 and the differences when not."""
    _desired(tmp_path)
    arguments = ["--home", str(stack.home), "--files", str(tmp_path)]
    before = CliRunner().invoke(app, ["check", *arguments])
    assert before.exit_code == 4
    assert NAME in before.stdout
    assert CliRunner().invoke(app, ["plan", *arguments]).exit_code == 0
    assert CliRunner().invoke(app, ["apply", *arguments]).exit_code == 0
    assert CliRunner().invoke(app, ["check", *arguments]).exit_code == 0
    _desired(tmp_path, partitions=3)
    refused = CliRunner().invoke(app, ["apply", *arguments])
    assert refused.exit_code == 1
    assert "Refused" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.stack
@pytest.mark.usefixtures("patient")
def test_the_projects_topics_are_as_written(stack):
    """What ``stack up`` applied is what ``topics check`` finds."""
    assert CliRunner().invoke(app, ["check", "--home", str(stack.home)]).exit_code == 0


@pytest.mark.stack
def test_a_topic_that_no_file_names_is_left_alone(admin: AdminClient, tmp_path: Path):
    """What an older version's files had, and whatever else lies on the broker, is not complained of and not deleted."""
    plans.apply(admin, _desired(tmp_path))
    assert plans.plan(admin, load()).empty
    plans.apply(admin, load())
    assert NAME in admin.list_topics(timeout=HANG_S).topics


def test_no_broker_is_a_message(tmp_path: Path):
    """Without a stack: the command that starts one, no traceback."""
    result = CliRunner().invoke(app, ["plan", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert "memsluice stack up" in result.stderr


def test_a_broker_that_creates_topics_by_itself_is_reported(monkeypatch: pytest.MonkeyPatch):
    """With auto-creation a mistyped topic swallows events; it can't be switched off from here, so check must say so."""
    entry = SimpleNamespace(value="true", source=4)
    monkeypatch.setattr(
        plans,
        "_settings",
        lambda _admin, kind, _names: {"1": {plans.AUTO_CREATE: entry}} if kind.name == "BROKER" else {},
    )
    monkeypatch.setattr(plans, "_existing_acls", lambda _admin: set())
    admin = SimpleNamespace(list_topics=lambda timeout: SimpleNamespace(topics={}, brokers={1: None}))
    found = plans.plan(admin, Desired(topics=(), grants=()))
    assert [(change.kind, change.what) for change in found.changes] == [("manual", plans.AUTO_CREATE)]
    assert not found.empty


def test_a_broker_that_does_not_answer_is_a_message():
    """A refused connection ends as one sentence within the timeout, with the address and what to do."""
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "error_cb": lambda _error: None})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "ANSWER_TIMEOUT_S", 0.5)
        with pytest.raises(
            BrokerUnavailable, match=r"at 127\.0\.0\.1:1 did not list its topics.*memsluice stack status"
        ):
            plans.plan(admin, load(), "the broker at 127.0.0.1:1")
