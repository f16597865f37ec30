"""Quotas, and who waits: pure, by clocks that are given."""

from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsluice.stages.quota import TURN_EVENTS, Bucket, Quota, TenantLanes

QUOTAS = st.builds(Quota, st.integers(1, 100), st.integers(1, 50))
STEPS = st.lists(st.integers(0, 3_000), max_size=150)
TENANTS = ("ana", "bea", "cem")


@settings(deadline=None)
@given(QUOTAS, STEPS)
def test_no_more_goes_than_the_burst_and_the_rate_over_the_time_that_passed(quota: Quota, steps: list[int]) -> None:
    """In any stretch of time, from the first event on, at most ``burst + per_s x seconds`` are taken."""
    bucket, now_ms, taken = Bucket(quota, 0), 0, 0
    for step in steps:
        now_ms += step
        taken += bucket.take(quota, now_ms)
        assert taken <= quota.burst + now_ms * quota.per_s / 1_000 + 1e-6


@settings(deadline=None)
@given(QUOTAS, st.lists(st.integers(1, 300), max_size=12), st.integers(0, 5_000))
def test_a_tenant_that_waits_again_and_again_gets_no_more_than_its_quota(
    quota: Quota, bursts: list[int], pause_ms: int
) -> None:
    """What waited is taken off the quota as what went straight on is: whoever sends more than its burst, waits until
    all is through and does so again would otherwise have a full burst each time, and twice its quota over time."""
    lanes, now_s, gone = TenantLanes(lambda _tenant: quota), 0.0, 0
    for burst in bursts:
        append_ms = round(now_s * 1_000)
        for _ in range(burst):
            if lanes.straight("ana", append_ms):
                gone += 1
            else:
                lanes.wait("ana", now_s)
        while lanes.waiting["ana"]:
            now_s = max(now_s, lanes.due_s("ana"))
            lanes.go_on("ana", append_ms, now_s)
            gone += 1
        assert gone <= quota.burst + now_s * quota.per_s + TURN_EVENTS + 2
        now_s += pause_ms / 1_000


@settings(deadline=None)
@given(QUOTAS, STEPS)
def test_who_keeps_to_the_rate_is_never_refused(quota: Quota, steps: list[int]) -> None:
    """A tenant whose events are at least ``1 / per_s`` apart goes straight on, for ever."""
    bucket, now_ms = Bucket(quota, 0), 0
    for step in steps:
        now_ms += step + -(-1_000 // quota.per_s)
        assert bucket.take(quota, now_ms)


def test_a_clock_that_steps_back_gives_nothing() -> None:
    """Nobody earns anything by a broker's clock that jumps to and fro."""
    quota = Quota(1, 1)
    bucket = Bucket(quota, 10_000)
    assert bucket.take(quota, 10_000)
    assert not any(bucket.take(quota, at) for at in (5_000, 10_000, 9_000, 10_500))
    assert bucket.take(quota, 11_000)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from((*TENANTS, "")), st.integers(0, 400)), max_size=200),
    st.dictionaries(st.sampled_from(TENANTS), st.just(Quota(3, 4))),
    st.integers(0, 12),
)
def test_a_tenant_s_events_leave_in_the_order_in_which_they_came(
    steps: list[tuple[str, int]], quotas: dict[str, Quota], before: int
) -> None:
    """However arrivals and what waits take turns ("": the next that waits goes on), nobody's events change places, and
    all of them leave in the end."""
    lanes = TenantLanes(quotas.get, Counter({"ana": before}))
    waiting, left, came = deque(("ana", -before + number) for number in range(before)), [], Counter[str]()
    now_ms = 0
    for tenant, step in steps:
        now_ms += step
        if not tenant:
            if waiting:
                left.append(waiting.popleft())
                lanes.go_on(left[-1][0], now_ms, now_ms / 1_000)
            continue
        number = came[tenant]
        came[tenant] += 1
        if lanes.straight(tenant, now_ms):
            left.append((tenant, number))
        else:
            assert tenant in quotas or before
            lanes.wait(tenant, now_ms / 1_000)
            waiting.append((tenant, number))
    while waiting:
        left.append(waiting.popleft())
        lanes.go_on(left[-1][0], now_ms, now_ms / 1_000)
    assert not lanes.waiting.total()
    for tenant in TENANTS:
        mine = [number for name, number in left if name == tenant]
        first = -before if tenant == "ana" else 0
        assert mine == list(range(first, came[tenant]))


def test_what_waits_goes_on_at_the_rate_of_its_tenant() -> None:
    """Ten events of a tenant with five a second take two seconds, whatever the looks between are like."""
    lanes, now_s, gone = TenantLanes(lambda _tenant: Quota(5, 1), {"ana": 100}), 1_000.0, 0
    while now_s < 1_002.0:
        while lanes.due_s("ana") <= now_s:
            lanes.go_on("ana", 0, now_s)
            gone += 1
        now_s += 0.03
    assert 9 <= gone <= 12


@pytest.mark.parametrize(("missed_s", "at_once"), [(0.05, 1), (0.85, 9), (5.0, 10)])
def test_what_a_tenant_missed_behind_others_it_takes_later(missed_s: float, at_once: int) -> None:
    """It has a right to its quota; of a long stop no more than a second's worth comes at once."""
    lanes = TenantLanes(lambda _tenant: Quota(10, 1), {"ana": 100})
    lanes.go_on("ana", 0, 1_000.0)
    now_s, gone = 1_000.0 + 0.1 + missed_s, 0
    lanes._turn_s["ana"] = 0.0  # of turns there is another test
    while lanes._due_s["ana"] <= now_s:
        lanes.go_on("ana", 0, now_s)
        gone += 1
    assert gone in (at_once, at_once + 1)  # a second is ten of them, and the last one may be due just now


def test_what_waits_goes_on_in_turns_of_a_few() -> None:
    """A few at once share a commit of each stage; never so many that a neighbour's event waits behind them for long."""
    lanes, now_s, turns = TenantLanes(lambda _tenant: Quota(100, 1), {"ana": 1_000}), 1_000.0, Counter[float]()
    while now_s < 1_001.0:
        while lanes.due_s("ana") <= now_s:
            lanes.go_on("ana", 0, now_s)
            turns[now_s] += 1
        now_s += 0.001
    assert set(turns.values()) <= {TURN_EVENTS, TURN_EVENTS + 1}  # the turn of a tenth of a second, and its first event
    assert 80 <= turns.total() <= 120


def test_an_outage_of_ours_puts_nobody_over_the_quota() -> None:
    """Ten minutes' events that are read at once were appended over ten minutes: they count as of then."""
    lanes = TenantLanes(lambda _tenant: Quota(2, 3))
    assert all(lanes.straight("ana", 1_000_000 + number * 500) for number in range(1_200))


def test_what_a_tenant_did_not_send_is_not_counted() -> None:
    """Whoever publishes in another's name, without its key, uses up nothing of its quota."""
    lanes = TenantLanes(lambda _tenant: Quota(1, 2))
    for _ in range(50):
        assert lanes.straight("ana", 5_000)
        lanes.uncount("ana", waited=False)
    assert lanes.straight("ana", 5_000)
    assert lanes.straight("ana", 5_000)
    assert not lanes.straight("ana", 5_000)
