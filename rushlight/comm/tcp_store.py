"""TCPStore: the store of a server process. Starts the server and connects to it."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from threading import Lock
from typing import Any

from rushlight.comm import server
from rushlight.comm.errors import DistError, DistNetworkError
from rushlight.comm.server import APART, BACKLOG, pack, unpack
from rushlight.comm.store import DEFAULT_TIMEOUT, Store, Text, as_bytes, late

RETRY_SECONDS = 0.05
SERVERS: list[subprocess.Popen] = []  # servers that this process has started, and whose exit status it must read
START_SECONDS = 30.0  # how long a server may take to start
ANSWER_SECONDS = 10.0  # how long after a request's own timeout its answer may come


def start_server(port: int) -> tuple[int, Any]:
    """Start the server at a port; 0: at a free port. Returns (port, owner). The server runs until the owner and all
    connections are closed. OSError if the port is taken."""
    if not hasattr(os, "fork"):  # Windows: the server cannot inherit open files
        return start_apart(port)
    listener = socket.create_server(("", port), backlog=BACKLOG)
    theirs, ours = os.pipe()
    handed_down = (listener.fileno(), theirs)
    run_server(*handed_down, pass_fds=handed_down)
    port = listener.getsockname()[1]
    os.close(theirs)
    listener.close()
    return port, os.fdopen(ours, "wb", buffering=0)


def run_server(*arguments: int, **settings: Any) -> None:
    """Start the server's process."""
    SERVERS[:] = [one for one in SERVERS if one.poll() is None]
    command = [sys.executable, "-S", "-E", server.__file__, *map(str, arguments)]
    SERVERS.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, **settings))


def start_apart(port: int) -> tuple[int, Any]:
    """`start_server` without inherited files: the server opens the port itself and connects to this process to send the
    port's number. That connection is the owner."""
    with socket.create_server(("127.0.0.1", 0)) as meeting:
        run_server(port, meeting.getsockname()[1], APART)
        meeting.settimeout(START_SECONDS)
        owner, _ = meeting.accept()
    owner.settimeout(START_SECONDS)
    number = int(owner.recv(16))
    if number < 0:
        owner.close()
        raise OSError(-number, os.strerror(-number))
    return number, owner


def taken(port: int) -> DistNetworkError:
    """torch's error for a port that another program uses."""
    return DistNetworkError(
        f"The server socket has failed to listen on any local network address. port: {port}, code: "
        f"-{errno.EADDRINUSE}, name: EADDRINUSE, message: address already in use\n  hint: another MASTER_PORT"
    )


class Connection:
    """A connection to the server, for requests and their answers."""

    def __init__(self, host: str, port: int, seconds: float):
        self.host, self.port, self.lock = host, port, Lock()
        self.sock = self.connect(time.monotonic() + seconds, seconds)
        self.received = b""

    def connect(self, end: float, seconds: float) -> socket.socket:
        """A socket that is connected to the server, which may still be starting."""
        why: Any = None
        while True:
            try:
                sock = socket.create_connection((self.host, self.port), timeout=2.0)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if sock.getsockname() != sock.getpeername():  # a socket may connect to itself if no server listens
                    return sock
                sock.close()
            except OSError as error:
                why = error
            if time.monotonic() > end:
                raise DistNetworkError(
                    "The client socket has failed to connect to any network address of "
                    f"({self.host}, {self.port}) within {seconds:.0f} s: {why}\n"
                    "  hint: start the process of rank 0; is MASTER_ADDR its host?"
                )
            time.sleep(RETRY_SECONDS)

    def send(self, *fields: Text) -> None:
        self.sock.settimeout(ANSWER_SECONDS)
        try:
            self.sock.sendall(pack([as_bytes(field) for field in fields]))
        except OSError as error:
            raise self.lost(error) from None

    def receive(self, seconds: float | None) -> list[bytes] | None:
        """The next frame; None if it does not come in time."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            size = int.from_bytes(self.received[:4], "big")
            if len(self.received) >= 4 + size > 4:
                body, self.received = self.received[4 : 4 + size], self.received[4 + size :]
                return unpack(body)
            try:
                left = None if end is None else max(0.0, end - time.monotonic())
                self.sock.settimeout(left)
                data = self.sock.recv(1 << 20)
            except (BlockingIOError, TimeoutError):
                return None
            except OSError as error:
                raise self.lost(error) from None
            if not data:
                raise self.lost("it was closed")
            self.received += data

    def request(self, *fields: Text, seconds: float = 0.0) -> list[bytes]:
        """The fields of the answer after "ok". DistStoreError for the answer "timeout", DistError for "error"."""
        with self.lock:
            self.send(*fields)
            answer = self.receive(seconds + ANSWER_SECONDS)
        if answer is None:
            raise self.lost("no answer")
        kind, *rest = answer
        if kind == b"timeout":
            raise late(seconds, rest)
        if kind == b"error":
            raise DistError(rest[0].decode())
        return rest

    def lost(self, why: Any) -> DistNetworkError:
        return DistNetworkError(
            f"the connection to the store at {self.host}:{self.port} failed: {why}\n"
            "  hint: see why rank 0, or its machine, has ended"
        )

    def close(self) -> None:
        self.sock.close()


class TCPStore(Store):
    """A store at a host and port. The process with is_master=True starts the server there; the others wait. With
    port=0, the server takes a free port, which the attribute `port` gives.

    >>> store = rushlight.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    >>> store.set("key", "value")
    >>> store.get("key")
    b'value'
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.timeout, self.host, self.owner = timeout, host_name, None
        if is_master:
            try:
                port, self.owner = start_server(port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if not multi_tenant:
                    raise taken(port) from None
        self.port = port
        self.connection = Connection(host_name, port, timeout.total_seconds())
        if wait_for_workers and (world_size or 0) > 1:
            self.count_workers(int(world_size or 0))

    def count_workers(self, world_size: int) -> None:
        """Wait until `count` stores are connected."""
        if self.add("init/workers", 1) == world_size:
            self.set("init/ready", "")
        self.wait(["init/ready"])

    def set(self, key: str, value: Text) -> None:
        self.connection.request("set", key, value)

    def get(self, key: str) -> bytes:
        seconds = self.seconds(None)
        return self.connection.request("get", key, str(seconds), seconds=seconds)[0]

    def add(self, key: str, amount: int) -> int:
        return int(self.connection.request("add", key, str(amount))[0])

    def append(self, key: str, value: Text) -> None:
        self.connection.request("append", key, value)

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        return self.connection.request("compare_set", key, expected_value, desired_value)[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        seconds = self.seconds(timeout)
        self.connection.request("wait", str(seconds), *keys, seconds=seconds)

    def check(self, keys: Sequence[str]) -> bool:
        return self.connection.request("check", *keys)[0] == b"1"

    def delete_key(self, key: str) -> bool:
        return self.connection.request("delete", key)[0] == b"1"

    def num_keys(self) -> int:
        return int(self.connection.request("count")[0])

    def __del__(self) -> None:
        if (owner := getattr(self, "owner", None)) is not None:
            owner.close()
            self.owner = None
