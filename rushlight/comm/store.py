"""torch.distributed's stores: keys and values that processes share.

>>> store = HashStore()
>>> store.set("key", "value")
>>> store.get("key"), store.add("count", 2)
(b'value', 2)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import Condition

from rushlight.base.errors import not_implemented_error
from rushlight.comm.errors import DistStoreError

Text = str | bytes
DEFAULT_TIMEOUT = timedelta(seconds=300)


def as_bytes(value: Text) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def late(seconds: float, keys: Sequence[Text]) -> DistStoreError:
    """The error of keys that were not set in time."""
    named = ", ".join(key.decode() if isinstance(key, bytes) else key for key in keys)
    return DistStoreError(f"wait timeout after {seconds * 1000:.0f}ms, keys: {named}")


class Store:
    """Keys and values that processes share: the base of the stores. A value is bytes."""

    def __init__(self) -> None:
        self.timeout = DEFAULT_TIMEOUT

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait for a key."""
        self.timeout = timeout

    def seconds(self, timeout: timedelta | None) -> float:
        return (self.timeout if timeout is None else timeout).total_seconds()

    def set(self, key: str, value: Text) -> None:
        """Set the value of a key."""
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        """Wait for a key and return its value. DistStoreError after the timeout."""
        raise NotImplementedError

    def add(self, key: str, amount: int) -> int:
        """Add an amount to the integer under this key, 0 at first. Returns the sum."""
        raise NotImplementedError

    def append(self, key: str, value: Text) -> None:
        """Append bytes to the value of a key."""
        raise NotImplementedError

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        """Set the key if its value equals `expected_value`, or if the key is absent and `expected_value` is empty.
        Returns the new value of the key."""
        raise NotImplementedError

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are set. DistStoreError after the timeout."""
        raise NotImplementedError

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are set."""
        raise NotImplementedError

    def delete_key(self, key: str) -> bool:
        """Remove a key. Returns whether it existed."""
        raise NotImplementedError

    def num_keys(self) -> int:
        """The number of keys."""
        raise NotImplementedError

    def multi_set(self, keys: Sequence[str], values: Sequence[Text]) -> None:
        """`set` each key."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """`get` each key."""
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """True: it has `append`, `multi_get` and `multi_set`."""
        return True


class ChangedStore(Store):
    """The base of stores whose operations each change the value of one key."""

    def change(self, key: str, to: Callable[[bytes | None], bytes | None]) -> tuple[bytes | None, bytes | None]:
        """Replace the value of a key by to(value), with the store locked. None: the key is absent. Returns (old value,
        new value)."""
        raise NotImplementedError

    def set(self, key: str, value: Text) -> None:
        new = as_bytes(value)
        self.change(key, lambda old: new)

    def add(self, key: str, amount: int) -> int:
        _, total = self.change(key, lambda old: b"%d" % (int(b"0" if old is None else old) + amount))
        return int(total or 0)

    def append(self, key: str, value: Text) -> None:
        self.change(key, lambda old: (old or b"") + as_bytes(value))

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        _, new = self.change(key, lambda old: desired if (old or b"") == expected else old)
        return expected if new is None else new

    def delete_key(self, key: str) -> bool:
        return self.change(key, lambda old: None)[0] is not None


class HashStore(ChangedStore):
    """Keys and values of one process, for all threads."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, bytes] = {}
        self.changed = Condition()

    def change(self, key: str, to: Callable[[bytes | None], bytes | None]) -> tuple[bytes | None, bytes | None]:
        with self.changed:
            old = self.values.get(key)
            new = to(old)
            if new is not None:
                self.values[key] = new
            else:
                self.values.pop(key, None)
            self.changed.notify_all()
        return old, new

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self.values[key]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        seconds = self.seconds(timeout)
        with self.changed:
            if not self.changed.wait_for(lambda: self.check(keys), seconds):
                raise late(seconds, [key for key in keys if key not in self.values])

    def check(self, keys: Sequence[str]) -> bool:
        return all(key in self.values for key in keys)

    def num_keys(self) -> int:
        return len(self.values)


class FileStore(ChangedStore):
    """Keys and values in a file that all processes can reach. The file is a log of changes, each appended under a lock;
    a process reads the changes that were appended since it last read."""

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path, self.world_size = file_name, world_size
        self.values: dict[bytes, bytes] = {}
        self.read_until = 0
        open(file_name, "ab").close()

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Inside, the file is locked, and all changes are read. Yields its descriptor."""
        try:
            import fcntl
        except ImportError as error:
            raise not_implemented_error(
                "FileStore locks its file by fcntl, which this Python lacks", "use TCPStore"
            ) from error
        with open(self.path, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            self.read(file.fileno())
            yield file.fileno()

    def read(self, descriptor: int) -> None:
        """Apply the changes that were appended."""
        os.lseek(descriptor, self.read_until, os.SEEK_SET)
        new = b""
        while chunk := os.read(descriptor, 1 << 20):
            new += chunk
        at, fields = 0, []
        while at < len(new):
            size = int.from_bytes(new[at : at + 8], "big")
            fields.append(new[at + 8 : at + 8 + size])
            at += 8 + size
        for kind, key, value in zip(fields[::3], fields[1::3], fields[2::3]):
            if kind == b"s":
                self.values[key] = value
            else:
                self.values.pop(key, None)
        self.read_until += len(new)

    def change(self, key: str, to: Callable[[bytes | None], bytes | None]) -> tuple[bytes | None, bytes | None]:
        name = as_bytes(key)
        with self.locked() as descriptor:
            old = self.values.get(name)
            new = to(old)
            if new is not old:
                fields = (b"d" if new is None else b"s", name, new or b"")
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, b"".join(len(field).to_bytes(8, "big") + field for field in fields))
                self.read(descriptor)
        return old, new

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self.values[as_bytes(key)]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        seconds = self.seconds(timeout)
        end = time.monotonic() + seconds
        while not self.check(keys):
            if time.monotonic() > end:
                raise late(seconds, [key for key in keys if as_bytes(key) not in self.values])
            time.sleep(0.01)

    def check(self, keys: Sequence[str]) -> bool:
        with self.locked():
            return all(as_bytes(key) in self.values for key in keys)

    def num_keys(self) -> int:
        with self.locked():
            return len(self.values)


class PrefixStore(Store):
    """A store that uses the key `prefix/key` of the underlying store."""

    def __init__(self, prefix: str, store: Store):
        self.prefix, self.underlying_store = prefix, store

    @property
    def timeout(self) -> timedelta:  # type: ignore[override]
        """The timeout of the underlying store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    def name(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def set(self, key: str, value: Text) -> None:
        self.underlying_store.set(self.name(key), value)

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self.name(key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self.name(key), amount)

    def append(self, key: str, value: Text) -> None:
        self.underlying_store.append(self.name(key), value)

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        return self.underlying_store.compare_set(self.name(key), expected_value, desired_value)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self.underlying_store.wait([self.name(key) for key in keys], timeout)

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check([self.name(key) for key in keys])

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self.name(key))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()
