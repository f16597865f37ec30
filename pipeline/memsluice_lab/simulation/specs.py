"""The stages' specs as the assembly has them, but with small bounds, so that they are met."""

from typing import Final

from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.topics import names

SEAL_BATCH: Final = 4
"""Small, so that the queue before *seal* is full as often as not: then what waits and what arrives ask for room."""


def spec_of(name: str) -> StageSpec:
    """Return a stage's spec as the assembly has it, but with small bounds, so that they are met."""
    inputs = {
        "seal": (names.EVENTS, names.COMMANDS, names.OVERFLOW),
        "screen": (names.SEALED,),
        "land": (names.ACCEPTED,),
    }[name]
    outputs = {
        "seal": (names.SEALED, names.DEAD_LETTER, names.OVERFLOW),
        "screen": (names.ACCEPTED, names.AUDIT, names.QUARANTINE),
        "land": (names.STORE, names.DEAD_LETTER),
    }[name]
    batch_size, threads = (SEAL_BATCH, 2) if name == "seal" else (16, 1)
    tuning = Tuning(batch_size=batch_size, threads=threads, in_flight=64, transaction_records=24, stream_buffer=200)
    return StageSpec(
        name=name, app_id=names.GROUPS[name], user=name, inputs=inputs, outputs=outputs,
        kind="stateful" if name == "screen" else "batch", stage=lambda: None,  # type: ignore[arg-type,return-value]
        transactional=inputs if name != "seal" else (names.OVERFLOW,),
        overflow=names.OVERFLOW if name == "seal" else "", tuning=tuning,
    )  # fmt: skip
