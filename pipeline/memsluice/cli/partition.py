"""``memsluice partition``: which partitions stand still, and the signed orders by which they go on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json
from memsluice.cli.terminal import waiting
from memsluice.envelope.partition_orders import ACKNOWLEDGE, RESUME, Missing, PartitionOrder, PartitionState
from memsluice.escaping import visible
from memsluice.operations.partitions.words import acknowledged

if TYPE_CHECKING:
    from memsluice.operations.partitions.desk import PartitionDesk

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Partitions that stand still because of one record: list them, try again, accept a loss.",
)
Stage = Annotated[str, typer.Argument(help="seal, screen or land.")]
Partition = Annotated[int, typer.Argument(min=0, help="Number of the partition.")]
Kid = Annotated[
    str | None,
    typer.Option(
        "--kid",
        help="Operator's key id that signs; the default is the newest for all tenants held here.",
        show_default=False,
    ),
]
Wait = Annotated[float, typer.Option(min=0, max=600, help="Seconds to wait for what the worker makes of it.")]


@app.command()
def status(as_json: Json = False, home: Home = None) -> None:
    """List the partitions that are parked, why, and what lets each go on. Exits with code 9 where there is one.

    A parked partition keeps its place, and the workers run on with all others. Losses that were acknowledged are listed
    too, each with who signed, when and why.
    """
    with _desk(home) as desk:
        parked, accepted = desk.parked_now(), desk.accepted()
    if as_json:
        orders = [{**asdict(each.order), "kid": each.kid, "append_ms": each.append_ms} for each in accepted]
        print(json.dumps({"parked": [_data(state) for state in parked], "acknowledged": orders}))
    else:
        _show(parked)
        if not parked:
            print("no partition is parked")
        for each in accepted:
            print(visible(acknowledged(each), 900))
    if parked:
        raise typer.Exit(ExitCode.PROBLEM)


@app.command()
def resume(
    stage: Stage,
    partition: Partition,
    why: Annotated[str, typer.Option("--why", help="What was mended; it is signed, and kept.")] = "",
    kid: Kid = None,
    wait: Wait = 30.0,
    home: Home = None,
) -> None:
    """Try a parked partition again, from its last commit: after what was wrong has been mended.

    Nothing is skipped: with the same fault it is parked again, and the command exits with code 9. Signed with the key
    of an operator for all tenants.
    """
    with _desk(home) as desk:
        state = desk.parked(stage, partition)
        _wait(desk, desk.order(RESUME, state, why, None, desk.signer(kid)), wait)


@app.command("acknowledge-gap")
def acknowledge_gap(
    stage: Stage,
    partition: Partition,
    first: Annotated[int, typer.Option("--from", min=0, help="First offset that is missing, as `status` says it.")],
    last: Annotated[int, typer.Option("--to", min=0, help="Last offset that is missing.")],
    why: Annotated[str, typer.Option("--why", help="Why they are lost, for those who ask later; it is signed.")],
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
    kid: Kid = None,
    wait: Wait = 30.0,
    home: Home = None,
) -> None:
    """Accept that records are lost for good, and let the partition go on behind them. Asks first.

    Only the very records that are missing can be named. Signed with the key of an operator for all tenants; the order
    stays in memory.partitions.v1, for `partition status`, `doctor` and `trace`: who accepted the loss, when and why. A
    loss on the intake is found by seal and then by screen: each asks for itself.
    """
    with _desk(home) as desk:
        state, signer = desk.parked(stage, partition), desk.signer(kid)
        topic = state.missing.topic if state.missing is not None else ""
        if not yes and state.missing == Missing(topic, first, last):
            typer.confirm(
                f"Records {first} to {last} of partition {partition} of {visible(topic, 80)} are lost, and will never "
                f"be decided. Sign as {visible(signer.kid, 130)}, and go on without them?",
                abort=True,
                err=True,
            )
        _wait(desk, desk.order(ACKNOWLEDGE, state, why, Missing(topic, first, last), signer), wait)


@contextmanager
def _desk(home: Path | None) -> "Iterator[PartitionDesk]":
    from memsluice.operations.partitions.desk import PartitionDesk

    desk = PartitionDesk.at(home)
    try:
        yield desk
    finally:
        desk.close()


def _wait(desk: "PartitionDesk", order: PartitionOrder, wait_s: float) -> None:
    with waiting("waiting for the worker"):
        now = desk.answer(order, wait_s)
    if now is None:
        print(f"the order was sent; no worker of {order.stage} has answered yet")
        raise typer.Exit(ExitCode.NO_ANSWER)
    if now.parked:
        _show([now])
        raise typer.Exit(ExitCode.PROBLEM)
    print(f"partition {order.partition} of {order.stage} runs again")


def _data(state: PartitionState) -> dict[str, Any]:
    from memsluice.runtimes.kafka.parking import way_on

    return {**asdict(state), "goes_on_with": way_on(state)}


def _show(states: list[PartitionState]) -> None:
    from memsluice.recall.show import moment
    from memsluice.runtimes.kafka.parking import way_on

    for state in states:
        since = moment(state.since_ms)
        at = "" if state.offset is None else f", at record {state.offset} of {state.topic}"
        print(visible(f"{state.stage} {state.partition}: parked since {since}{at}, by worker {state.replica}", 300))
        print(f"  why: {visible(f'{state.error}: {state.reason}', 700)}")
        print(f"  goes on with: {visible(way_on(state), 700)}")
