"""The local server of the live page: Python's http.server, on 127.0.0.1, with a secret in the address."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

HOST = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Answer = tuple[str, str]  # type of the content, and the content
Route = Callable[[dict[str, str]], Answer]  # from the query's values to the answer


class Server:
    """Answers GET and POST requests at `address` by `routes`: {(method, name): function}. Requests without the secret
    of the address, or for another host, get 403.

    The server runs in a daemon thread, and so it ends with the program."""

    def __init__(self, routes: dict[tuple[str, str], Route], port: int = 0):
        self.routes, self.token = routes, secrets.token_urlsafe(16)
        self.http = ThreadingHTTPServer((HOST, port), handler(self))
        self.http.daemon_threads = True
        self.http.block_on_close = False
        self.port = self.http.server_address[1]
        self.address = f"http://{HOST}:{self.port}/{self.token}/"
        self.thread = Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End the server. A second call does nothing."""
        if self.thread.is_alive():
            self.http.shutdown()
            self.http.server_close()
            self.thread.join()

    def answer(self, method: str, target: str, host: str) -> tuple[int, Answer]:
        """(status, answer) of a request for `target`, such as "/secret/state?since=3"."""
        path, _, query = target.partition("?")
        _, token, name = [*path.split("/", 2), "", ""][:3]
        own = host in (f"{HOST}:{self.port}", f"localhost:{self.port}")  # another name: a page of another site
        if not own or not hmac.compare_digest(token.encode(), self.token.encode()):
            return 403, ("text/plain", "403: the address has no valid token\n")
        route = self.routes.get((method, name))
        if route is None:
            return 404, ("text/plain", "404: no such page\n")
        try:
            return 200, route(dict(parse_qsl(query)))
        except Exception as error:  # shown by the page
            return 500, ("text/plain", f"{type(error).__name__}: {error}\n")


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    """The class that http.server makes an object of for each connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # one connection for all requests of a page

        def do_GET(self) -> None:
            self.reply("GET")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.reply("POST")

        def reply(self, method: str) -> None:
            status, (kind, text) = server.answer(method, self.path, self.headers.get("Host", ""))
            body = text.encode()
            self.send_response(status)
            for name, value in {"Content-Type": f"{kind}; charset=utf-8", **HEADERS}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """No lines in the program's terminal."""

        def handle(self) -> None:
            with suppress(OSError):  # the browser has closed the connection
                super().handle()

    return Handler
