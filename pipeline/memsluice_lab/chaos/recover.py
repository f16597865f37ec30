"""A worker that starts over a folder, empty or not, and says how long that took; of *screen*, or of bare Faust.

``python -m memsluice_lab.chaos.recover screen|bare HOME DATA``: the last line printed is the seconds from the start of
the app, once everything is loaded, until it has its partitions and their state and takes records.
"""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import faust

from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.runtimes.assembly import Assembly
from memsluice.runtimes.kafka.apps import build_app
from memsluice.runtimes.kafka.progress import stage_progress
from memsluice.topics import names

BARE_APP = "memsluice-bare"
BARE_SOURCE = f"{BARE_APP}-in"
REPLICA = "recover"
READY_S_MAX = 540
STOP_S_MAX = 30
POLL_S = 0.02


def bare(connection: Connection, data: Path) -> faust.App:
    """Return Faust as it comes, with a table in RocksDB over as many partitions."""
    app = faust.App(
        BARE_APP,
        broker=connection.faust_broker(),
        broker_credentials=connection.faust_credentials(names.USER_ADMIN),
        store="rocksdb://",
        datadir=str(data),
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
    )
    schema = faust.Schema(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    table = app.Table(names.SCREEN_STATE_TABLE, schema=schema, key_type=bytes, value_type=bytes)

    async def keep(stream: Any) -> None:
        async for event in stream.events():
            table[event.message.key] = event.message.value

    app.agent(app.topic(BARE_SOURCE, schema=schema))(keep)
    return app


async def main(kind: str, home: Path, data: Path) -> None:
    """Print the seconds until it is ready, leave the group, and end. Raises TimeoutError."""
    connection = Connection.load(home)
    app: Any
    if kind == "screen":
        spec = Assembly.at(Home.at(home)).specs(connection)["screen"]
        (data / spec.app_id / REPLICA).mkdir(parents=True, exist_ok=True)
        app = build_app(spec, connection, data_dir=data, replica=REPLICA)
    else:
        app = bare(connection, data)

    def ready() -> bool:
        if kind == "screen":
            return stage_progress(app).ready
        recovered: bool = app.tables.recovery.completed.is_set()
        return recovered

    began = time.monotonic()
    starting = asyncio.ensure_future(app.start())
    async with asyncio.timeout(READY_S_MAX):
        while not ready():
            if starting.done():
                starting.result()  # raises what went wrong
            await asyncio.sleep(POLL_S)
    print(time.monotonic() - began, flush=True)
    starting.cancel()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(app.stop(), STOP_S_MAX)  # or the next one waits until the group has given this one up
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
