"""The server of a job. On one port it offers a key-value store, the list of the job's ranks, and PMI-1, the protocol by
which MPI processes find each other.

It is a separate process and imports only the standard library: `python server.py LISTENER OWNER`, two open file
descriptors. It cannot be a thread of rank 0: MPI_Init holds Python's GIL while it waits for the server. The server ends
when its owner and all its clients have gone.

A request is a frame: a list of byte strings that begins with the command. Two commands change the connection: after
`join` it belongs to a rank, and the server reports over it when another rank leaves; `cmd=...` begins the text lines of
PMI-1."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable

PMI = b"cmd="
KVS_NAME = f"kvs_{os.getpid()}_{time.time_ns()}"  # part of the names of MPICH's shared memory
ANSWERS = {  # PMI command -> answer
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096 rc=0",
    "get_appnum": "cmd=appnum appnum=0 rc=0",
    "get_my_kvsname": f"cmd=my_kvsname kvsname={KVS_NAME} rc=0",
    "finalize": "cmd=finalize_ack rc=0",
}
SHARED_MEMORY = "/dev/shm"
BACKLOG = 4096  # number of connections that may wait to be accepted
APART = 1  # the server's third argument on systems where it cannot inherit open files


def pack(fields: list[bytes]) -> bytes:
    """A frame: its length, and each field after its length, in four bytes each."""
    body = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return len(body).to_bytes(4, "big") + body


def unpack(body: bytes) -> list[bytes]:
    """The fields of a frame without its length."""
    fields, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        fields.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return fields


def remove_unused_memory(since: float) -> None:
    """Remove the names of MPICH's shared memory that were made after the time `since` and that no process has open:
    ranks that were killed have left them."""
    used = ""
    for number in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            with open(f"/proc/{number}/maps") as maps:
                used += maps.read()
        except OSError:
            continue  # the process belongs to another user, or has ended
    for name in os.listdir(SHARED_MEMORY) if used else ():
        path = os.path.join(SHARED_MEMORY, name)
        if name.startswith(("mpich_shm_", "ucx_shm_posix_")) and path not in used:
            try:
                about = os.stat(path)
                if about.st_uid == os.getuid() and about.st_mtime >= since:
                    os.unlink(path)
            except OSError:
                continue


class Client:
    """A connection to the server."""

    def __init__(self, sock: socket.socket):
        self.sock, self.received, self.to_send = sock, b"", b""
        self.rank: int | None = None  # the rank, after `join`
        self.left = False  # whether the rank has announced its end
        self.speaks_pmi = False

    def send(self, fields: list[bytes]) -> None:
        self.write(pack(fields))

    def write(self, data: bytes) -> None:
        """Send the bytes that the socket accepts now; `Server.serve` sends the rest."""
        self.to_send += data
        try:
            sent = self.sock.send(self.to_send)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(self.to_send)  # the client is gone; the next read handles it
        self.to_send = self.to_send[sent:]


class Waiting:
    """A client that waits for keys. `answer()`: the reply when all keys exist."""

    def __init__(self, client: Client, keys: list[bytes], deadline: float, answer: Callable):
        self.client, self.keys, self.deadline, self.answer = client, keys, deadline, answer


class KeyValues:
    """The store's commands."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.waiting: list[Waiting] = []

    def put(self, key: bytes, value: bytes) -> None:
        self.values[key] = value
        for one in [w for w in self.waiting if key in w.keys]:
            if all(key in self.values for key in one.keys):
                self.waiting.remove(one)
                one.client.send([b"ok", one.answer()])

    def wait(self, client: Client, keys: list[bytes], seconds: float, answer: Callable) -> None:
        if all(key in self.values for key in keys):
            client.send([b"ok", answer()])
        else:
            self.waiting.append(Waiting(client, keys, time.monotonic() + seconds, answer))

    def expire(self) -> None:
        now = time.monotonic()
        for one in [w for w in self.waiting if w.deadline <= now]:
            self.waiting.remove(one)
            one.client.send([b"timeout", *[key for key in one.keys if key not in self.values]])

    def forget(self, client: Client) -> None:
        self.waiting = [w for w in self.waiting if w.client is not client]

    def run(self, client: Client, command: bytes, fields: list[bytes]) -> bool:
        """Run one command and answer. False for an unknown command."""
        values = self.values
        if command == b"set":
            self.put(*fields)
            client.send([b"ok"])
        elif command == b"get":
            key = fields[0]
            self.wait(client, [key], float(fields[1]), lambda: values[key])
        elif command == b"wait":
            self.wait(client, fields[1:], float(fields[0]), lambda: b"")
        elif command == b"add":
            self.put(fields[0], b"%d" % (int(values.get(fields[0], b"0")) + int(fields[1])))
            client.send([b"ok", values[fields[0]]])
        elif command == b"append":
            self.put(fields[0], values.get(fields[0], b"") + fields[1])
            client.send([b"ok"])
        elif command == b"compare_set":
            client.send([b"ok", self.compare_set(*fields)])
        elif command == b"check":
            client.send([b"ok", b"%d" % all(key in values for key in fields)])
        elif command == b"delete":
            client.send([b"ok", b"%d" % (values.pop(fields[0], None) is not None)])
        elif command == b"count":
            client.send([b"ok", b"%d" % len(values)])
        else:
            return False
        return True

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> bytes:
        """As in torch, an absent key is set if the expected value is empty."""
        if self.values.get(key, b"") == expected:
            self.put(key, desired)
        return self.values.get(key, expected)


