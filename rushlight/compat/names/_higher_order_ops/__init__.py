"""torch._higher_order_ops: functions of functions."""

from rushlight._higher_order_ops.associative_scan import associative_scan

from rushlight.ops.tensor.control_flow import cond, while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
