"""What the paper of MEMSAD (seed 000) has besides the score: MEMSAD+, watermark, proactive probes, the composite.

Published rules, to be chosen by policy (``detector: memsad`` and ``memsad.variant``) and compared with. Validation, its
rule-based pattern matching, names no pattern; seed 002's are used (:mod:`memsluice.gate.checks.instructions`).
"""
