"""functorch.experimental: names that are in torch.func now."""

from __future__ import annotations

from rushlight.func.jacobians import hessian, jacfwd
from rushlight.func.jvp_transform import jvp
from rushlight.func.vjp_transform import functionalize
from rushlight.nn.utils.functional_call import replace_all_batch_norm_modules_

__all__ = ["functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
