"""Error messages for names of torch that rushlight lacks, with a replacement or the nearest name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from rushlight.base.errors import shown_as
from rushlight.base.tracebacks import hide_frames

CHECK = "`rushlight check script.py` lists the names that a script needs"
SMALL = (
    "of quantization there are torch.ao.quantization.quantize_dynamic and torchao.quantization.quantize_ with int8 "
    "weights; model.half() or .bfloat16() halves the memory"
)
PARALLEL = "nn.parallel.DistributedDataParallel, or torch.distributed.fsdp, with `rushlight launch`"
EXPORT = "rushlight.compiler.export(model, example, folder) for a program that needs NumPy alone"
INSTEAD = {  # prefix of a name -> the replacement to suggest; the longest prefix wins
    **dict.fromkeys(
        (
            *("torch.ao", "torch.quantiz", "torch.dequantize", "torch.fake_quantize_", "torch.per_tensor_"),
            *("torch.per_channel_", "torch.nn.quantized", "torch.nn.qat", "torch.nn.intrinsic"),
            *("torch.nn.quantizable", "torch.qscheme", "torch.quint", "torch.fbgemm_"),
        ),
        SMALL,
    ),
    **dict.fromkeys(
        (
            *("torch.distributed.pipelining", "torch.distributed.elastic"),
            *("torch.distributed.rpc", "torch.distributed.tensor.parallel"),
        ),
        PARALLEL,
    ),
    "torch.nested": "pad the sequences, nn.utils.rnn.pad_sequence(list, batch_first=True), and mask what was added",
    "torch.masked.": "the functions of torch.masked take mask=; MaskedTensor has a mask of its own",
    "torch.package": "torch.save(model.state_dict(), path), with the model's code beside it",
    "torch.export.": EXPORT,
    "torch.onnx.": "torch.onnx.export, the only function of torch.onnx here",
    "torch.utils.mobile_optimizer": EXPORT,
    "torch.utils.mkldnn": "the module as it is",
    "torch.utils.cpp_extension": "Python: torch.compile makes loops of it, autograd.Function gives it a derivative",
    "torch.utils._python_dispatch": "torch.overrides.TorchFunctionMode, which sees each function that is called",
    "torch.utils.bundled_inputs": "torch.save((model.state_dict(), inputs), path)",
    **dict.fromkeys(
        ("torch.utils.data.datapipes", "torch.utils.data.IterDataPipe", "torch.utils.data.MapDataPipe"),
        "a Dataset, or an IterableDataset with __iter__, in a DataLoader",
    ),
    "torch.testing._internal": "unittest.TestCase or pytest, with torch.testing.assert_close",
    "torch.monitor": "torch.utils.tensorboard.SummaryWriter",
    "torch.eig": "torch.linalg.eig",
    "torch.symeig": "torch.linalg.eigh",
    "torch.solve": "torch.linalg.solve(A, B)",
    "torch.lstsq": "torch.linalg.lstsq(A, B)",
    "torch.matrix_rank": "torch.linalg.matrix_rank",
    "torch.jit.frontend": "torch.fx.symbolic_trace",
    "torch._six": "the standard library: collections.abc, math.inf",
    "torch.fx.passes.": "torch.fx.Interpreter, or a loop over graph.nodes",
    **dict.fromkeys(
        ("torch.cudnn_", "torch.miopen_", "torch.mkldnn_"), "the function of torch.nn.functional of that name"
    ),
}


class NoName(AttributeError):
    """The AttributeError for a missing name. The message is built lazily, since many programs only use `hasattr`."""

    def __str__(self) -> str:
        path = public(self.args[0])
        hint = instead(f"{path}.{self.name}", path, dir(self.obj))
        return f"module '{self.args[0]}' has no attribute '{self.name}'\n  hint: {hint}"

    def __reduce__(self) -> tuple:
        return AttributeError, (str(self),)


shown_as(NoName, "builtins", "AttributeError")


class NoAttribute(AttributeError):
    """The AttributeError for a missing attribute of a module (nn.Module). The hint is built lazily, since many programs
    only use `hasattr`.
    """

    def __str__(self) -> str:
        text = super().__str__()
        hint = "" if "hint: " in text else self.hint(self.name or "")
        return f"{text}\n  hint: {hint}" if hint else text

    def hint(self, name: str) -> str:
        """A suggestion for the missing attribute; "" if there is none."""
        cls = type(self.obj)
        if isinstance(getattr(cls, name, None), property):
            call = f"{cls.__name__}.{name}.fget(...)"
            return f"the property raised an AttributeError; call {call} to see where"
        if "_modules" not in vars(self.obj):
            return f"{cls.__name__}.__init__ has to call super().__init__() first"
        like = nearest(name, dir(self.obj))
        return f"did you mean {like}?" if like else ""

    def __reduce__(self) -> tuple:
        return AttributeError, (str(self),)


shown_as(NoAttribute, "builtins", "AttributeError")


def public(home: str) -> str:
    """A module's name in torch."""
    return home.replace("rushlight", "torch", 1)


def instead(name: str, path: str, known: Iterable[str]) -> str:
    """The hint for a missing `name`: the replacement, else the nearest of the `known` names in module `path`."""
    prefix = max((start for start in INSTEAD if name.startswith(start)), key=len, default=None)
    if prefix is not None:
        return INSTEAD[prefix] if INSTEAD[prefix] is SMALL else f"instead {INSTEAD[prefix]}"
    word = name.rpartition(".")[2]
    for other in ("nn.functional", "nn", "linalg", "special", "fft", "optim", "utils.data"):
        module = sys.modules.get(f"rushlight.{other}")
        if path == "torch" and module is not None and word in dir(module):
            return f"it is torch.{other}.{word}"
    like = nearest(word, known)
    return f"did you mean {path}.{like}?" if like else CHECK


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar public name among `known`, or None."""
    from difflib import get_close_matches  # slow to import, and only needed for errors

    public_names = [other for other in known if not other.startswith("_")]
    return next(iter(get_close_matches(name, public_names, 1, 0.7 if len(name) > 3 else 0.8)), None)


# Set by rushlight.compat: (module, name) -> torch's class that is missing, or None.
finders: list[Callable[[str, str], Any]] = []


def missing(home: str, name: str) -> Any:
    """A class in place of the missing one, under `import torch`; otherwise raises the error for a name that is missing
    in the module `home`.
    """
    for find in finders if not name.startswith("__") else ():
        if (found := find(home, name)) is not None:
            return found
    hide_frames()
    raise NoName(home, name=name, obj=sys.modules[home])


def tell(home: str) -> None:
    """Give the module a `__getattr__` that raises errors with a hint for missing names."""
    module: ModuleType = sys.modules[home]
    module.__dict__["__getattr__"] = lambda name: give_up(home, name)


def give_up(home: str, name: str) -> Any:
    if name.startswith("__"):  # read by Python itself
        raise AttributeError(f"module '{home}' has no attribute '{name}'", name=name, obj=sys.modules[home])
    return missing(home, name)