class Ranks:
    """The ranks of the job: those that have joined, their hosts, and those that have left."""

    def __init__(self) -> None:
        self.size = 0
        self.joined: dict[int, Client] = {}
        self.hosts: dict[int, bytes] = {}
        self.lost: int | None = None  # a rank that was lost before all had joined
        self.deadline = float("inf")

    def join(self, client: Client, fields: list[bytes]) -> None:
        rank, size = int(fields[0]), int(fields[1])
        if self.size not in (0, size):
            text = f"rank {rank} has world_size={size}, others have world_size={self.size}"
            return client.send([b"error", text.encode()])
        if rank in self.joined:
            return client.send([b"error", b"there are two processes of rank %d" % rank])
        if self.lost is not None:
            return client.send([b"lost", str(self.lost).encode()])
        self.size, client.rank = size, rank
        self.joined[rank], self.hosts[rank] = client, fields[2]
        self.deadline = min(self.deadline, time.monotonic() + float(fields[3]))
        if len(self.joined) == size:
            self.deadline = float("inf")
            hosts = list(self.hosts.values())
            for other, one in self.joined.items():
                one.send([b"joined", b"%d" % hosts.count(self.hosts[other])])
        return None

    def expire(self) -> None:
        if self.deadline <= time.monotonic():
            self.deadline = float("inf")
            missing = sorted(set(range(self.size)) - set(self.joined))
            self.tell([b"timeout", ",".join(map(str, missing)).encode()])

    def tell(self, fields: list[bytes]) -> None:
        for client in self.joined.values():
            client.send(fields)

    def leave(self, client: Client) -> None:
        """Tell the other ranks that this rank has ended, or was lost."""
        how = b"ended" if client.left else b"lost"
        if len(self.joined) < self.size:
            self.lost = client.rank
        del self.joined[client.rank]  # type: ignore[arg-type]
        self.tell([how, str(client.rank).encode()])

    def mapping(self) -> str:
        """The hosts of the ranks in PMI's notation: (first host, number of hosts, ranks on each), ..."""
        numbers: dict[bytes, int] = {}
        runs: list[list[int]] = []
        for rank in range(self.size):
            host = numbers.setdefault(self.hosts.get(rank, b""), len(numbers))
            if runs and runs[-1][0] == host:
                runs[-1][1] += 1
            else:
                runs.append([host, 1])
        return "(vector," + ",".join(f"({host},1,{n})" for host, n in runs) + ")"


class Pmi:
    """The part of PMI-1 that MPI_Init uses: a key-value space and a barrier of all ranks."""

    def __init__(self, ranks: Ranks):
        self.ranks, self.values, self.in_barrier = ranks, dict[str, str](), list[Client]()
        self.started = set[str]()  # ranks inside MPI_Init, or after it
        self.broken = False  # whether a rank was lost

    def line(self, client: Client, line: str) -> None:
        given = dict(word.split("=", 1) for word in line.split() if "=" in word)
        command, size = given.get("cmd", ""), self.ranks.size
        if command == "initack":
            self.started.add(given["pmiid"])
            answers = ["cmd=initack rc=0", f"cmd=set size={size}", f"cmd=set rank={given['pmiid']}", "cmd=set debug=0"]
        elif command == "put":
            self.values[given["key"]] = line.split("value=", 1)[1]
            answers = ["cmd=put_result rc=0 msg=success"]
        elif command == "barrier_in":
            self.in_barrier.append(client)
            if len(self.in_barrier) == size:
                for one in self.in_barrier:
                    one.write(b"cmd=barrier_out rc=0\n")
                self.in_barrier.clear()
            elif self.broken:
                self.release()
            answers = []
        else:
            answers = [self.answer(command, given)]
        for text in answers:
            client.write((text + "\n").encode())

    def answer(self, command: str, given: dict[str, str]) -> str:
        """The answer, one line, to a command that changes nothing."""
        if command == "get_universe_size":
            return f"cmd=universe_size size={self.ranks.size} rc=0"
        if command == "get":
            key = given["key"]
            value = self.ranks.mapping() if key == "PMI_process_mapping" else self.values.get(key)
            if value is not None:
                return f"cmd=get_result rc=0 msg=success value={value}"
            return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
        return ANSWERS.get(command, f"cmd={command} rc=-1")

    def release(self) -> None:
        """A rank was lost: close the connections of the ranks that wait for it inside MPI_Init, so that these fail."""
        self.broken = True
        for client in self.in_barrier:
            client.sock.shutdown(socket.SHUT_RDWR)
        self.in_barrier.clear()


