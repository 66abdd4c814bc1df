"""torch.fx.interpreter: where torch keeps what runs graphs."""

from rushlight.fx.graph_module import Interpreter, Transformer

__all__ = ["Interpreter", "Transformer"]
