"""What is installed, how the command starts, how good the tests are, what this tree costs over older ones."""

from memsluice_lab.figures.registry.figure import Figure

TREE = (
    Figure(
        "sdk_packages",
        "installing:sdk_packages",
        "<=",
        20,
        "packages",
        "Distributions in an empty environment into which the base wheel alone was installed, itself among them.",
    ),
    Figure(
        "sdk_modules",
        "installing:sdk_modules",
        "<=",
        250,
        "modules",
        "Modules that `from memsluice import MemoryWriter` and `MemoryWriter.open_local(tenant=...)` load in that "
        "environment, Python's own library included, beyond those of the bare interpreter.",
    ),
    Figure(
        "stale_figures",
        "stale:stale_figures",
        "==",
        0,
        "figures",
        "Figures of which no measurement is kept, on any class of machine, that was made on the code as it is now.",
        recorded=False,
    ),
    Figure(
        "cli_start_ratio",
        "cli_start:cli_start_ratio",
        "<=",
        1.5,
        "x",
        "Start of the slowest of `memsluice --help`, `quarantine list` and `trace` on a small embedded home, over "
        "`python -c 'import typer, rich, confluent_kafka'`, in turns.",
    ),
    Figure(
        "mutation_score",
        "mutants:mutation_score",
        ">=",
        0.85,
        "",
        "Share of 300 small faults, drawn with a fixed seed and planted one at a time in gate, stages and recall, for "
        "which a test that needs no stack fails.",
    ),
    Figure(
        "fence_cost",
        "fencing:fence_cost",
        "<=",
        10,
        "%",
        "Share of guarded throughput that this tree costs over the one before the fence (8d5a1a3), all that came since "
        "included: landed writes a second with the workers of either, in turn, in bursts of the same real events.",
        together="fence",
    ),
    Figure(
        "ingest_cost",
        "fencing:ingest_cost",
        "<=",
        5,
        "%",
        "Share of throughput that this tree costs over the one before the gate's signals were made anew (3120c47), all "
        "that came since included, the fence as well: the same writes of the same bursts, each decided, and landed "
        "where it was to.",
        together="fence",
    ),
    Figure(
        "fence_light_ms",
        "fencing:fence_light_ms",
        "<=",
        20,
        "ms",
        "Milliseconds by which this tree's median from produce to landed under light load, in turn, is above that of "
        "the one before the fence (8d5a1a3), all that came since included.",
        together="fence",
    ),
)
