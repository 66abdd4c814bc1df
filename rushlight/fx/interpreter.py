"""torch.fx.interpreter: torch's place for the classes that run graphs."""

from rushlight.fx.graph_module import Interpreter, Transformer

__all__ = ["Interpreter", "Transformer"]
