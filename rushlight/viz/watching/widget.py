"""The live page in a notebook: a widget by anywidget, which is loaded when it is first used."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

EVERY = 0.35  # seconds between two messages to a page that cannot reach the server
HEIGHT = 900  # pixels of the page


def widget(live: Any) -> Any:
    """A widget that shows a live page. ImportError without anywidget."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError("page.widget() needs anywidget: pip install anywidget") from None

    class LiveWidget(anywidget.AnyWidget):
        _esm = (Path(__file__).parent / "widget.js").read_text(encoding="utf-8")
        address = traitlets.Unicode(live.address).tag(sync=True)
        page = traitlets.Unicode(live.html()).tag(sync=True)
        height = traitlets.Int(HEIGHT).tag(sync=True)

    made = LiveWidget()
    Thread(target=send, args=(live, made), daemon=True).start()
    return made


def send(live: Any, made: Any) -> None:
    """Send the news to the browser until the end of the training, unless the page fetches the numbers. A kernel that
    runs a cell receives no messages, so the page cannot order them."""
    query = {"since": 0, "losses": 0, "version": -1}
    while True:
        ended = live.ended
        if monotonic() - live.looked > 3 * EVERY:
            news = json.loads(live.news({name: str(value) for name, value in query.items()}))
            query["since"] = news["records"][-1]["number"] if news["records"] else query["since"]
            query["losses"] = news["losses"][-1][0] if news["losses"] else query["losses"]
            query["version"] = news["meta"]["version"] if news["meta"] else query["version"]
            made.send(news)
        if ended:
            return
        sleep(EVERY)
