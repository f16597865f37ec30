"""One Faust app of one stage, with the settings that measured well."""

from pathlib import Path
from typing import Any, cast

import faust

from memsluice.deployment.connection import Connection
from memsluice.runtimes.kafka import header_names
from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.overrides import StageApp, StageTables, topics_of
from memsluice.runtimes.kafka.runner import StageRunner
from memsluice.runtimes.kafka.spec import MIB, STATE_TABLE, StageSpec, Tuning
from memsluice.runtimes.kafka.stateful import StatefulRunner
from memsluice.runtimes.kafka.tracked_table import TrackedTable

DAY_S = 86_400.0
TABLE_OPTIONS = {"block_cache_size": 8 * MIB, "write_buffer_size": 8 * MIB, "target_file_size_base": 16 * MIB}
"""RocksDB, a partition each: Faust's defaults are 2 GiB of cache and 192 MiB of write buffers."""


def build_app(
    spec: StageSpec, connection: Connection, *, data_dir: Path, replica: str = "0", faults: Faults | None = None
) -> StageApp:
    """Return the app of ``spec``, ready for ``await app.start()`` in the running event loop.

    ``replica`` is this process's static membership id within the group, unique among live workers; ``data_dir`` holds
    the local copy of the state, one folder an app and replica (losing it costs a recovery from the changelog).
    Topics are expected to exist. Raises ConfigError for unknown users, whatever the stage's factory raises.
    """
    header_names.install()
    app = StageApp(
        spec.app_id,
        broker=connection.faust_broker(),
        broker_credentials=connection.faust_credentials(spec.user),
        store="rocksdb://",
        datadir=str(data_dir / spec.app_id / replica),
        Table=TrackedTable,
        TableManager=StageTables,
        canonical_url=f"http://{replica}.{spec.app_id}:1",  # Faust's assignor tells members apart by it
        consumer_group_instance_id=f"{spec.app_id}-{replica}",
        broker_client_id=f"{spec.app_id}-{replica}",
        **_settings(spec.tuning),
    )
    runner_type: type[StageRunner] = StatefulRunner if spec.kind == "stateful" else BatchRunner
    runner = runner_type(spec, spec.make(), faults if faults is not None else Faults.from_environment())
    runner.app = app
    app.runner = runner
    if spec.kind == "stateful":
        runner.table = cast(TrackedTable, _state_table(app))
    app.agent(topics_of(app, spec.inputs), name=f"{spec.app_id}.{spec.name}", concurrency=1)(runner.consume)
    return app


def _state_table(app: StageApp) -> Any:
    schema = faust.Schema(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    return app.Table(STATE_TABLE, schema=schema, key_type=bytes, value_type=bytes, options=dict(TABLE_OPTIONS))


def _settings(tuning: Tuning) -> dict[str, Any]:
    return {
        "key_serializer": "raw",
        "value_serializer": "raw",
        "web_enabled": False,
        "web_tables_enabled": False,
        "autodiscover": False,
        "topic_allow_declare": False,
        "topic_disable_leader": True,  # nothing here runs "on the leader"
        "table_standby_replicas": 0,
        "broker_commit_interval": tuning.commit_interval_s,
        "broker_session_timeout": tuning.session_s,
        "broker_heartbeat_interval": tuning.heartbeat_s,
        "broker_request_timeout": max(60.0, 2 * tuning.session_s),
        "broker_rebalance_timeout": tuning.rebalance_s,
        "broker_max_poll_interval": DAY_S,  # a sink that is down must not cost the membership
        "broker_max_poll_records": tuning.max_poll_records,
        "consumer_auto_offset_reset": "earliest",
        "stream_wait_empty": True,
        "stream_buffer_maxsize": tuning.stream_buffer,
        "stream_recovery_delay": 0.0,
        "producer_acks": -1,
        "producer_linger": tuning.producer_linger_s,
        "producer_max_request_size": tuning.max_request_bytes,
        "producer_request_timeout": 60.0,
    }
