"""Hostile files: damaged and malicious .pt, .pt2, TorchScript, safetensors, npz, idx and ONNX files for the readers.

`python tests/fuzz/files.py --seconds 60` writes files by `variant` and loads them. Each must load, or raise one of
`CLEAR`, within LIMIT_SECONDS and LIMIT_BYTES of memory. Where a checksum covers the content (zip, gzip), a damaged file
must not load as something else."""

from __future__ import annotations

import argparse
import gzip
import io
import pickle
import random
import signal
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import archives
import numpy as np

import rushlight
from rushlight.onnx import messages
from rushlight.onnx import tensors as onnx_tensors
from rushlight.serialization import load_npz, safetensors, save_npz
from rushlight.utils.data import read_idx

CLEAR = (RuntimeError, pickle.UnpicklingError, EOFError)
LIMIT_SECONDS, LIMIT_BYTES = 5.0, 500 * 2**20
HOSTILE = (-1, 0, 1, 7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**60, 2**63 - 1)


class Format(NamedTuple):
    """A kind of file: a good file, its reader, and whether a checksum covers all content."""

    good: bytes
    read: Callable[[bytes], Any]
    checked: bool
    clear: tuple[type[BaseException], ...] = CLEAR


def weights() -> dict:
    """Tensors of several dtypes, shared memory, attributes and containers."""
    grid = rushlight.arange(12.0).reshape(3, 4)
    state = OrderedDict([("weight", grid), ("bias", rushlight.zeros(0, 3))])
    state._metadata = OrderedDict(version=1)  # type: ignore[attr-defined]
    views = [grid.t(), grid[1:, ::2], rushlight.ones(1).expand(4), rushlight.tensor(True)]
    sparse = rushlight.eye(3).to_sparse()
    parameter = rushlight.nn.Parameter(rushlight.ones(2))
    kinds = [rushlight.Size([2, 3]), rushlight.float32, 2**70, {1}, 1j, Counter("ab"), b"bytes"]
    return {"state": state, "views": views, "sparse": sparse, "p": parameter, 4: kinds}


def of_bytes(read: Callable[[str], Any], suffix: str) -> Callable[[bytes], Any]:
    """A reader of bytes, from one that reads a path."""

    def from_bytes(content: bytes) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x{suffix}"
            path.write_bytes(content)
            return read(str(path))

    return from_bytes


def load(content: bytes) -> Any:
    return rushlight.load(io.BytesIO(content))


def written(write: Callable[[Any], Any], suffix: str = "") -> bytes:
    """What `write` writes to a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        write(path)
        return path.read_bytes()


def rezipped(content: bytes, method: int = zipfile.ZIP_STORED, **changed: bytes) -> bytes:
    """The records zipped anew, with right checksums; `changed`: other content by last name."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w", method) as new:
        for info in old.infolist():
            last = info.filename.rpartition("/")[2]
            new.writestr(info.filename, changed.get(last, old.read(info)))
    return file.getvalue()


def formats() -> dict[str, Format]:
    """The kinds of files by name."""
    pt = written(lambda path: rushlight.save(weights(), path))
    old = written(lambda path: rushlight.save(weights(), path, _use_new_zipfile_serialization=False))
    flat = {"a": rushlight.arange(6.0).reshape(2, 3), "b": rushlight.tensor([1, 2])}
    idx = b"\0\0\x0c\2" + struct.pack(">2I6i", 2, 3, *range(6))
    npz = [written(lambda path, c=c: save_npz(flat, path, c), ".npz") for c in (False, True)]
    made = {
        "pt": Format(pt, load, True),
        "pt deflated": Format(rezipped(pt, zipfile.ZIP_DEFLATED), load, True),
        "legacy": Format(old, load, False),
        "npz": Format(npz[0], of_bytes(load_npz, ".npz"), True),
        "npz deflated": Format(npz[1], of_bytes(load_npz, ".npz"), True),
        "idx": Format(idx, lambda b: read_idx(io.BytesIO(b)), False, (ValueError,)),
        "idx gz": Format(gzip.compress(idx), lambda b: read_idx(io.BytesIO(b)), True, (ValueError,)),
    }
    made["exported"] = Format(archives.exported(), lambda b: rushlight.export.load(io.BytesIO(b)).module(), True)
    made["torchscript"] = Format(archives.archive(), lambda b: rushlight.jit.load(io.BytesIO(b)), True)
    made["onnx"] = Format(onnx_model(), rushlight.onnx.load, False)
    if find_spec("safetensors"):
        made["safetensors"] = Format(safetensors.save(flat), of_bytes(rushlight.load, ".safetensors"), False)
    return made


