"""The command `rushlight export`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from rushlight.demo import BadInput

EXPORT = """\
Export a model for serving without rushlight. FILE holds the whole model, as
rushlight.save(model, FILE) writes it; loading it runs code, as pickle does, so
export only files that you trust. The classes of its modules must be importable.
Formats: numpy (Python that needs only NumPy), c (a shared library with a
header), wasm (WebAssembly with JavaScript); with --onnx one file for
onnxruntime and other runtimes. The page "Serve" of the
documentation shows each.
"""
SHAPE = re.compile(r"(?:(\w+):)?(\d+(?:x\d+)*)")


def add_export(commands: argparse._SubParsersAction) -> None:
    export = commands.add_parser(
        "export", help="export a model as NumPy, C library, WebAssembly or ONNX", description=EXPORT,
        allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    export.add_argument("model", metavar="FILE", type=Path, help="the model, from rushlight.save(model, FILE)")
    export.add_argument(
        "--example",
        metavar="INPUT",
        nargs="+",
        required=True,
        help="an example of each argument: a shape such as 1x3x64x64 or int64:1x32, or a .npy file",
    )
    export.add_argument("--out", metavar="DIR", type=Path, help="folder to write (default: FILE without its ending)")
    export.add_argument("--format", choices=("numpy", "c", "wasm"), default="numpy", help="default: %(default)s")
    export.add_argument("--onnx", metavar="OUT", type=Path, help="write an ONNX file instead of a folder")
    export.add_argument("--opset", metavar="N", type=int, help="for --onnx: the version of ONNX's operators")
    export.add_argument("--dynamic", action="store_true", help="take any number of samples")
    export.add_argument("--cpu", default="native", help="for c: native, or a level such as x86-64-v3")
    export.add_argument("--overwrite", action="store_true", help="replace an existing folder")
    export.set_defaults(run=run_export, command="export")


def run_export(arguments: argparse.Namespace) -> int:
    from rushlight.compile.run.compiled_function import CannotCompile
    from rushlight.compiler import export

    a = arguments
    model, example = loaded(a.model), tuple(map(array, a.example))
    if a.onnx is not None:
        return write_onnx(model, example, a)
    place = a.out or a.model.with_suffix("")
    options = {"kind": a.format, "dynamic": a.dynamic, "cpu": a.cpu, "overwrite": a.overwrite}
    try:
        place = export(model, example, place, **options)
    except FileExistsError:
        raise BadInput(f"{place} exists; choose another folder with --out, or pass --overwrite") from None
    except (CannotCompile, NotImplementedError, ValueError, TypeError, RuntimeError) as error:
        raise BadInput(re.sub(r"\n\s*(at: .*\n\s*)?", "; ", str(error)).removeprefix("export: ")) from None
    for file in sorted(place.iterdir()):
        print(f"{file.stat().st_size:12,}  {file}")
    return 0


def write_onnx(model: Any, example: tuple, arguments: argparse.Namespace) -> int:
    """Write an ONNX file; with --dynamic the first dimension of all inputs has any size."""
    import rushlight
    from rushlight.onnx import export

    a = arguments
    if a.onnx.exists() and not a.overwrite:
        raise BadInput(f"{a.onnx} exists; choose another file, or pass --overwrite")
    tensors = tuple(map(rushlight.from_numpy, example))
    dims = tuple([{0: "batch"} if t.ndim else None for t in tensors]) if a.dynamic else None
    try:
        export(model, tensors, a.onnx, opset_version=a.opset, dynamic_shapes=dims, external_data=False)
    except (RuntimeError, ValueError, TypeError) as error:
        raise BadInput(re.sub(r"\n\s*(at: .*\n?\s*)?", "; ", str(error)).removeprefix("export: ")) from None
    print(f"{a.onnx.stat().st_size:12,}  {a.onnx}")
    return 0


def loaded(path: Path) -> Any:
    """The model in a file."""
    import rushlight

    if not path.is_file():
        raise BadInput(f"{path} is not a file")
    try:
        model = rushlight.load(path, weights_only=False)
    except Exception as error:
        raise BadInput(f"{path}: {type(error).__name__}: {str(error).splitlines()[0]}") from None
    if not callable(model):
        raise BadInput(f"{path} holds a {type(model).__name__}; save the whole model: rushlight.save(model, FILE)")
    return model


def array(text: str) -> Any:
    """The example of an argument: zeros of a shape, or the array in a file."""
    import numpy as np

    found = SHAPE.fullmatch(text)
    if found is None:
        try:
            return np.load(text)
        except (OSError, ValueError) as error:
            raise BadInput(f"--example {text}: neither a shape such as 1x28x28 nor a .npy file ({error})") from None
    try:
        dtype = np.dtype(found[1] or "float32")
    except TypeError:
        raise BadInput(f"--example {text}: {found[1]} is not a dtype") from None
    shape = tuple(map(int, found[2].split("x")))
    if dtype.kind == "f":
        return np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return np.zeros(shape, dtype)
