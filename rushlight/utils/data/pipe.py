"""Messages through a pipe between processes: a pickle, then the bytes of its arrays.

Arrays are sent out of band (pickle protocol 5) and read directly into the memory of the new arrays. This is faster than
one pickle, and than shared memory that is mapped again for each batch.
"""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

USES_FILE_DESCRIPTORS = hasattr(os, "readv") and hasattr(os, "pipe")  # Windows has handles

Packed = tuple[bytes, list[pickle.PickleBuffer]]


def packed(message: Any) -> Packed:
    """The message's pickle and the memory of its arrays. Raises pickle's errors."""
    arrays: list[pickle.PickleBuffer] = []
    return pickle.dumps(message, 5, buffer_callback=arrays.append), arrays


def send(pipe: Connection, message: Packed) -> None:
    """Write the message; blocks until it is read. OSError if the other end is closed."""
    content, arrays = message
    memories = [array.raw() for array in arrays]
    pipe.send((content, [len(memory) for memory in memories]))
    for memory in memories:
        if USES_FILE_DESCRIPTORS:
            write_all(pipe.fileno(), memory)
        elif len(memory):
            pipe.send_bytes(memory)


def receive(pipe: Connection) -> Any:
    """The next message. EOFError or OSError if the writer has ended, even in the middle of a message."""
    content, sizes = pipe.recv()
    memories = [np.empty(size, np.uint8) for size in sizes]
    for memory in memories:
        if USES_FILE_DESCRIPTORS:
            read_all(pipe.fileno(), memory)
        elif len(memory):
            pipe.recv_bytes_into(memory.data)
    return pickle.loads(content, buffers=memories)


def write_all(file: int, memory: memoryview) -> None:
    done = 0
    while done < len(memory):
        done += os.write(file, memory[done:])


def read_all(file: int, memory: ndarray) -> None:
    done = 0
    while done < len(memory):
        count = os.readv(file, [memory.data[done:]])
        if not count:
            raise EOFError("the worker ended in the middle of a batch")
        done += count
