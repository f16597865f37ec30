"""Runs other projects' own suites against our adapters, from a folder that holds them; nothing of them is kept here."""

from pathlib import Path

SUITES = {
    "LangGraph": Path(__file__).with_name("test_langgraph.py"),
    "MCP": Path(__file__).with_name("test_mcp.py"),
}
"""The module that runs each project's tests: from the folder that ``OUTSIDE`` names, or from a package registry."""
