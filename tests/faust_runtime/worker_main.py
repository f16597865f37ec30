"""A worker process for the tests: ``python worker_main.py SPEC.json``."""

import json
import sys
from pathlib import Path

from memsluice.connection import Connection
from memsluice.stages.faust.spec import StageSpec, Tuning
from memsluice.stages.faust.worker import run_worker

sys.path.insert(0, str(Path(__file__).parent))

import dummies


def main() -> int:
    """Run the stages that the file describes."""
    plan = json.loads(Path(sys.argv[1]).read_text())
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
        specs, Connection.from_file(Path(plan["connection"])), data_dir=Path(plan["data_dir"]), replica=plan["replica"]
    )


if __name__ == "__main__":
    sys.exit(main())
