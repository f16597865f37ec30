"""What a measurement was made on: the class of machine by its processor's widest arithmetic, and the machine in words.

The encoder's speed is mostly that of the processor's vector and matrix instructions, so a figure holds for a class.
"""

import os
import platform
from pathlib import Path

AMX, AVX512, AVX2, OTHER = "AMX", "AVX-512", "AVX2", "other"
CLASSES = (AMX, AVX512, AVX2, OTHER)
"""Fastest first."""
_FLAGS = {AMX: {"amx_tile", "amx_bf16"}, AVX512: {"avx512f"}, AVX2: {"avx2"}}
_CPUINFO = Path("/proc/cpuinfo")


def cpuinfo() -> str:
    """Return what the kernel says of the processors; nothing where it does not say it there."""
    return _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.exists() else ""


def class_of(text: str) -> str:
    """Return the class of a machine from its /proc/cpuinfo: the fastest of which it has every flag."""
    lines = [line.partition(":")[2] for line in text.splitlines() if line.startswith("flags")]
    flags = set(lines[0].split()) if lines else set[str]()
    return next((name for name, wanted in _FLAGS.items() if wanted <= flags), OTHER)


def described() -> str:
    """Describe this machine in a few words, without naming it; its class is kept beside them."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}"
