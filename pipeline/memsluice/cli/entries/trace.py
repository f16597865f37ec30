"""``memsluice trace``: everything about one event, from the audit topic alone."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json, Tenant
from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.operations.trace.collect import Traced

app = typer.Typer(add_completion=False, help="Everything about one event id, from the audit topic alone.")


@app.command()
def trace(
    event_id: Annotated[str, typer.Argument(help="Id of a write, recall, observation or command.")],
    tenant: Tenant = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show everything about an event: who wrote it and when, what each stage did, which rule decided, where it is now.

    Where another write of the same text got another decision, it says which, and what differed. The command reads only
    memory.audit.v1 and verifies each record's seal. Of an event that is not there it says which
    records were acknowledged as lost, and by whom, as memory.partitions.v1 has it.
    """
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.trace import collect
    from memsluice.operations.trace.opening import as_data, audit_topic, lost, not_found
    from memsluice.topics.names import PARTITIONS

    with audit_topic(home) as topic:
        with waiting("reading the audit"):
            found = collect.trace(topic, KeyStore(home).keyring(), event_id, tenant, PARTITIONS)
        if as_json:
            print(json.dumps(as_data(found, event_id, topic.name, wall_ms())))
        elif found.lives:
            show(Console(highlight=False), found, wall_ms())
        if not found.lives:
            told = not_found(found, event_id, tenant, topic.name) + lost(topic, home, tenant)
            Console(stderr=True, soft_wrap=True, highlight=False).print(Text(told))
            raise typer.Exit(ExitCode.NOT_FOUND)


def show(console: Console, found: "Traced", now_ms: int) -> None:
    """Print every life, and say where there are several, or records that did not verify."""
    from memsluice.cli.render.life import render
    from memsluice.gate.reasons import words

    if len(found.lives) > 1:
        console.print(
            f"[bold yellow]{len(found.lives)} tenants have an event of this id.[/] Choose one with --tenant.\n"
        )
    for number, life in enumerate(found.lives):
        if number:
            console.print()
        console.print(render(life, now_ms, words, found.ancestors, found.same_text))
    if found.left_out:
        console.print(
            f"[yellow]{found.left_out} records of further tenants are not shown: choose a tenant with --tenant.[/]"
        )
    if found.unverified:
        console.print(
            f"[red]{found.unverified} audit records do not verify under this home's keys and are not shown.[/]"
        )
