"""torch.compiler: compile, look at programs, exclude functions, reset."""

from rushlight.base.missing_names import tell as _tell
from rushlight.compile.api import (
    CannotCompile,
    allow_in_graph,
    assume_constant_result,
    compile,
    cudagraph_mark_step_begin,
    disable,
    explain,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
    list_backends,
    programs,
    reset,
    set_stance,
    source,
)
from rushlight.compile.export.model_folder import export

__all__ = [
    "CannotCompile", "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "explain", "export", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "programs", "reset",
    "set_stance", "source",
]  # fmt: skip

_tell(__name__)
