"""``memsluice lab``: experiments on the product itself."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from memsluice.escaping import visible

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Experiments: labelled streams through the same gate."
)


DECISIONS = ("accept", "contain", "quarantine", "reject")


def shown(text: str) -> str:
    """Return a name that somebody else chose: nothing in it acts on the terminal or is markup."""
    return escape(visible(text))


@app.callback()
def _lab() -> None:
    """Experiments: labelled streams through the same gate."""


@app.command()
def run(
    streams: Annotated[Path, typer.Argument(help="Folder of <stream>.jsonl.", exists=True, file_okay=False)],
    out: Annotated[Path, typer.Argument(help="Folder for the verdicts, one file a stream.", file_okay=False)],
    jobs: Annotated[int, typer.Option(min=1, max=32, help="Streams at once, each with its own encoder.")] = 1,
    policy: Annotated[Path | None, typer.Option(help="Policy file. Default: the package's own.")] = None,
) -> None:
    """Decide every write of every stream and write the verdicts; what the streams say of attacks is not looked at.

    A line of a stream is a JSON object: seq (a number, once), kind (query, observe, write), source (user, agent, tool,
    web), tenant, session, agent, principal, text, time, and for a write parents, the seq of what it is made from. A
    line of OUT is one write's decision, by seq; final says what stands in the end where a later query changed it.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        loading = bar.add_task("loading the encoder", total=None)
        from memsluice_lab import run as lab

        tasks = {}

        def started(name: str) -> None:
            bar.update(loading, visible=False)
            tasks[name] = bar.add_task(shown(name), total=None)

        def progress(name: str, done: int, total: int) -> None:
            bar.update(tasks[name], completed=done, total=total)

        def finished(result: lab.StreamResult) -> None:
            bar.update(tasks[result.name], completed=result.events, total=result.events)

        watch = lab.Watch(started, progress, finished)
        results = lab.run(streams, out, jobs=jobs, policy=policy, watch=watch)
    table = Table(box=None, padding=(0, 1))
    table.add_column("stream", no_wrap=True)
    for name in ("events", "writes", *DECISIONS):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        counts = [str(result.decisions.get(decision, 0)) for decision in DECISIONS]
        table.add_row(shown(result.name), str(result.events), str(result.writes), *counts)
    console.print(table)
    console.print(f"Verdicts are in {shown(str(out))}", highlight=False, soft_wrap=True)


@app.command()
def train(
    data: Annotated[Path, typer.Option(help="Folder of the public training records.", exists=True, file_okay=False)],
    out: Annotated[Path, typer.Option(help="Folder that the two model files go to.", file_okay=False)],
    keep: Annotated[Path, typer.Option(help="Folder for 8 GiB of features.", file_okay=False)],
    seed: Annotated[int, typer.Option(min=0, help="Chooses how templates are filled.")] = 1,
) -> None:
    """Train the wording models, half an hour: on one machine the same records and seed give the same files."""
    from memsluice_lab.wording.train import train as fit

    out.mkdir(parents=True, exist_ok=True)
    for name, file in fit(data, keep, seed).files().items():
        (out / name).write_bytes(file)
        Console(stderr=True).print(f"{shown(str(out / name))}: {len(file)} bytes", highlight=False)


@app.command()
def table(
    out: Annotated[Path, typer.Option(help="Folder for what is kept between runs.", file_okay=False)],
    data: Annotated[
        Path | None, typer.Option(help="Folder with data/ and bench/build_streams.py.", envvar="MEMSLUICE_DATA")
    ] = None,
    row: Annotated[list[str] | None, typer.Option(help="A row or a section; may be repeated. Default: all.")] = None,
    page: Annotated[Path | None, typer.Option(help="Markdown page to write.", dir_okay=False)] = None,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="Streams at once, each with its own encoder.")] = 1,
    few: Annotated[bool, typer.Option("--few", help="Two conversations and one stream of each other kind.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Measure finished rows anew.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Say which rows there are and which are finished.")] = False,
) -> None:
    """Measure the tables of the detectors, row by row, and write their page. A run that was stopped goes on."""
    from memsluice_lab.table import page as pages
    from memsluice_lab.table import rows as registry
    from memsluice_lab.table import run as running

    console = Console(stderr=True, highlight=False)
    chosen = registry.chosen(tuple(row or ()))
    if list_:
        for one in chosen:
            done = sum(map(len, running.finished(one, out).values()))
            console.print(f"{one.name:<28} {done:>3} streams  {one.title}", markup=False)
        return
    place = running.Place.of(data, out)
    if page is not None:
        pages.write(page, out)  # a place where nothing can be written is said before hours of measuring

    def say(line: str) -> None:
        console.print(shown(line))
        if page is not None:
            pages.write(page, out)

    running.measure(chosen, place, jobs=jobs, only_few=few, again=again, say=say)
    if page is not None:
        pages.write(page, out)
        console.print(f"The page is in {shown(str(page))}", soft_wrap=True)