class Server:
    """A loop in one thread that reads requests and answers them."""

    def __init__(self, listener: socket.socket, owner: int | socket.socket):
        self.listener, self.owner = listener, owner
        self.store, self.ranks = KeyValues(), Ranks()
        self.pmi = Pmi(self.ranks)
        self.clients: list[Client] = []
        self.selector = selectors.DefaultSelector()
        self.owned, self.begun = True, time.time()

    def serve(self) -> None:
        """Run until all connections and the owner's end of the pipe are closed."""
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.owner, selectors.EVENT_READ)
        while self.owned or self.clients:
            for key, _ in self.selector.select(self.seconds()):
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj == self.owner:
                    self.selector.unregister(self.owner)
                    self.owned = False
                else:
                    self.read(key.data)
            for client in self.clients:
                if client.to_send:
                    client.write(b"")
            self.store.expire()
            self.ranks.expire()
        if self.pmi.broken:
            remove_unused_memory(self.begun - 1.0)

    def seconds(self) -> float | None:
        """The time until the next deadline; None if there is none."""
        if any(client.to_send for client in self.clients):
            return 0.001
        end = min([self.ranks.deadline, *[w.deadline for w in self.store.waiting]])
        return None if end == float("inf") else max(0.0, end - time.monotonic())

    def accept(self) -> None:
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = Client(sock)
        self.clients.append(client)
        self.selector.register(sock, selectors.EVENT_READ, client)

    def read(self, client: Client) -> None:
        try:
            data = client.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.close(client)
        client.received += data
        client.speaks_pmi = client.speaks_pmi or client.received.startswith(PMI)
        if client.speaks_pmi:
            *lines, client.received = client.received.split(b"\n")
            for line in lines:
                self.pmi.line(client, line.decode())
            return None
        while len(client.received) >= 4:
            size = int.from_bytes(client.received[:4], "big")
            if len(client.received) < 4 + size:
                break
            body, client.received = client.received[4 : 4 + size], client.received[4 + size :]
            self.run(client, unpack(body))
        return None

    def run(self, client: Client, fields: list[bytes]) -> None:
        command, *rest = fields
        if command == b"join":
            self.ranks.join(client, rest)
        elif command == b"leave":
            client.left = True
        elif command == b"hello":
            client.send([b"rushlight"])
        elif not self.store.run(client, command, rest):
            client.send([b"error", b"no such command: " + command])

    def close(self, client: Client) -> None:
        self.selector.unregister(client.sock)
        client.sock.close()
        self.clients.remove(client)
        self.store.forget(client)
        if client.rank is not None:
            self.ranks.leave(client)
            if not client.left:
                if len(self.pmi.started) < self.ranks.size:
                    print(f"rank {client.rank} was lost while MPI started", file=sys.stderr)
                self.pmi.release()


def opened(port: int, owner: socket.socket) -> socket.socket:
    """A socket that listens at a port. Sends the port to the owner, or -errno of an error."""
    try:
        listener = socket.create_server(("", port), backlog=BACKLOG)
    except OSError as error:
        owner.sendall(b"%d" % -(error.errno or 1))
        raise SystemExit(1) from None
    owner.sendall(b"%d" % listener.getsockname()[1])
    return listener


def main(first: int, second: int, apart: int = 0) -> None:
    """Serve with two inherited descriptors, the listening socket and the owner's pipe. With `apart`: listen at port
    `first`, for the owner that listens at port `second`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the ranks, and then the server ends
    if apart == APART:
        owner = socket.create_connection(("127.0.0.1", second))
        Server(opened(first, owner), owner).serve()
    else:
        Server(socket.socket(fileno=first), second).serve()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
