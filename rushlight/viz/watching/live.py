"""`viz.live`: a training that one watches in the browser while it runs."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from rushlight.base.errors import runtime_error, type_error
from rushlight.nn.module import Module
from rushlight.viz.page import Page, assembled
from rushlight.viz.training_page import number
from rushlight.viz.watching.gate import Gate
from rushlight.viz.watching.landscape import Landscape, landscape
from rushlight.viz.watching.layers import Layers
from rushlight.viz.watching.observer import Observer
from rushlight.viz.watching.path import Path

FRAME, SCRIPTS = "watching/live.html", ("numbers.js", "watching/live.js")
GONE = 2.0  # seconds without a request after which no page counts as open
LANDSCAPE_SECONDS = 120.0  # that a landscape may take, with the wait for the end of the step
LAST_LOOK = 1.0  # seconds that the end of the training waits for an open page to fetch the last numbers


def live(
    model: Any = None, *, predict: Callable[[], Any] | None = None, port: int = 0, wait: bool = False,
    quiet: bool = False,
) -> Live:  # fmt: skip
    """Watch a training in the browser: a local page with the loss, gradients, update : data ratios and activations of
    each layer, their histograms over time, the current predictions and the slowest ops. The page can pause the training
    and make single steps.

    `model`: a module; or a dict {name: module}; None: the modules are found from the first step of an optimizer. The
    training loop stays as it is: a step of an optimizer that changes parameters of the model is a step of the page.
    `predict`: a function of no arguments that the page calls about twice a second; the page shows the text or tensor
    that it returns in place of the last batch's predictions. `port`: of the local server; 0: a free one. `wait`: after
    its first step the training waits until a page is open. `quiet`: the address is not printed.

    The page is at `.address`, on 127.0.0.1 with a secret token. It closes with the program, or by `.close()`. The
    numbers of the training stay the same to the bit. TypeError for a model that is not a module.

    >>> model = rushlight.nn.Linear(2, 1)
    >>> optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    >>> with rushlight.viz.live(model, quiet=True) as page:
    ...     for _ in range(3):
    ...         optimizer.zero_grad()
    ...         model(rushlight.ones(4, 2)).square().mean().backward()
    ...         optimizer.step()
    >>> page.count, page.address.startswith("http://127.0.0.1:")
    (3, True)
    >>> page.close()
    """
    models = model if isinstance(model, dict) else {} if model is None else {"": model}
    for one in models.values():
        if not isinstance(one, Module):
            raise type_error(
                f"viz.live: expected a module, got {type(one).__name__}", "give the model, or nothing to find it"
            )
    return Live(models, predict, port, wait, quiet)


class Live:
    """The live page of a training, from `viz.live`: a context manager. `address`: where the page is.

    >>> with rushlight.viz.live(rushlight.nn.Linear(1, 1), quiet=True) as page:
    ...     page.record(loss=0.5)
    >>> isinstance(page, rushlight.viz.Live), page.count
    (True, 1)
    >>> page.close()
    """

    def __init__(self, models: dict[str, Any], predict: Callable | None, port: int, wait: bool, quiet: bool):
        self.layers, self.gate = Layers(), Gate()
        for name, model in models.items():
            self.layers.add(name, model)
        self.observer = Observer(self.layers, self.gate, not models, predict)
        self.port, self.waits, self.quiet = port, wait, quiet
        self.server: Any = None
        self.ended = False
        self.path: Path | None = None  # the parameters at the recorded steps; None for very large models
        self.looked = 0.0  # time of the last request for the state
        self.final = False  # whether a page has the state after the end

    @property
    def count(self) -> int:
        """The number of steps so far."""
        return self.observer.count

    @property
    def address(self) -> str:
        """The page's address; "" before the block."""
        return "" if self.server is None else self.server.address

    def __enter__(self) -> Live:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def start(self) -> None:
        """Start the server and put the hooks in place."""
        from rushlight.viz.watching.server import Server  # loads http.server

        self.server = Server(
            {
                ("GET", ""): lambda query: ("text/html", self.html()),
                ("GET", "state"): self.state,
                ("GET", "landscape"): lambda query: ("text/html", self.landscape_page()),
                **{("POST", name): self.action(name) for name in ("pause", "go", "step")},
            },
            self.port,
        )
        if not self.quiet:
            print(f"rushlight live: {self.address}", file=sys.stderr, flush=True)
        if self.waits:
            self.observer.after_each_step.append(self.await_page)
        self.observer.after_records.append(self.record_path)
        self.observer.start()
        atexit.register(self.close)

    def end(self) -> None:
        """The training is over: take the hooks away, and let an open page fetch the last numbers. The page stays until
        the program ends. A second call does nothing."""
        if self.ended or self.server is None:
            return
        self.observer.stop()
        self.ended = True
        self.gate.close()
        self.gate.enter()  # jobs of the page that wait for the end of a step
        until = monotonic() + LAST_LOOK
        while not self.final and monotonic() < min(until, self.looked + GONE):
            sleep(0.02)

    def close(self) -> None:
        """End the page and its server. A second call does nothing."""
        atexit.unregister(self.close)
        self.end()
        if self.server is not None:
            self.server.close()

    def record(self, loss: Any = None) -> None:
        """Count a step with this loss: for a loop without an optimizer. Call it at the end of each step."""
        self.observer.by_hand(number(loss))

    def await_page(self, optimizer: Any) -> None:
        """After the first step, wait until a page is open."""
        while self.waits and not self.looked and not self.ended:
            sleep(0.02)
        self.waits = False

    # -- the path ----------------------------------------------------------------------------------

    def record_path(self) -> None:
        """Record the parameters of all layers, at each record of the page."""
        shown = self.layers.parameters
        if self.path is None or len(self.path.parameters) != len(shown):
            try:
                self.path = Path(shown)
            except (ValueError, TypeError):  # too large, none, or of another kind
                return
        self.path.count = self.count
        self.path.record()

    def landscape_page(self) -> Page:
        """The landscape of the loss of the last recorded batch, which the training's thread computes between two steps
        (after the training: this thread). RuntimeError if the page does not know how to compute the loss."""
        if self.ended:
            return self.surface().html()
        return self.gate.between_steps(self.surface, LANDSCAPE_SECONDS).html()

    def surface(self) -> Landscape:
        loss, models = self.observer.batch, [*self.layers.models.values()]
        if self.path is None or loss is None or len(self.path.found) < 2:
            raise runtime_error(
                "the landscape needs two recorded steps, fewer than 2.5 million parameters, and a loss of "
                "nn.functional that takes the model's output",
                "give a loss of your own: viz.landscape(page.path, lambda: ...)",
            )
        try:
            return landscape(self.path, loss, model=models[-1] if models else None)
        finally:
            self.observer.compared.last = None  # no prediction of the training

    # -- the server's answers ----------------------------------------------------------------------

    def html(self) -> Page:
        """The page as text; its script fetches the numbers from the local server."""
        return assembled(FRAME, "Live training", SCRIPTS, {"numbers": []})

    def state(self, query: dict[str, str]) -> tuple[str, str]:
        ended = self.ended
        text = self.news(query)
        self.looked, self.final = monotonic(), ended
        return "application/json", text

    def news(self, query: dict[str, str]) -> str:
        """The records that an open page lacks, as JSON. `query`: the numbers of the page's last record and step."""
        status = "ended" if self.ended else "paused" if self.gate.held else "running"
        if status == "running" and self.gate.paused:
            status = "pausing"
        since, losses, version = (int(query.get(name, default)) for name, default in QUERY.items())
        return f'{{"status":"{status}",{self.observer.state(since, losses, version)[1:]}'

    def widget(self) -> Any:
        """A widget that shows the page in a notebook, below the cell. ImportError without anywidget."""
        from rushlight.viz.watching.widget import widget  # loads anywidget

        return widget(self)

    def action(self, name: str) -> Callable[[dict[str, str]], tuple[str, str]]:
        def run(query: dict[str, str]) -> tuple[str, str]:
            getattr(self.gate, name)()
            return "application/json", "{}"

        return run

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}" target="_blank" rel="noopener">live page of the training</a>'


QUERY = {"since": 0, "losses": 0, "version": -1}
