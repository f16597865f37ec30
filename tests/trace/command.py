"""Runs the command line as a person would."""

from tests import command


def run(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command; return (exit code, standard output, standard error on one line)."""
    shown = command.run(*arguments, environment=environment)
    return shown.code, shown.out, shown.said
