"""One Faust app of one stage, with the settings that measured well."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faust

from memsluice.deployment.connection import Connection
from memsluice.runtimes.kafka import coordinator, fence, header_names
from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.overrides import StageApp, StageTables
from memsluice.runtimes.kafka.runner import StageRunner
from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.runtimes.kafka.stateful import StatefulRunner

DAY_S = 86_400.0
ROWS_FOLDER = "rows"


def build_app(
    spec: StageSpec, connection: Connection, *, data_dir: Path, replica: str = "0", faults: Faults | None = None
) -> StageApp:
    """Return the app of ``spec``, ready for ``await app.start()`` in the running event loop.

    ``replica`` is this process's static membership id within the group, unique among live workers; ``data_dir`` holds
    the local copy of the state, one folder an app and replica (losing it costs a recovery from the changelog).
    Topics are expected to exist. Raises ConfigError for unknown users, whatever the stage's factory raises.
    """
    coordinator.install()
    fence.install()
    header_names.install()
    app = StageApp(
        spec.app_id,
        broker=connection.faust_broker(),
        broker_credentials=connection.faust_credentials(spec.user),
        store="memory://",  # no table of Faust's: state.py has the rows
        datadir=str(data_dir / spec.app_id / replica),
        TableManager=StageTables,
        consumer_group_instance_id=f"{spec.app_id}-{replica}",
        broker_client_id=f"{spec.app_id}-{replica}",
        **_settings(spec.tuning),
    )
    faults = faults if faults is not None else Faults.from_environment()
    runner: StageRunner
    if spec.kind == "stateful":
        folder = data_dir / spec.app_id / replica / ROWS_FOLDER
        runner = StatefulRunner(spec, spec.make(), faults, app, connection, folder)
    else:
        runner = BatchRunner(spec, spec.make(), faults, app, connection)
    runner.replica = replica
    app.runner = runner
    app.agent(_topics_of(app, spec.inputs), name=f"{spec.app_id}.{spec.name}", concurrency=1)(runner.consume)
    return app


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
    }


def _topics_of(app: Any, names: Sequence[str]) -> Any:
    """Return a raw topic channel over ``names``: bytes in, bytes out, nothing decoded, nothing declared."""
    schema = faust.Schema(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    return app.topic(*names, schema=schema, internal=False)
