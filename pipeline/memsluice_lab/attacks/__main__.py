"""``python -m memsluice_lab.attacks``: the attacks of seed 000 without a gate, table by table, beside the paper."""

import argparse
import sys
from collections.abc import Sequence

from memsluice.encoder import load_encoder
from memsluice_lab.attacks.setting import Case, cases
from memsluice_lab.attacks.tables import TABLES, Table

SEEDS = 5
"""Of the paper's main evaluation."""


def main(arguments: list[str] | None = None) -> int:
    """Print what was asked for, as Markdown. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m memsluice_lab.attacks", description=__doc__)
    names = [table.number for table in TABLES]
    parser.add_argument("--table", action="append", choices=names, help="one table, may be repeated (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="corpora and attacks drawn (default: %(default)s)")
    parser.add_argument("--equations", action="store_true", help="only what needs no encoder: the paper's numbers")
    asked = parser.parse_args(arguments)
    if asked.seeds < 1:
        parser.error("--seeds is at least 1")
    chosen = [table for table in TABLES if table.number in (asked.table or names)]
    if asked.equations:
        _print([table for table in chosen if table.bare], [])
        return 0
    _print(chosen, list(cases(load_encoder(), range(asked.seeds))))
    return 0


def _print(chosen: Sequence[Table], some: Sequence[Case]) -> None:
    for table in chosen:
        print(f"\n**{'Appendix' if table.number.isalpha() else 'Table'} {table.number}: {table.title}**\n")
        print(f"| {' | '.join(table.columns)} |\n|{'---|' * len(table.columns)}")
        for row in table.rows(some):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
