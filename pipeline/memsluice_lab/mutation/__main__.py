"""``python -m memsluice_lab.mutation [UNDER]``: try some mutants of one folder or file, and print those that live.

``--keep FOLDER`` keeps the record of the tests there, and takes it from there the next time: good while no test and no
line of the product moved.
"""

import argparse
import sys
import time
from pathlib import Path

from memsluice_lab.mutation import record, run

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    """Try what the command line names; 1 where a mutant lives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("under", nargs="?", default="", help="for instance gate/checks, or stages/land.py")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=run.SEED)
    parser.add_argument("--keep", type=Path, required=True)
    options = parser.parse_args()
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", file=sys.stderr)

    copies = [record.copy_of(ROOT, (options.keep / str(number)).resolve()) for number in range(2)]
    paths = [copy / "mutation-record.json" for copy in copies]
    recorded = record.read(copies, paths) if all(path.exists() for path in paths) else record.record(copies)
    product = copies[0] / record.PRODUCT
    all_of_them = run.candidates(product, options.under)
    some = run.sample(product, all_of_them, min(options.count, len(all_of_them)), options.seed)
    results = run.run(copies, recorded, some, say)
    for result in results:
        if not result.killed:
            one = result.planted
            print(
                f"{result.outcome} {one.path}:{one.mutant.line} {one.mutant.operator}: {run.difference(product, one)}"
            )
    print(f"{sum(result.killed for result in results)} of {len(results)} died, of {len(all_of_them)} there are")
    return int(not all(result.killed for result in results))


if __name__ == "__main__":
    sys.exit(main())