def onnx_model() -> bytes:
    """A model with weights, attributes of several types, an inner graph and a function."""
    node, attribute = messages.NodeProto, messages.AttributeProto
    branch = messages.GraphProto(
        name="branch",
        node=[node(op_type="Neg", input=["a"], output=["n"])],
        output=[messages.ValueInfoProto(name="n")],
        initializer=[onnx_tensors.tensor_of(np.int64([1, 2]), "k")],
    )
    nodes = [
        node(op_type="Conv", input=["x", "w", "b"], output=["a"], attribute=[attribute(name="pads", type=7, ints=[1] * 4)]),
        node(op_type="If", input=["c"], output=["d"], attribute=[
            attribute(name="then_branch", type=5, g=branch), attribute(name="else_branch", type=5, g=branch)]),
        node(op_type="F", domain="own", input=["d"], output=["e"], attribute=[attribute(name="alpha", type=1, f=0.5)]),
        node(op_type="Constant", output=["s"], attribute=[attribute(name="value", type=4, t=onnx_tensors.tensor_of(np.int64([-1])))]),
        node(op_type="Reshape", input=["e", "s"], output=["y"]),
    ]  # fmt: skip
    inner = attribute(name="alpha", type=1, ref_attr_name="alpha")
    function = messages.FunctionProto(
        name="F", domain="own", input=["p"], output=["q"], attribute=["alpha"],
        node=[node(op_type="LeakyRelu", input=["p"], output=["q"], attribute=[inner])],
        opset_import=[messages.OperatorSetIdProto(version=21)],
    )  # fmt: skip
    arrays = {"w": np.ones((2, 1, 3, 3), np.float32), "b": np.zeros(2, np.float16), "c": np.array(True)}
    sparse = messages.SparseTensorProto(
        values=onnx_tensors.tensor_of(np.float32([1]), "z"), indices=onnx_tensors.tensor_of(np.int64([3])), dims=[2, 2]
    )
    graph = messages.GraphProto(
        name="g", node=nodes, input=[messages.ValueInfoProto(name="x")], output=[messages.ValueInfoProto(name="y")],
        initializer=[onnx_tensors.tensor_of(array, name) for name, array in arrays.items()], sparse_initializer=[sparse],
    )  # fmt: skip
    opsets = [messages.OperatorSetIdProto(version=21), messages.OperatorSetIdProto(domain="own", version=1)]
    return messages.written(messages.ModelProto(ir_version=10, graph=graph, opset_import=opsets, functions=[function]))


# -- variants of a good file -----------------------------------------------------------------------


def flipped(rng: random.Random, content: bytes) -> bytes:
    """Some bits changed."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: random.Random, content: bytes) -> bytes:
    """The end, or a part in the middle, is missing."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:a] if rng.random() < 0.5 else content[:a] + content[b:]


def lengths(rng: random.Random, content: bytes) -> bytes:
    """A number of 1 to 8 bytes replaced by a hostile one."""
    size = rng.choice((1, 2, 4, 4, 8))
    number = rng.choice(HOSTILE) % 256**size
    at = rng.randrange(max(1, len(content) - size))
    return content[:at] + number.to_bytes(size, rng.choice(("little", "big"))) + content[at + size :]


