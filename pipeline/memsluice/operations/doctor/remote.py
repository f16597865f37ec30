"""The checks that ask a broker and a store."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.request import urlopen

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from memsluice.deployment.connection import Connection, quiet
from memsluice.envelope.partition_orders import Accepted, PartitionState
from memsluice.envelope.space import Space
from memsluice.errors import BrokerUnavailable, ConfigError
from memsluice.keystore.store import KeyStore
from memsluice.operations.doctor.checks import CheckResult, CheckState
from memsluice.topics import plan as plans
from memsluice.topics.names import (
    AUDIT,
    GROUPS,
    KAFKA_USERS,
    PARTITIONS,
    USER_ADMIN,
    USER_OPERATOR,
    WEAVIATE_RECALL,
    WEAVIATE_USERS,
)
from memsluice.topics.spec import load

if TYPE_CHECKING:
    from memsluice.operations.monitor.lag import Lag

ANSWER_S = 5.0
ASKED_MAX, ASK_AGAIN_S = 10, 1.0
SKEW_S_MAX = 60.0
LAG_MANY = 1_000
LOOK_AGAIN_S = 1.0
STANDING_S = 40.0
"""For how long a stage that is behind may commit nothing: longer than a worker's session (``Tuning.session_s``), after
which the broker knows that a killed worker is dead."""


def broker(connection: Connection) -> Iterator[CheckResult]:
    """Whether the broker answers, lets each user in that has a password here, and has topics and rules as the files.

    The operator is asked first: one that answers him answers the checks that go on, whoever else is not let in.
    """
    answered = False
    for user in sorted(KAFKA_USERS, key=lambda user: user != USER_OPERATOR):
        if user not in connection.users:
            continue
        try:
            AdminClient(quiet(connection.confluent(user))).list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            said = f"{connection.bootstrap} did not answer user {user}: {error.args[0].str()}"
            what = "broker users" if answered else "broker"
            yield CheckResult(
                what, CheckState.FAIL, said, f"see memsluice stack status, or the broker's log; check {user}'s password"
            )
            return
        answered = True
    yield _known("broker", connection.bootstrap, len(connection.users))
    if USER_ADMIN not in connection.users:
        yield CheckResult("topics", CheckState.WARN, "not checked: the connection has no password of user admin")
        return
    admin = AdminClient(quiet(connection.confluent(USER_ADMIN)))
    found = plans.plan(admin, load(None), f"the broker at {connection.bootstrap}")
    if found.empty:
        yield CheckResult("topics", CheckState.OK, "topics and access rules match the files")
    else:
        first = found.changes[0]
        said = f"{len(found.changes)} differences from the files, the first: {first.kind} {first.subject} {first.what}"
        yield CheckResult("topics", CheckState.FAIL, said, "memsluice topics plan")


def _known(what: str, address: str, users: int) -> CheckResult:
    if not users:
        return CheckResult(what, CheckState.WARN, f"{address} was not asked: the connection has no user's credentials")
    return CheckResult(what, CheckState.OK, f"{address} accepts all {users} users")


def workers(
    connection: Connection,
    *,
    standing_s: float = STANDING_S,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[CheckResult]:
    """Whether each stage's group has members, how far it is behind, and whether it gets on. Asked as the operator.

    A stage that is behind is looked at again until each of those partitions has committed something. One that has not
    within ``standing_s`` stands still: the broker lists a worker that died for as long as its session lasts, so that
    whoever is listed after that lives, and does nothing.
    """
    from memsluice.operations.monitor.lag import KafkaLag

    admin = AdminClient(quiet(connection.confluent(USER_OPERATOR)))
    ask = KafkaLag(connection)
    lags = {lag.stage: lag for lag in ask()}
    count = {stage: _members(admin, group) for stage, group in GROUPS.items()}
    still = {stage: lag.waits for stage, lag in lags.items() if lag.waits and count[stage]}
    began = monotonic()
    while still and monotonic() - began < standing_s:
        sleep(LOOK_AGAIN_S)
        lags = {lag.stage: lag for lag in ask()}
        count |= {stage: _members(admin, GROUPS[stage]) for stage in still}
        unmoved = {stage: places & lags[stage].waits for stage, places in still.items()}
        still = {stage: places for stage, places in unmoved.items() if places and count[stage]}
    for stage, lag in lags.items():
        yield judged(lag, count[stage], still=len(still.get(stage, ())), waited_s=standing_s)


def judged(lag: "Lag", count: int, *, still: int, waited_s: float) -> CheckResult:
    """Judge a stage with ``count`` workers; ``still`` of its partitions are behind and committed nothing meanwhile."""
    said = f"{count} worker{'s' * (count != 1)}, {lag.behind:,} records behind"
    if lag.over_quota:
        said += f", {lag.over_quota:,} of them of tenants over their quota, which wait in the overflow"
    if not count:
        state = CheckState.FAIL if lag.behind else CheckState.WARN
        return CheckResult(lag.stage, state, f"no worker runs: {said}", f"start a worker: memsluice work {lag.stage}")
    if still:
        where = f"{still} partition{'s' * (still != 1)}"
        said = f"a worker runs and stands still: {said}, nothing committed on {where} for {waited_s:.0f} s"
        store = "see whether the store answers (its own line here); " if lag.stage == "land" else ""
        remedy = (
            f"{store}see whether a partition is parked (`memsluice partition status`), and read the worker's log, "
            "which says what it waits for; where neither says anything, start the worker anew"
        )
        return CheckResult(lag.stage, CheckState.FAIL, said, remedy)
    if lag.behind - lag.over_quota > LAG_MANY:
        remedy = "watch memsluice top, and see the runbook MemsluiceLagGrows"
        return CheckResult(lag.stage, CheckState.WARN, said, remedy)
    return CheckResult(lag.stage, CheckState.OK, said)


def _members(admin: AdminClient, group: str) -> int:
    for _ in range(ASKED_MAX):
        try:
            return len(admin.describe_consumer_groups([group], request_timeout=ANSWER_S)[group].result().members)
        except KafkaException as error:
            problem = error.args[0]
        if problem.code() == KafkaError.GROUP_ID_NOT_FOUND:  # nobody ever joined
            return 0
        time.sleep(ASK_AGAIN_S)  # a broker that has just started elects its coordinators
    raise BrokerUnavailable(f"the broker did not list the members of consumer group {group}: {problem.str()}")


def partitions(connection: Connection, keys: KeyStore) -> Iterator[CheckResult]:
    """Whether a partition is parked, and which losses somebody has answered for. Asked as the operator."""
    from memsluice.operations.partitions.desk import PartitionDesk

    with closing(PartitionDesk(connection, keys)) as desk:
        yield from judged_partitions(desk.parked_now(), desk.accepted())


def judged_partitions(parked: Sequence[PartitionState], accepted: Sequence[Accepted]) -> Iterator[CheckResult]:
    """Judge the partitions that stand still; a loss that was answered for is told, and no failure."""
    from memsluice.operations.partitions.words import acknowledged
    from memsluice.runtimes.kafka.parking import way_on

    for state in parked:
        said = f"partition {state.partition} of {state.stage} stands still: {state.error}: {state.reason}"
        yield CheckResult("partitions", CheckState.FAIL, said, way_on(state))
    losses = f"; {len(accepted)} losses, the latest {acknowledged(accepted[-1])}" if accepted else ""
    if not parked:
        yield CheckResult("partitions", CheckState.OK, f"none is parked{losses}")


def broker_clock(connection: Connection, now_s: float) -> Iterator[CheckResult]:
    """Whether the broker's clock runs ahead of ours (``now_s``, Unix seconds): signing periods go by its append times.

    The protocol tells no clock, only when the latest record was appended; a broker that is behind does not show.
    """
    admin = AdminClient(quiet(connection.confluent(USER_OPERATOR)))
    places = [TopicPartition(AUDIT, number) for number in range(PARTITIONS)]
    try:
        asked = admin.list_offsets(dict.fromkeys(places, OffsetSpec.max_timestamp()), request_timeout=ANSWER_S)
        latest_ms = max(answer.result().timestamp for answer in asked.values())
    except KafkaException as error:
        raise BrokerUnavailable(
            f"the broker did not return the time of its latest record: {error.args[0].str()}"
        ) from None
    yield clock_of_broker(latest_ms, now_s)


def clock_of_broker(latest_ms: int, now_s: float) -> CheckResult:
    """Judge the latest append time of the broker (Unix ms, negative where there is none)."""
    ahead = latest_ms / 1_000 - now_s
    if ahead > SKEW_S_MAX:
        said = f"the broker's clock is {ahead:.0f} s ahead of this machine's, by its latest record"
        return CheckResult(
            "broker clock",
            CheckState.FAIL,
            said,
            "synchronise both clocks with NTP: signing periods go by the broker's clock",
        )
    return CheckResult("broker clock", CheckState.OK, "the broker's latest record is not ahead of this machine's clock")


def space(connection: Connection) -> Space | None:
    """Return the encoder of the store's vectors, as a reader is told; None where it has none."""
    from memsluice.stores.opening import open_store

    with closing(open_store(connection, WEAVIATE_RECALL)) as opened:
        return opened.space()


def store(connection: Connection, now_s: float) -> Iterator[CheckResult]:
    """Whether the store answers, lets each user in, and has a clock like ours."""
    from memsluice.stores.opening import open_store

    address = f"{connection.weaviate_host}:{connection.weaviate_http_port}"
    for user in WEAVIATE_USERS:
        if user not in connection.weaviate_keys:
            continue
        opened = open_store(connection, user)
        try:
            opened.tenants()
        finally:
            opened.close()
    yield _known("store", address, len(connection.weaviate_keys))
    with urlopen(connection.weaviate_ready_url, timeout=ANSWER_S) as answer:  # noqa: S310 - http or https, nothing else
        told = answer.headers.get("Date")
    if told is None:
        raise ConfigError("the store's answer has no Date header, so its clock could not be checked")
    skew = now_s - parsedate_to_datetime(told).timestamp()
    said = f"the clocks of this machine and the store differ by {abs(skew):.0f} s"
    if abs(skew) > SKEW_S_MAX:
        yield CheckResult(
            "clock",
            CheckState.FAIL,
            said,
            "synchronise both clocks with NTP: readers expire entries by this machine's clock",
        )
    else:
        yield CheckResult("clock", CheckState.OK, said)
