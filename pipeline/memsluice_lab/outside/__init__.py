"""Runs other projects' own suites against our adapters, from a folder that holds them; nothing of them is kept here."""
