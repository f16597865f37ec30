"""MEMSAD as published (seed 000), and its variants.

The variants (MEMSAD+, watermark, proactive probes, the composite) are published rules, to be chosen by policy
(``detector: memsad`` and ``memsad.variant``) and compared with. Validation, the paper's rule-based pattern matching,
names no pattern; seed 002's are used (:mod:`memsluice.gate.checks.instructions`).
"""
