"""Experiments: labelled streams through the gate's own core, baselines, and the figures that are measured."""

COMMANDS = {
    "demo": ("memsluice_lab.demo.cli", "See it work: a working day of three tenants, with every kind of attack."),
    "lab": ("memsluice_lab.cli", "Experiments: labelled streams through the same gate."),
}
"""Attached to ``memsluice`` by the entry point ``memsluice.commands``."""
