"""torch.distributed's stores: keys and values that processes share.

>>> store = HashStore()
>>> store.set("key", "value")
>>> store.get("key"), store.add("count", 2)
(b'value', 2)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Condition

from rushlight.base.errors import not_implemented_error
from rushlight.comm.errors import DistStoreError

Text = str | bytes
DEFAULT_TIMEOUT = timedelta(seconds=300)


def as_bytes(value: Text) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def late(seconds: float, keys: Sequence[Text]) -> DistStoreError:
    """The error of keys that did not come in time."""
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
        """Give a key a value."""
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        """The value of a key, once it is there. DistStoreError if it does not come in time."""
        raise NotImplementedError

    def add(self, key: str, amount: int) -> int:
        """The sum of the integer under this key, 0 at first, and an amount, which it becomes."""
        raise NotImplementedError

    def append(self, key: str, value: Text) -> None:
        """Put bytes behind those of a key."""
        raise NotImplementedError

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        """Set the key if its value equals `expected_value`, or if the key is absent and `expected_value` is empty.
        Returns the new value of the key."""
        raise NotImplementedError

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there. DistStoreError if they do not come in time."""
        raise NotImplementedError

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        raise NotImplementedError

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        raise NotImplementedError

    def num_keys(self) -> int:
        """The number of keys."""
        raise NotImplementedError

    def multi_set(self, keys: Sequence[str], values: Sequence[Text]) -> None:
        """`set` of each."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """`get` of each."""
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """True: it has `append`, `multi_get` and `multi_set`."""
        return True


class HashStore(Store):
    """Keys and values of one process, for all threads."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, bytes] = {}
        self.changed = Condition()

    def set(self, key: str, value: Text) -> None:
        with self.changed:
            self.values[key] = as_bytes(value)
            self.changed.notify_all()

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self.values[key]

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = b"%d" % total
            self.changed.notify_all()
        return total

    def append(self, key: str, value: Text) -> None:
        with self.changed:
            self.values[key] = self.values.get(key, b"") + as_bytes(value)
            self.changed.notify_all()

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        with self.changed:
            if self.values.get(key, b"") == as_bytes(expected_value):
                self.values[key] = as_bytes(desired_value)
                self.changed.notify_all()
            return self.values.get(key, as_bytes(expected_value))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        seconds = self.seconds(timeout)
        with self.changed:
            if not self.changed.wait_for(lambda: self.check(keys), seconds):
                raise late(seconds, [key for key in keys if key not in self.values])

    def check(self, keys: Sequence[str]) -> bool:
        return all(key in self.values for key in keys)

    def delete_key(self, key: str) -> bool:
        with self.changed:
            return self.values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self.values)


class FileStore(Store):
    """Keys and values in a file that all processes can reach: a log of changes, each appended under a lock. A process
    reads what was added since it read last."""

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path, self.world_size = file_name, world_size
        self.values: dict[bytes, bytes] = {}
        self.read_until = 0
        open(file_name, "ab").close()

    def locked(self, change: Callable[[], list[tuple[bytes, bytes | None]]]) -> None:
        """Append what `change()` gives, (key, value or None for a deleted key), with the file locked and read to its
        end."""
        try:
            import fcntl
        except ImportError as error:
            raise not_implemented_error(
                "FileStore locks its file by fcntl, which this Python lacks", "use TCPStore"
            ) from error

        with open(self.path, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            self.read(file.fileno())
            text = b""
            for key, value in change():
                kind = b"d" if value is None else b"s"
                for field in (kind, key, value or b""):
                    text += len(field).to_bytes(8, "big") + field
            os.lseek(file.fileno(), 0, os.SEEK_END)
            os.write(file.fileno(), text)
            self.read(file.fileno())

    def read(self, descriptor: int) -> None:
        """Take over what was appended."""
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

    def set(self, key: str, value: Text) -> None:
        self.locked(lambda: [(as_bytes(key), as_bytes(value))])

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self.values[as_bytes(key)]

    def add(self, key: str, amount: int) -> int:
        name, total = as_bytes(key), 0

        def change() -> list[tuple[bytes, bytes | None]]:
            nonlocal total
            total = int(self.values.get(name, b"0")) + amount
            return [(name, b"%d" % total)]

        self.locked(change)
        return total

    def append(self, key: str, value: Text) -> None:
        name = as_bytes(key)
        self.locked(lambda: [(name, self.values.get(name, b"") + as_bytes(value))])

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        name, expected = as_bytes(key), as_bytes(expected_value)
        self.locked(lambda: [(name, as_bytes(desired_value))] if self.values.get(name, b"") == expected else [])
        return self.values.get(name, expected)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        seconds = self.seconds(timeout)
        end = time.monotonic() + seconds
        while not self.check(keys):
            if time.monotonic() > end:
                raise late(seconds, [key for key in keys if as_bytes(key) not in self.values])
            time.sleep(0.01)

    def check(self, keys: Sequence[str]) -> bool:
        self.locked(list)
        return all(as_bytes(key) in self.values for key in keys)

    def delete_key(self, key: str) -> bool:
        name, found = as_bytes(key), False

        def change() -> list[tuple[bytes, bytes | None]]:
            nonlocal found
            found = name in self.values
            return [(name, None)] if found else []

        self.locked(change)
        return found

    def num_keys(self) -> int:
        self.locked(list)
        return len(self.values)


class PrefixStore(Store):
    """A store in which each key has a prefix: `prefix/key` of the store below."""

    def __init__(self, prefix: str, store: Store):
        self.prefix, self.underlying_store = prefix, store

    @property
    def timeout(self) -> timedelta:  # type: ignore[override]
        """That of the store below."""
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
