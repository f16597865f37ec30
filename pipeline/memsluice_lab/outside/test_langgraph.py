"""LangGraph's own tests of stores (``$OUTSIDE/langgraph/checkpoint-postgres``), with a gated store of ours in each."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsluice import Session
from memsluice.adapters.langgraph import GatedStore
from memsluice.encoder import Encoder, load_encoder
from memsluice.memory.embedded import EmbeddedGate
from memsluice_lab.outside import borrowed

FOLDER = Path(os.environ["OUTSIDE"]) / "langgraph" / "checkpoint-postgres"
ABSENT = (
    "langgraph.checkpoint.postgres", "langgraph.store.postgres", "langgraph.store.postgres.aio",
    "langgraph.store.postgres.base", "psycopg", "psycopg.errors", "psycopg.rows", "psycopg_pool",
)  # fmt: skip
NOT_OURS = {
    "test_no_running_loop": "asks that a store on asyncio refuses plain calls; ours takes both",
    "test_omit_expired_filters_read_paths": "changes rows of PostgreSQL",
    "test_omit_expired_disabled_preserves_expired_rows": "changes rows of PostgreSQL",
    "test_omit_expired_refresh_ttl_only_refreshes_live_rows": "changes rows of PostgreSQL",
    "test_omit_expired_search_pagination": "changes rows of PostgreSQL",
}
"""What does not apply, and why."""
TOO_SLOW = {
    "test_large_batches_async": "60,000 calls, each a decision or a verified list: an hour; it counts as failed"
}
WHOSE = Session("suite", "agent", "ada", "thread-1")
POLICY = "name: outside\nwrites_per_day: {user_observed: 100000}\n"
"""Their largest batches write more in a minute than the policy that ships lets one person write in a day."""
TTL_MINUTES = 0.1
"""What their fixture has."""
for _prefix, _file in (("sync", "test_store.py"), ("async", "test_async_store.py")):
    _found = borrowed.tests_of(borrowed.module_of(FOLDER / _file, ABSENT), ("request", "store", "vector_store"))
    _others = {name: why for name, why in NOT_OURS.items() if name in _found}
    for _name, _test in borrowed.sorted_out(_found, _others).items():
        if _name in TOO_SLOW:
            _test = borrowed.failing(TOO_SLOW[_name])
        globals()[f"test_{_prefix}_{_name.removeprefix('test_')}"] = _test


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """Load the model once."""
    return load_encoder()


@pytest.fixture
def store(tmp_path: Path, encoder: Encoder) -> Iterator[GatedStore]:
    """Give a store on an embedded gate of its own."""
    home = tmp_path / "home"
    (home / "policies").mkdir(parents=True, mode=0o700)
    (home / "policies" / "default.yaml").write_text(POLICY)
    gate = EmbeddedGate.open_local(tenant=WHOSE.tenant, home=home, encoder=encoder)
    with GatedStore(gate, WHOSE, ttl={"default_ttl": TTL_MINUTES, "refresh_on_read": True}) as made:
        made.start_ttl_sweeper = made.stop_ttl_sweeper = _nothing  # type: ignore[attr-defined]  # only theirs has one
        yield made


async def _nothing() -> None:
    """Sweep nothing: what expired is not given, whether or not it is swept."""


vector_store = store
