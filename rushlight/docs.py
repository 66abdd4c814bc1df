"""Documentation of a function as text: `rushlight.docs.mul` shows its formula and the rule of each gradient.

>>> rushlight.docs.tanh.formula, rushlight.docs.tanh.rules
('tanh(input)', {'input': 'g * (1 - out * out)'})
"""

from rushlight.introspect.op_docs import Doc, __dir__, __getattr__

__all__ = ["Doc"]