def repeated(rng: random.Random, content: bytes) -> bytes:
    """A part of the file stands in another place, too."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[a : min(b, a + 200)] + content[at:]


ANY = (flipped, cut, lengths, repeated)


def number(rng: random.Random) -> bytes:
    """The pickle of a number, often a hostile one."""
    return pickle.dumps(rng.choice((*HOSTILE, -(2**40), -2, 2, 3, 4)), 2)[2:-1]


def sizes(rng: random.Random) -> bytes:
    """The pickle of a tuple of numbers."""
    return b"(" + b"".join(number(rng) for _ in range(rng.randrange(4))) + b"t"


def storage(rng: random.Random, old: bool = False) -> bytes:
    """The persistent id of a storage with another number of elements, or of another type."""
    type = rng.choice((b"FloatStorage", b"DoubleStorage", b"BoolStorage", b"LongStorage"))
    key = rng.choice((b"X\1\0\0\0000", b"X\1\0\0\0001", b"K\0", b"]", b"N"))
    pid = b"(X\7\0\0\0storagectorch\n" + type + b"\n" + key + b"X\3\0\0\0cpu" + number(rng)
    return pid + (rng.choice((b"N", sizes(rng))) if old else b"") + b"tQ"


def tensor(rng: random.Random, old: bool = False) -> bytes:
    """A tensor of any offset, sizes and strides on a storage."""
    flag = rng.choice((b"conj", b"neg\x20"))
    flags = rng.choice((b"", b"}X\4\0\0\0" + flag + b"\x88s"))
    parts = storage(rng, old) + number(rng) + sizes(rng) + sizes(rng) + b"\x89}" + flags
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + parts + b"tR"


def nested(rng: random.Random) -> bytes:
    """A tuple that holds itself twice over, or deep."""
    step = rng.choice((b"2\x86", b"\x85"))
    return b")" + step * rng.choice((30, 70, 20000))


def collected(rng: random.Random) -> bytes:
    """A container that hashes or copies what it holds."""
    inner = rng.choice((nested, tensor, sizes))(rng)
    copies = b"]q\xfa(" + b"K\1" * 1000 + b"e0" + (b"cbuiltins\nset\nh\xfa\x85R0" * 3000) + b"N"
    return rng.choice(
        (
            b"}" + inner + b"Ns",
            b"}(" + inner + b"Nu",
            b"(" + inner + b"\x91",
            b"\x8f(" + inner + b"\x90",
            b"(" + inner + b"Nd",
            b"cbuiltins\nset\n](" + inner + b"e\x85R",
            b"ccollections\nOrderedDict\n](" + inner + b"N\x86e\x85R",
            b"ccollections\nCounter\n" + inner + b"\x85R",
            b"ctorch\nSize\n" + inner + b"\x85R",
            b"ctorch\ndevice\n" + inner + b"\x85R",
            b"ctorch.serialization\n_get_layout\n" + inner + b"\x85R",
            copies,
        )
    )


def opcode(rng: random.Random) -> bytes:
    """An instruction that declares a length."""
    length = rng.choice(HOSTILE)
    four, eight = struct.pack("<I", length % 2**32), struct.pack("<Q", length % 2**64)
    return rng.choice(
        (
            *(b"\x95" + eight, b"X" + four, b"B" + four, b"\x8d" + eight, b"\x8e" + eight),
            *(b"\x8b" + four, b"T" + four, b"r" + four, b"j" + four, b"\x96" + eight),
        )
    )


def pickled(rng: random.Random, old: bool = False) -> bytes:
    """A pickle that no pickler writes."""
    part = rng.choice((opcode, collected, nested, lambda rng: tensor(rng, old)))
    return b"\x80\x04" + part(rng) + rng.choice((b".", b"0N.", b"\x85."))


def bomb(rng: random.Random) -> bytes:
    """Much of one byte; compressed to a thousandth."""
    return rng.choice((b"\0", b"}", b"]", b"\x8f", b"2")) * (rng.choice((2**20, 2**25, 2**29)))


def zip_variant(rng: random.Random, content: bytes, record: str) -> bytes:
    """A zip with right checksums and hostile content."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [info.filename.rpartition("/")[2] for info in archive.infolist()]
        inner = next(archive.read(n) for n in archive.namelist() if n.endswith(record))
    if rng.random() < 0.02:
        return rezipped(content, zipfile.ZIP_DEFLATED, **{rng.choice(names): bomb(rng)})
    if record == "data.pkl" and rng.random() < 0.6:
        return rezipped(content, **{record: pickled(rng)})
    return rezipped(content, **{record: rng.choice(ANY)(rng, inner)})


