"""State of the process that affects rounding: the budgets after which compiled loops take over from NumPy."""

from __future__ import annotations

import sys
from typing import Any

from rushlight.fast import policy
from rushlight.loops.budget import Budget

BUDGETS: dict[str, Budget] = {
    "small_arrays": policy.small_arrays,
    "large_arrays": policy.large_arrays,
    "products": policy.products,
}


def process_state() -> dict[str, Any]:
    """The argument for `set_process_state`."""
    return {
        "budgets": {name: budget.left for name, budget in BUDGETS.items()},
        "llvmlite": "llvmlite.binding" in sys.modules,
    }


def set_process_state(state: dict[str, Any]) -> None:
    """Set the budgets, and load llvmlite if it was loaded in the recorded process: budgets end earlier with it."""
    if state["llvmlite"]:
        from rushlight.base.dependencies import llvmlite_loads

        llvmlite_loads()
    for name, left in state["budgets"].items():
        with BUDGETS[name].lock:
            BUDGETS[name].left = left
