"""The files in ``topics/`` and what reads them."""

from pathlib import Path

import faust
import pytest

from memsluice.errors import TopicsError
from memsluice.stages.dead_letter import HEAD_BYTES_MAX, PART_BYTES_MAX
from memsluice.topics import names
from memsluice.topics.spec import FOREVER_MS, TopicSpec, default_directory, load, load_topics

BY_NAME = {topic.name: topic for topic in load_topics()}
TENANT_KEYED = {
    names.EVENTS,
    names.COMMANDS,
    names.OVERFLOW,
    names.SEALED,
    names.ACCEPTED,
    names.STORE,
    names.QUARANTINE,
    names.AUDIT,
    names.DEAD_LETTER,
}
MIB = 1024 * 1024

GOOD = """
meta: {name: demo.v1, schema: text, description: why}
spec: {partitions: 2, replication: 1, cleanup: delete, retention: 1d, max_message: 1 MiB, timestamp: CreateTime}
"""


def _written(folder: Path, text: str, name: str = "demo.v1") -> Path:
    (folder / f"{name}.yaml").write_text(text)
    return folder


def test_names_in_code_and_files_agree():
    """A topic renamed in one place only would be read by nobody."""
    assert set(BY_NAME) == TENANT_KEYED | {names.SCREEN_CHANGELOG, names.PARTITION_STATES}


def test_partition_counts_agree():
    """murmur2 of the tenant over PARTITIONS must be the same number everywhere, the changelog's included."""
    for name in TENANT_KEYED | {names.SCREEN_CHANGELOG}:
        assert BY_NAME[name].spec.partitions == names.PARTITIONS, name


def test_faust_calls_its_topics_as_the_files_do():
    """Nothing creates a topic by itself, so a name Faust computes differently would stop it at its first start."""
    app = faust.App(names.APP_SCREEN, broker="kafka://localhost:1")
    table = app.Table(names.SCREEN_STATE_TABLE)
    assert table.changelog_topic_name == names.SCREEN_CHANGELOG


def test_every_principal_is_a_user_of_the_broker():
    """A grant to a mistyped user would look like access and be none; the super user needs no grant."""
    assert load().principals() == set(names.KAFKA_USERS) - {names.USER_ADMIN}


@pytest.mark.parametrize("name", [names.AUDIT, names.DEAD_LETTER, names.EVENTS, names.SEALED, names.QUARANTINE])
def test_what_must_never_be_compacted_is_not(name: str):
    """Compaction would break the hash chain, take null-valued dead letters for deletions, and leave gaps in offsets."""
    assert BY_NAME[name].spec.cleanup == "delete"


def test_what_is_looked_up_by_key_is_compacted_and_kept():
    """The store's index and screen's state hold each key's last record for as long as the key lives."""
    for name in (names.STORE, names.SCREEN_CHANGELOG, names.PARTITION_STATES):
        assert BY_NAME[name].spec.cleanup == "compact"
        assert BY_NAME[name].spec.retention == FOREVER_MS


def test_the_intakes_clock_is_the_brokers():
    """Screen's clock is the intake's append time, which a producer can't set."""
    for name in (names.EVENTS, names.COMMANDS):
        assert BY_NAME[name].spec.timestamp == "LogAppendTime"


def test_a_dead_letter_has_room_for_its_largest_part():
    """A dead letter that the broker refuses would stop the stage, again after each restart."""
    assert BY_NAME[names.DEAD_LETTER].spec.max_message > PART_BYTES_MAX + HEAD_BYTES_MAX + MIB


def test_dead_letters_are_capped_by_bytes():
    """Whoever may write to the intake can make dead letters without end; the other topics hold what is still needed."""
    assert BY_NAME[names.DEAD_LETTER].settings(brokers=1)["retention.bytes"] == str(1024 * MIB)
    capped = [name for name, topic in BY_NAME.items() if "retention.bytes" in topic.settings(brokers=1)]
    assert capped == [names.DEAD_LETTER]


def test_a_compacted_topic_has_no_cap(tmp_path: Path):
    """A cap would delete rows that are still current."""
    text = GOOD.replace("delete, retention: 1d", "compact, retention: forever, retention_size: 1 GiB")
    with pytest.raises(TopicsError, match="can have no retention_size"):
        load_topics(_written(tmp_path, text))


def test_what_can_be_rebuilt_is_kept_long_enough():
    """accepted outlives the longest finite time to live (365 days); sealed outlives no less than the intake."""
    day_ms = 86_400_000
    assert BY_NAME[names.ACCEPTED].spec.retention > 365 * day_ms
    assert BY_NAME[names.SEALED].spec.retention >= BY_NAME[names.EVENTS].spec.retention


def test_units_are_read(tmp_path: Path):
    """Durations and sizes are written for people and applied in milliseconds and bytes."""
    topic = load_topics(_written(tmp_path, GOOD.replace("1 MiB", "2.5 MiB")))[0]
    assert topic.settings(brokers=1)["retention.ms"] == "86400000"
    assert topic.settings(brokers=1)["max.message.bytes"] == str(5 * MIB // 2)


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (9, 3, "2")])
def test_copies_follow_the_cluster(brokers: int, copies: int, in_sync: str):
    """The same files serve one broker and three: never more copies than brokers, and one broker may be away."""
    topic: TopicSpec = BY_NAME[names.EVENTS]
    assert topic.replicas(brokers) == copies
    assert topic.settings(brokers)["min.insync.replicas"] == in_sync


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("partitions: 2", "partitions: 0"), "spec.partitions"),
        (GOOD.replace("retention: 1d", "retention: 1 fortnight"), "spec.retention"),
        (GOOD.replace("cleanup: delete", "cleanup: compact"), "retention must be forever"),
        (GOOD.replace("spec: {", "spec: {colour: red, "), "spec.colour"),
        (GOOD.replace("demo.v1", "other.v1"), "must be named other.v1.yaml"),
        ("a: [", "not YAML"),
        ("just text", "file"),
    ],
)
def test_a_wrong_file_is_named_with_its_field(tmp_path: Path, text: str, told: str):
    """The message leads to the line: file, field, what is expected."""
    with pytest.raises(TopicsError, match=r"demo\.v1\.yaml") as caught:
        load(_written(tmp_path, text))
    assert told in str(caught.value)


def test_an_empty_folder_is_not_an_empty_wish(tmp_path: Path):
    """A mistyped --files must not plan the removal of every grant."""
    with pytest.raises(TopicsError, match="There are no topic files"):
        load(tmp_path)


def test_the_projects_own_files_are_the_default():
    """Checkout, demo, tests and deployment read the same files."""
    assert (default_directory() / "access.yaml").exists()
    assert len(load().topics) == len(BY_NAME)