def header_variant(rng: random.Random, content: bytes) -> bytes:
    """A safetensors file with another header of right length."""
    n = int.from_bytes(content[:8], "little")
    text, rest = content[8 : 8 + n], content[8 + n :]
    text = rng.choice(
        (
            text.replace(b'"b"', b'"a"'),
            text.replace(b"[2,3]", f"[{rng.choice(HOSTILE)},3]".encode()),
            text.replace(b"[0,", f"[{rng.choice(HOSTILE)},".encode(), 1),
            b"[" * 10**5,
            b'{"a":' * 10**4 + b"{}" + b"}" * 10**4,
            rng.choice(ANY)(rng, text),
        )
    )
    return len(text).to_bytes(8, "little") + text + rest


def messages_in(message: Any) -> Any:
    """A message and all messages in it."""
    yield message
    for value in list(vars(message).values()):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, messages.Message):
                yield from messages_in(part)


def onnx_variant(rng: random.Random, content: bytes) -> bytes:
    """A well-formed model with some fields changed: hostile numbers, other names, items that are twice or missing."""
    model = messages.read(content)
    every = list(messages_in(model))
    names = [value for m in every for value in vars(m).values() if isinstance(value, str)] + ["../x", "", "a" * 10**4]
    for _ in range(rng.choice((1, 1, 2, 4))):
        message = rng.choice(every)
        field = rng.choice([*message.names.values()])
        message.__dict__[field.name] = onnx_value(rng, field, getattr(message, field.name), every, names)
    return messages.written(model)


def onnx_value(rng: random.Random, field: Any, value: Any, every: list[Any], names: list[str]) -> Any:
    """Another value for a field of a message."""
    if field.many == "*" and value and rng.random() < 0.5:
        items = rng.sample(value, len(value))
        return items[1:] if rng.random() < 0.5 else [*items, items[0]]
    same = [m for m in every if type(m).__name__ == field.kind]
    if field.kind in messages.TYPES:
        one: Any = rng.choice(same) if same else messages.TYPES[field.kind]()
    elif field.kind in ("str", "bytes", "data"):
        one = rng.choice(names)
        one = one if field.kind == "str" else one.encode()
    elif field.kind in ("float", "double"):
        one = rng.choice((0.0, float("nan"), 1e30))
    else:
        one = rng.choice((*HOSTILE, *range(1, 30)))
    if field.many == "[]":
        one = one % 2**64 if field.kind == "uint" else one
        return np.array([one] * rng.choice((1, 3)), messages.number_type(field.kind))
    return [one] * rng.choice((1, 2, 200)) if field.many else one


def archive_variant(rng: random.Random, name: str, content: bytes) -> bytes:
    """An archive of a model with right checksums, and hostile content in one record."""
    if rng.random() < 0.3:
        return zip_variant(rng, content, "weight_0" if name == "exported" else "data.pkl")
    record = rng.choice(("model.json", "model_weights_config.json")) if name == "exported" else "m.py"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inner = next(archive.read(n) for n in archive.namelist() if n.endswith(record))
    changed = archives.json_variant(rng, inner, HOSTILE) if name == "exported" else archives.code_variant(rng, inner)
    return rezipped(content, **{record: changed})


def variant(rng: random.Random, name: str, kind: Format) -> tuple[bytes, bool]:
    """(a variant of a good file, whether a checksum must tell it from the good one)."""
    if rng.random() < 0.5:
        return rng.choice(ANY)(rng, kind.good), kind.checked
    if name.startswith("pt"):
        return zip_variant(rng, kind.good, "data.pkl"), False
    if name.startswith("npz"):
        return zip_variant(rng, kind.good, "a.npy"), False
    if name == "safetensors":
        return header_variant(rng, kind.good), False
    if name in ("exported", "torchscript"):
        return archive_variant(rng, name, kind.good), False
    if name == "onnx":
        try:
            return onnx_variant(rng, kind.good), False
        except RecursionError:  # a message that became a part of itself
            return rng.choice(ANY)(rng, kind.good), False
    if name == "legacy":
        at = 0
        for _ in range(3):  # the object stands after three pickles
            at = kind.good.index(b".", at + 1) + 1
        return kind.good[:at] + pickled(rng, True), False
    if name == "idx gz":
        inner = gzip.decompress(kind.good)
        big = rng.random() < 0.05
        return gzip.compress(inner + bomb(rng) if big else rng.choice(ANY)(rng, inner)), False
    return rng.choice(ANY)(rng, kind.good), False


# -- what loading one does -------------------------------------------------------------------------


