"""torch._inductor: settings that programs may read and set, without effect."""

from contextlib import nullcontext
from types import SimpleNamespace

from rushlight._dynamo import Config

from rushlight.base.submodules import importable

config = Config(
    triton=Config(cudagraphs=False, unique_kernel_names=False),
    cpp=Config(threads=-1, simdlen=None),
    debug=False,
    trace=Config(enabled=False),
    max_autotune=False,
    epilogue_fusion=True,
    freezing=False,
    coordinate_descent_tuning=False,
    fx_graph_cache=True,
    force_disable_caches=False,
)
# contexts for torch's cache of compiled code: no effect here
utils = SimpleNamespace(fresh_inductor_cache=nullcontext, fresh_cache=nullcontext)

importable(__name__, "config", "utils")

__all__ = ["config", "utils"]
