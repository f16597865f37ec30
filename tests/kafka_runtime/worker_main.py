"""A worker process for the tests: ``python worker_main.py SPEC.json``."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from mode.utils.queues import FlowControlEvent

from memsluice.deployment.connection import Connection
from memsluice.runtimes.kafka import overrides
from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.runtimes.kafka.worker import run_worker

sys.path.insert(0, str(Path(__file__).parent))

import dummies


def plant(faults: dict[str, Any]) -> None:
    """Break Faust or the runtime as a test asks for: the only stand-ins there are, and they stand in for faults."""
    if faults.get("unguarded"):
        overrides.GuardedFlow.resume = FlowControlEvent.resume
    if faults.get("leaky_fetch"):
        fetch = overrides.StageConsumerThread._fetch_records

        async def leaky(self: Any, consumer: Any, active: set[Any], **options: Any) -> Any:
            return await fetch(self, consumer, set() if self.app.in_recovery else active, **options)

        overrides.StageConsumerThread._fetch_records = leaky
    if faults.get("no_rewind"):
        del overrides.StageConsumer.perform_seek
    if (queued := faults.get("seek_until_queued")) is not None:
        seek = overrides.StageConsumer.perform_seek

        async def slow(self: Any) -> None:
            await seek(self)
            while max(queue.qsize() for queue in self.app.flow_control._queues) < queued:
                await asyncio.sleep(0.005)

        overrides.StageConsumer.perform_seek = slow
    if (held := faults.get("unconfirmed")) is not None:
        append, calls = overrides.OrderedProducer.append, iter(range(1_000_000))

        async def forgetful(self: Any, *arguments: Any) -> Any:
            future = await append(self, *arguments)
            return asyncio.get_running_loop().create_future() if next(calls) == held else future

        overrides.OrderedProducer.append = forgetful


def main() -> int:
    """Run the stages that the file describes."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    logging.basicConfig(
        level=os.environ.get("WORKER_LOG", "WARNING"), format="%(relativeCreated)d %(name)s %(message)s"
    )
    plant(plan.get("faults", {}))
    specs = []
    for stage in plan["stages"]:
        maker, arguments = getattr(dummies, stage["make"]), stage.get("arguments", {})
        if "gate" in arguments:
            arguments["gate"] = Path(arguments["gate"])
        specs.append(
            StageSpec(
                name=stage["name"],
                app_id=stage["app_id"],
                user=stage["user"],
                inputs=tuple(stage["inputs"]),
                outputs=tuple(stage["outputs"]),
                kind=stage["kind"],
                stage=lambda maker=maker, stage=stage, arguments=arguments: maker(stage["outputs"][0], **arguments),
                tuning=Tuning(**stage.get("tuning", {})),
            )
        )
    return run_worker(
        specs,
        Connection.from_file(Path(plan["connection"])),
        data_dir=Path(plan["data_dir"]),
        replica=plan["replica"],
        on_progress=lambda stages: print(
            "progress",
            [(r.topic, r.partition, r.committed, r.end, r.lag) for s in stages for r in s.partitions],
        ),
        progress_every_s=0.5,
    )


if __name__ == "__main__":
    sys.exit(main())
