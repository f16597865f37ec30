"""Runs other projects' own suites against our adapters, from a folder that holds them; nothing of them is kept here."""

from pathlib import Path

SUITES = {name: Path(__file__).with_name(f"test_{name.lower()}.py") for name in ("LangGraph", "mem0", "CrewAI", "MCP")}
"""The module that runs each project's tests: from the folder that ``OUTSIDE`` names, or from a package registry."""
