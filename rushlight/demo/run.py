"""The demo from data to results: check everything, train with a progress bar, draw, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import rushlight as torch
from rushlight import nn, viz
from rushlight.demo import BadInput
from rushlight.demo.digits import read_digits
from rushlight.demo.pictures import draw_digits, draw_loss
from rushlight.demo.results import check_folder, write
from rushlight.demo.train import BATCH, History, first_loss, network, predict, split, train
from rushlight.utils.data import Subset

FILES = ("loss.png", "digits.png", "graph.svg", "backward.html", "weights.pt")


def run(out: Path, data: Path, epochs: int, lr: float, seed: int, overwrite: bool, quiet: bool) -> None:
    """The whole demo. Raises `BadInput` before training starts, `OSError` if results cannot be written."""
    start = time.perf_counter()
    check_tools()
    out = out.resolve()
    check_folder(out, FILES, overwrite)
    train_set, test_set = split(*read_digits(data))
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # products of 32 rows: a second thread costs more than it brings
    model = network()
    picture, page = pages(model, train_set)
    steps = epochs * -(-len(train_set) // BATCH)
    with progress(steps, quiet) as report:
        history = train(model, train_set, test_set, epochs, lr, report)
    trained = time.perf_counter()
    write(out, dict(zip(FILES, writers(model, history, test_set, picture, page))))
    if not quiet:
        show_table(model, history, len(test_set), trained - start, time.perf_counter() - start, out)


def check_tools() -> None:
    missing = [name for name in ("matplotlib", "rich") if find_spec(name) is None]
    if missing:
        raise BadInput(f"the demo needs {' and '.join(missing)}: pip install {' '.join(missing)}")


def pages(model: nn.Module, train_set: Subset) -> tuple[str, str]:
    """The graph and the step page of the first training step: the network is untrained, and there are no gradients
    yet.
    """
    with torch.random.fork_rng(), viz.module_calls(model):  # training draws the same numbers
        loss = first_loss(model, train_set)
    return viz.svg(loss, model), viz.html(loss, params=model)


def writers(
    model: nn.Module, history: History, test_set: Subset, picture: str, page: str
) -> tuple[Callable[[Path], object], ...]:
    """The function that writes each of FILES."""
    return (
        lambda path: draw_loss(path, history),
        lambda path: draw_digits(path, *predict(model, test_set)),
        lambda path: path.write_text(picture, encoding="utf-8"),
        lambda path: path.write_text(page, encoding="utf-8"),
        lambda path: torch.save(model.state_dict(), path),
    )


@contextmanager
def progress(steps: int, quiet: bool) -> Iterator[Callable[[History], None]]:
    """A progress bar on stderr; yields the function that updates it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeElapsedColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.1%}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("", total=steps, loss=float("nan"), accuracy=0.0)

        def report(history: History) -> None:
            accuracy = history.accuracies[-1] if history.accuracies else 0.0
            bar.update(task, completed=len(history.losses), loss=history.losses[-1], accuracy=accuracy)

        yield report


def show_table(model: nn.Module, history: History, tested: int, trained: float, total: float, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    accuracy = history.accuracies[-1]
    table = Table(show_header=False)
    table.add_row("accuracy", f"[bold]{accuracy:.2%}[/bold] ({round(accuracy * tested)} of {tested} held-out digits)")
    table.add_row("time", f"{total:.1f} s (training {trained:.1f} s)")
    table.add_row("parameters", f"{sum(p.numel() for p in model.parameters()):,}")
    table.add_row("results", str(out))
    table.add_row("", ", ".join(FILES))
    Console().print(table)
    print(f"Open {out / 'backward.html'} in a browser: one training step, backward step by step.")
