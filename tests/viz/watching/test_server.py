"""The local server: only on this machine, only with the token, nothing else."""

import json
import socket
import urllib.error
import urllib.request
from http.client import HTTPConnection

import pytest

from rushlight.viz.watching.server import Server


@pytest.fixture
def server():
    def fails(query):
        raise ValueError("no such thing")

    made = Server(
        {
            ("GET", ""): lambda query: ("text/html", "<p>ä</p>"),
            ("GET", "state"): lambda query: ("application/json", json.dumps(query)),
            ("GET", "fails"): fails,
            ("POST", "pause"): lambda query: ("application/json", "{}"),
        }
    )
    yield made
    made.close()


def ask(server, method, target, host=None):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, target, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_routes(server):
    assert ask(server, "GET", f"/{server.token}/") == (200, "<p>ä</p>")
    assert ask(server, "GET", f"/{server.token}/state?since=3&x=%C3%A4") == (200, '{"since": "3", "x": "\\u00e4"}')
    assert ask(server, "POST", f"/{server.token}/pause") == (200, "{}")
    assert ask(server, "GET", f"/{server.token}/pause")[0] == 404
    assert ask(server, "GET", f"/{server.token}/../../etc/passwd")[0] == 404
    assert ask(server, "GET", f"/{server.token}/fails") == (500, "ValueError: no such thing\n")


@pytest.mark.parametrize("path", ["/", "//", "/state", "/{wrong}/", "/{wrong}/state", "/{part}/", "/ä/", "/{token}x/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_answered(server, method, path):
    wrong = "A" * len(server.token)
    target = path.format(wrong=wrong, part=server.token[:-1], token=server.token).replace("ä", "%C3%A4")
    assert ask(server, method, target) == (403, "403: the address has no valid token\n")


def test_another_host_name_is_refused(server):
    assert ask(server, "GET", f"/{server.token}/", "evil.example")[0] == 403
    assert ask(server, "GET", f"/{server.token}/", f"localhost:{server.port}")[0] == 200


def test_it_listens_on_this_machine_alone(server):
    assert server.http.server_address[0] == "127.0.0.1"
    other = socket.gethostbyname(socket.gethostname())
    if not other.startswith("127."):
        with pytest.raises(OSError):
            socket.create_connection((other, server.port), timeout=2)


def test_tokens_differ_and_headers_forbid_other_sources(server):
    other = Server({})
    assert other.token != server.token
    assert len(server.token) >= 20
    other.close()
    headers = urllib.request.urlopen(server.address).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_after_close_nothing_listens(server):
    server.close()
    server.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.address, timeout=2)
