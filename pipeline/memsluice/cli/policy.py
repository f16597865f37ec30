"""``memsluice policy``: look at a policy file before it decides anything."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from memsluice.gate import policy as policies
from memsluice.gate.lint import Remark, Severity, lint
from memsluice.gate.policy import Policy

DIGEST_SHOWN = 16
app = typer.Typer(no_args_is_help=True, add_completion=False, help="Check the policies that decide what lands.")


@app.callback()
def _policy() -> None:
    """Check the policies that decide what lands."""


@app.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(help="Policy file; the one that ships with memsluice if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the resolved policies as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
) -> None:
    """Validate a policy file, name what is in force by its digest, and warn of what is legal but unwise."""
    found = policies.load(file) if file is not None else policies.default()
    remarks = lint(found)
    if as_json:
        everyone = {"default": found.default, **found.tenants}
        typer.echo(
            json.dumps({t: {"digest": p.digest, **p.model_dump(mode="json")} for t, p in everyone.items()}, indent=2)
        )
    else:
        _show(found, remarks)
    if any(strict or remark.severity is Severity.ERROR for remark in remarks):
        raise typer.Exit(1)


def _show(found: policies.PolicySet, remarks: list[Remark]) -> None:
    console = Console()
    table = Table("applies to", "policy", "profile", "mode", "MEMSAD", title=None)
    for who, policy in {"every tenant": found.default, **found.tenants}.items():
        table.add_row(
            who, policy.digest[: len(policy.name) + 1 + DIGEST_SHOWN], policy.profile, policy.mode, _memsad(policy)
        )
    console.print(table)
    for remark in remarks:
        console.print(
            f"[{'red' if remark.severity is Severity.ERROR else 'yellow'}]{remark.severity.value}[/] ", end=""
        )
        console.print(f"{remark.where}: {remark.text}", markup=False)
    console.print("valid" + ("" if not remarks else f", {len(remarks)} remark{'s' if len(remarks) > 1 else ''}"))


def _memsad(policy: Policy) -> str:
    memsad = policy.memsad
    if not memsad.enabled:
        return "off"
    return f"{memsad.mode.value}, κ {memsad.kappa:g}, N {memsad.reference_size}, m {memsad.history_size}"
