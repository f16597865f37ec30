"""Faust as it comes, to show on the real broker what the runtime guards against: ``plain_faust.py PLAN.json``.

``faults.shows``: ``acks`` acknowledges offsets 4 and 5 only; ``changelog`` sets a table row a record.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import faust

from memsluice.deployment.connection import Connection


def app_of(plan: dict[str, Any]) -> faust.App:
    """Return a plain app that shows what the plan asks for."""
    stage = plan["stages"][0]
    connection = Connection.from_file(Path(plan["connection"]))
    app = faust.App(
        stage["app_id"],
        broker=connection.faust_broker(),
        broker_credentials=connection.faust_credentials(stage["user"]),
        store="memory://",
        datadir=plan["data_dir"],
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        broker_commit_interval=0.25,
        stream_wait_empty=False,
    )
    schema = faust.Schema(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    source = app.topic(*stage["inputs"], schema=schema)
    table = app.Table("state", schema=schema, key_type=bytes, value_type=bytes)

    if plan["faults"]["shows"] == "acks":

        @app.agent(source)
        async def acknowledge(stream: Any) -> None:
            async for event in stream.noack().events():
                if event.message.offset >= 4:
                    event.ack()

    else:

        @app.agent(source)
        async def keep(stream: Any) -> None:
            async for event in stream.events():
                table[event.message.key] = b"x" * 50_000 if event.message.value == b"poison" else event.message.value

    return app


async def main() -> None:
    """Run until killed."""
    app = app_of(json.loads(Path(sys.argv[1]).read_text()))
    await app.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
