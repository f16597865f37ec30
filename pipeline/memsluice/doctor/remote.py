"""The checks that ask a broker and a store."""

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from urllib.request import urlopen

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from memsluice.connection import Connection
from memsluice.doctor.checks import Finding, State
from memsluice.errors import ConfigError, StoreUnavailable
from memsluice.stack.probes import quiet
from memsluice.topics import plan as plans
from memsluice.topics.names import KAFKA_USERS, USER_ADMIN, WEAVIATE_USERS
from memsluice.topics.spec import load

ANSWER_S = 5.0
ASKED_MAX, ASK_AGAIN_S = 10, 1.0
SKEW_S_MAX = 60.0
LAG_MANY = 1_000


def broker(connection: Connection) -> Iterator[Finding]:
    """Whether the broker answers, lets each user in that has a password here, and has topics and rules as the files."""
    for user in KAFKA_USERS:
        if user not in connection.users:
            continue
        try:
            AdminClient(quiet(connection.confluent(user))).list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            said = f"{connection.bootstrap} does not answer {user}: {error.args[0].str()}"
            yield Finding("broker", State.FAIL, said, "memsluice stack status, or the broker's own log")
            return
    yield Finding("broker", State.OK, f"{connection.bootstrap} knows all {len(connection.users)} users")
    if USER_ADMIN not in connection.users:
        yield Finding("topics", State.WARN, "not looked at: no password of the admin here")
        return
    found = plans.plan(AdminClient(quiet(connection.confluent(USER_ADMIN))), load(None))
    if found.empty:
        yield Finding("topics", State.OK, "topics and access rules are as the files say")
    else:
        first = found.changes[0]
        said = f"{len(found.changes)} differences to the files, the first: {first.kind} {first.subject} {first.what}"
        yield Finding("topics", State.FAIL, said, "memsluice topics plan")


def workers(connection: Connection) -> Iterator[Finding]:
    """Whether each stage's group has members, and how far it is behind."""
    from memsluice.inspect.lag import GROUPS, KafkaLag

    admin = AdminClient(quiet(connection.confluent(USER_ADMIN)))
    members = {group: _members(admin, group) for group in GROUPS.values()}
    for lag in KafkaLag(connection)():
        count = members[GROUPS[lag.stage]]
        said = f"{count} workers, {lag.behind:,} records behind"
        if not count:
            state = State.FAIL if lag.behind else State.WARN
            yield Finding(lag.stage, state, said, f"memsluice work {lag.stage}")
        elif lag.behind > LAG_MANY:
            yield Finding(lag.stage, State.WARN, said, "memsluice top; then see the runbook MemsluiceLagGrows")
        else:
            yield Finding(lag.stage, State.OK, said)


def _members(admin: AdminClient, group: str) -> int:
    for _ in range(ASKED_MAX):
        try:
            return len(admin.describe_consumer_groups([group], request_timeout=ANSWER_S)[group].result().members)
        except KafkaException as error:
            problem = error.args[0]
        if problem.code() == KafkaError.GROUP_ID_NOT_FOUND:  # nobody ever joined
            return 0
        time.sleep(ASK_AGAIN_S)  # a broker that has just started elects its coordinators
    raise StoreUnavailable(f"the broker does not tell who works: {problem.name()}")


def store(connection: Connection, now_s: float) -> Iterator[Finding]:
    """Whether the store answers, lets each user in, and has a clock like ours."""
    from memsluice.stores.weaviate import WeaviateStore

    address = f"{connection.weaviate_host}:{connection.weaviate_http_port}"
    for user in WEAVIATE_USERS:
        if user not in connection.weaviate_keys:
            continue
        opened = WeaviateStore.of(connection, user)
        try:
            opened.tenants()
        finally:
            opened.close()
    yield Finding("store", State.OK, f"{address} knows {len(connection.weaviate_keys)} users")
    with urlopen(f"http://{address}/v1/.well-known/ready", timeout=ANSWER_S) as answer:
        told = answer.headers.get("Date")
    if told is None:
        raise ConfigError("the store does not say what time it is")
    skew = now_s - parsedate_to_datetime(told).timestamp()
    said = f"this machine and the store differ by {abs(skew):.0f} s"
    if abs(skew) > SKEW_S_MAX:
        yield Finding("clock", State.FAIL, said, "set both by NTP: expiry and signing periods go by these clocks")
    else:
        yield Finding("clock", State.OK, said)