class TooLong(BaseException):
    """Loading took more than LIMIT_SECONDS."""


@contextmanager
def limited() -> Any:
    """TooLong after LIMIT_SECONDS of the processor, MemoryError above LIMIT_BYTES more than now."""
    import resource

    def stop(*_: object) -> None:
        raise TooLong

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT_BYTES, hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGVTALRM, before)


def plain(thing: Any) -> Any:
    """What was loaded, for ==."""
    if isinstance(thing, rushlight.nn.Module):
        return plain(dict(thing.state_dict()))
    if isinstance(thing, rushlight.Tensor):
        dense = thing.to_dense() if thing.is_sparse else thing
        if dense.numel() > 10**6 or dense.is_meta:
            return str(dense.dtype), tuple(dense.shape)
        return str(dense.dtype), tuple(dense.shape), dense.requires_grad, repr(dense.tolist())
    if isinstance(thing, dict):
        return type(thing).__name__, [(key, plain(value)) for key, value in thing.items()]
    if isinstance(thing, list):
        return [plain(part) for part in thing]
    return thing


def result(kind: Format, content: bytes, good: Any, told: bool) -> str:
    """What loading does: 'same', 'other', 'refused', or a fault."""
    try:
        with limited():
            loaded = kind.read(content)
    except MemoryError:
        return "FAULT: over 500 MB"
    except TooLong:
        return "FAULT: over 5 s"
    except kind.clear as error:
        return "FAULT: memory was taken first" if "MemoryError" in repr(error) else "refused"
    except BaseException as error:
        return f"FAULT: {type(error).__name__}: {error}"[:150]
    if not told:
        return "loaded"
    return "same" if plain(loaded) == good else "FAULT: silently different"


def fuzz(seconds: float, seed: int, files: int | None = None) -> tuple[Counter, dict[str, tuple]]:
    """(how often each result, one example of each fault as (name, content))."""
    rng, kinds = random.Random(seed), formats()
    goods = {name: plain(kind.read(kind.good)) for name, kind in kinds.items()}
    counts: Counter = Counter()
    faults: dict[str, tuple] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end if files is None else sum(counts.values()) < files:
        name = rng.choice(list(kinds))
        content, told = variant(rng, name, kinds[name])
        found = result(kinds[name], content, goods[name], told)
        counts[found] += 1
        if found.startswith("FAULT"):
            faults.setdefault(f"{name}: {found}", (name, content))
    return counts, faults


def table(each: int, seed: int) -> int:
    """Print how `each` files of each format fare; the number of faults."""
    rng, bad = random.Random(seed), 0
    print(f"{'format':<14}{'refused':>9}{'same':>7}{'loaded':>8}{'faults':>8}")
    for name, kind in formats().items():
        good = plain(kind.read(kind.good))
        found = [result(kind, *variant_of(rng, name, kind, good)) for _ in range(each)]
        faults = [f for f in found if f.startswith("FAULT")]
        print(
            f"{name:<14}{found.count('refused'):>9}{found.count('same'):>7}{found.count('loaded'):>8}{len(faults):>8}"
        )
        print("".join([f"  {fault}\n" for fault in sorted({*faults})]), end="")
        bad += len(faults)
    return bad


def variant_of(rng: random.Random, name: str, kind: Format, good: Any) -> tuple[bytes, Any, bool]:
    """A variant with the arguments of `result`."""
    content, told = variant(rng, name, kind)
    return content, good, told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--each", type=int, help="a table, of this many files of each format")
    parser.add_argument("--keep", help="folder for one file of each fault")
    args = parser.parse_args()
    print(f"files: seed {args.seed}", flush=True)
    if args.each:
        return int(table(args.each, args.seed) > 0)
    counts, faults = fuzz(args.seconds, args.seed)
    total, bad = sum(counts.values()), sum(n for k, n in counts.items() if k.startswith("FAULT"))
    print(f"files: {total} files in {args.seconds:.0f} s, {bad} faults, {dict(counts)}"[:2000])
    for i, (fault, (_, content)) in enumerate(sorted(faults.items())):
        print(f"  {fault} ({len(content)} bytes)")
        if args.keep:
            Path(args.keep).mkdir(exist_ok=True)
            (Path(args.keep) / f"{i}.bin").write_bytes(content)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
