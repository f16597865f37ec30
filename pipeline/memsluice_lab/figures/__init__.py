"""Figures the project states about itself, each measured by one command on the real thing: ``make figure NAME=…``."""

from memsluice_lab.figures.registry import FIGURES, Figure, Measured, Setting, get, number

__all__ = ["FIGURES", "Figure", "Measured", "Setting", "get", "number"]
