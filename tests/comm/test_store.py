"""The stores that programs use by themselves."""

import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

from rushlight.comm.errors import DistNetworkError, DistStoreError
from rushlight.comm.store import FileStore, HashStore, PrefixStore
from rushlight.comm.tcp_store import SERVERS, TCPStore
from tests.support.ranks import ROOT


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "hash":
        return HashStore()
    if request.param == "file":
        return FileStore(str(tmp_path / "store"), 2)
    tcp = TCPStore("127.0.0.1", 0, is_master=True)
    return tcp if request.param == "tcp" else PrefixStore("a", PrefixStore("b", tcp))


def test_keys_and_values(store):
    store.set("key", "value")
    store.set("bytes", b"\0\n=")
    assert (store.get("key"), store.get("bytes")) == (b"value", b"\0\n=")
    assert [store.add("count", n) for n in (2, -5, 0)] == [2, -3, -3]
    assert store.get("count") == b"-3"
    store.append("key", "+")
    store.append("new", "+")
    assert store.multi_get(["key", "new"]) == [b"value+", b"+"]
    assert store.compare_set("absent", "", "first") == b"first"
    assert store.compare_set("absent", "other", "second") == b"first"
    assert store.compare_set("absent", "first", "third") == b"third"
    assert store.compare_set("nothing", "other", "second") == b"other"
    assert store.check(["key", "count"])
    assert not store.check(["key", "nothing"])
    assert store.num_keys() == 5
    assert store.delete_key("key")
    assert not store.delete_key("key")
    store.multi_set(["x", "y"], ["1", "2"])
    store.wait(["x", "y"])
    big = b"x" * 3_000_000
    store.set("big", big)
    assert store.get("big") == big


def test_keys_that_do_not_come(store):
    began = time.monotonic()
    with pytest.raises(DistStoreError, match="wait timeout after 200ms, keys: .*nothing"):
        store.wait(["nothing"], timedelta(seconds=0.2))
    store.set_timeout(timedelta(seconds=0.1))
    with pytest.raises(DistStoreError):
        store.get("nothing")
    assert time.monotonic() - began < 5


def test_waiting_for_another_thread(tmp_path):
    master = TCPStore("127.0.0.1", 0, is_master=True)
    for here, there in [
        (master, TCPStore("127.0.0.1", master.port)),
        (FileStore(str(tmp_path / "f")), FileStore(str(tmp_path / "f"))),
    ]:
        threading.Timer(0.1, there.set, ("late", "1")).start()
        assert here.get("late") == b"1"


COUNT = """
import sys
from rushlight.distributed import {store}
store = {store}(*eval(sys.argv[1]))
for _ in range(200): store.add("n", 1)
"""


@pytest.mark.parametrize("kind", ["TCPStore", "FileStore"])
def test_processes_add_at_once(kind, tmp_path):
    master = TCPStore("127.0.0.1", 0, is_master=True)
    where = ("127.0.0.1", master.port) if kind == "TCPStore" else (str(tmp_path / "f"),)
    all_of_them = [
        subprocess.Popen([sys.executable, "-c", COUNT.format(store=kind), repr(where)], cwd=ROOT) for _ in range(3)
    ]
    assert [one.wait(30) for one in all_of_them] == [0, 0, 0]
    store = master if kind == "TCPStore" else FileStore(*where)
    assert store.get("n") == b"600"


def test_workers_are_counted():
    master = TCPStore("127.0.0.1", 0, 1, is_master=True)
    results = []

    def join(wanted):
        results.append(TCPStore("127.0.0.1", master.port, 3, timeout=timedelta(seconds=5)))

    threads = [threading.Thread(target=join, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(results) == 3


def test_nobody_listens():
    port = TCPStore("127.0.0.1", 0, is_master=True).port + 1
    with pytest.raises(DistNetworkError, match="failed to connect"):
        TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.2))


def test_a_port_that_is_taken():
    first = TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(DistNetworkError, match="EADDRINUSE"):
        TCPStore("127.0.0.1", first.port, is_master=True)
    again = TCPStore("127.0.0.1", first.port, is_master=True, multi_tenant=True)
    first.set("a", "b")
    assert again.get("a") == b"b"


def test_the_server_ends_with_its_store():
    store = TCPStore("127.0.0.1", 0, is_master=True)
    server = SERVERS[-1]
    store.set("a", "b")
    store.connection.close()
    del store
    assert server.wait(5) == 0
