"""Start-up proof that librdkafka puts a tenant where the gate looks for it.

A wrong partitioner fails silently: the records arrive, and the gate finds each on another tenant's partition.
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memsluice.errors import ConfigError
from memsluice.events.partition import partition_of

PARTITIONER = "murmur2_random"
SAMPLES = (*(f"tenant-{number}" for number in range(64)), "a", "acme", "globex", "0" * 63)
_FIXED = {"partitioner": PARTITIONER, "enable.idempotence": True, "acks": "all"}
_ALIASES = {"request.required.acks": "acks"}


def fixed_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not the caller's to choose. Raises ConfigError where the caller chose otherwise."""
    for name, value in settings.items():
        required = _FIXED.get(_ALIASES.get(name, name))
        if required is not None and str(value).lower() not in _same(required):
            raise ConfigError(f"{name} must be {required}, not {value!r}: the gate depends on it")
    return dict(_FIXED)


def _same(required: object) -> tuple[str, ...]:
    return {"all": ("all", "-1"), "True": ("true",)}.get(str(required), (str(required),))


def check_samples(partitions: int) -> bool:
    """Compare librdkafka's own function with :func:`partition_of`. Raises ConfigError where they disagree.

    Returns False where librdkafka cannot be called directly on this platform; delivery reports are checked anyway.
    """
    function = _librdkafka_function()
    if function is None:
        return False
    for tenant in SAMPLES:
        sample = tenant.encode()  # the topic handle serves only the random choice for an empty key: None will do
        if function(None, sample, len(sample), partitions, None, None) != partition_of(tenant, partitions):
            raise ConfigError(
                f"librdkafka's {PARTITIONER} chooses other partitions than the gate expects, so events would reach the "
                "wrong partition. Install a version of confluent-kafka that the package allows."
            )
    return True


def _librdkafka_function() -> Any:
    import confluent_kafka  # noqa: F401 - loads the library that is looked for below

    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        path = next(line.split(maxsplit=5)[5] for line in lines if "librdkafka" in line)
        function = ctypes.CDLL(path).rd_kafka_msg_partitioner_murmur2_random
    except (OSError, StopIteration, IndexError, AttributeError):
        return None
    pointer = ctypes.c_void_p
    function.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int32, pointer, pointer]
    function.restype = ctypes.c_int32
    return function
