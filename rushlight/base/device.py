"""`device` and `Layout`. Other devices can be named, but all tensors are on the CPU, or on "meta" without elements."""

from __future__ import annotations

import re
from contextvars import ContextVar, Token
from typing import Any

from rushlight.base.errors import NoCuda, explain, runtime_error, type_error

KNOWN = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
DEVICE_STRING = r"([a-z_]+)(?::(0|[1-9][0-9]*))?"


class device:
    """The device of a tensor: `device("cpu")`, `device("cpu:0")`, `device("cpu", 0)`, or a copy of a device.

    As in torch, `device("cpu")` and `device("cpu:0")` differ in their index and are not equal, although they refer to
    the same memory. Used as a context manager, a device is the default for new tensors inside. All devices that torch
    knows can be named and compared; tensors can be on the CPU, or on "meta" without elements (`placed`). RuntimeError
    for an unknown device or a malformed string.

    >>> rushlight.device("cpu", 0), rushlight.device("cpu").index
    (device(type='cpu', index=0), None)
    """

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type: str | device, index: int | None = None) -> None:
        if isinstance(type, device) and index is None:
            kind, position = type.type, type.index
        elif isinstance(type, str):
            kind, position = _parsed(type, index)
        elif type.__class__ is int and index is None:
            absent = "Cannot access accelerator device when none is available"
            why = "Device index must not be negative" if type < 0 else absent
            raise runtime_error(f"device(): {why}: {type}: use 'cpu'")
        else:
            raise type_error(
                f"device(): a string such as 'cpu' or a device is needed, not {type!r}"
                + ("" if index is None else f" with index {index!r}")
            )
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", position)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a device is read-only: make a new one instead of setting its {name}")

    def __repr__(self) -> str:
        position = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{position})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        ENTERED.set((*ENTERED.get(), chosen.set(placed(self))))
        return self

    def __exit__(self, *exception: object) -> None:
        *around, last = ENTERED.get()
        chosen.reset(last)
        ENTERED.set(tuple(around))


def _parsed(text: str, index: int | None) -> tuple[str, int | None]:
    """The type and index given by `device(text, index)`."""
    if not text:
        raise runtime_error("device(): Device string must not be empty: use 'cpu'")
    if text in KNOWN and index is None:  # without compiling the regular expression
        return text, None
    match = re.fullmatch(DEVICE_STRING, text)
    if match is None:
        raise runtime_error(f"device(): Invalid device string: '{text}': use 'cpu' or 'cpu:0'")
    kind, number = match.groups()
    if kind not in KNOWN:
        raise runtime_error(
            f"device(): Expected one of {', '.join(KNOWN)} device type at start of device string: {kind}",
            "use 'cpu', the only device of rushlight",
        )
    if index is None:
        return kind, None if number is None else int(number)
    if number is not None:
        raise runtime_error(
            f"device(): type (string) must not include an index because index was passed explicitly: '{text}' and "
            f"{index}: drop one of them"
        )
    if isinstance(index, bool) or not isinstance(index, int):
        raise type_error(f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}")
    if index < 0:
        raise runtime_error(f"device(): Device index must not be negative, but is {index}")
    return kind, index


def present(place: str | int | device) -> device:
    """The target device of a move. RuntimeError unless it is the CPU."""
    place = device("cuda", place) if isinstance(place, int) else device(place)
    if place.type != "cpu":
        cuda = place.type == "cuda"
        raise (NoCuda if cuda else RuntimeError)(
            explain(
                f"{'Torch not compiled with CUDA enabled: ' * cuda}device '{place}' does not exist here: the only "
                "device of rushlight is 'cpu'",
                "device='cuda' if torch.cuda.is_available() else 'cpu' runs with torch and with rushlight",
            )
        )
    return place


def placed(place: Any) -> device:
    """The device for a new tensor: the CPU, or "meta"; for None the default device. RuntimeError for any other
    device."""
    if place is None:
        return chosen.get()
    if place is CPU:
        return CPU
    if place.__class__ is not device:
        place = device("cuda", place) if isinstance(place, int) else device(place)
    return place if place.type == "meta" else present(place)


def on_meta(place: Any) -> bool:
    """Whether a new tensor is on the device "meta": `place`, or for None the default device."""
    return (place := placed(place)) is not CPU and place.type == "meta"


CPU = device("cpu")
chosen: ContextVar[device] = ContextVar("chosen", default=CPU)  # the default device of new tensors
ENTERED: ContextVar[tuple[Token, ...]] = ContextVar("entered", default=())


class Layout:
    """The memory layout of a tensor: `strided`, or a sparse layout. torch's other layouts exist by name only.

    >>> rushlight.ones(2).layout
    torch.strided
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = map(
    Layout, ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
)
