"""A worker process for the tests: ``python worker_main.py SPEC.json``."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from memsluice.deployment.connection import Connection
from memsluice.keystore.store import KeyStore
from memsluice.runtimes.kafka import packing
from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.runtimes.kafka.worker import run_worker
from memsluice.topics.names import PARTITION_STATES

sys.path.insert(0, str(Path(__file__).parent))

import dummies


def plant(faults: dict[str, Any]) -> None:
    """Break Faust or the runtime as a test asks for: the only stand-ins there are, and they stand in for faults."""
    if (held := faults.get("unconfirmed")) is not None:
        give, calls = packing.Packing._give, iter(range(1_000_000))

        async def forgetful(self: packing.Packing, where: Any) -> None:
            await give(self, where)
            if next(calls) == held:
                self.waited[-1] = where.topic, asyncio.get_running_loop().create_future()

        packing.Packing._give = forgetful  # type: ignore[method-assign]


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
                transactional=tuple(stage.get("transactional", ())),
                overflow=stage.get("overflow", ""),
                keys=KeyStore(Path(stage["keys"])) if "keys" in stage else None,
                states=stage.get("states", PARTITION_STATES),
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
