"""State of the process that decides how numbers are rounded: compiled programs, and the budgets
after which compiled loops take over from NumPy.

A compiled function runs eagerly in its first calls, and eager ops round in another way than a
program. So a recording forgets the programs at each checkpoint, and a replay begins there without
programs, too."""

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
    """What `set_process_state` needs."""
    return {
        "budgets": {name: budget.left for name, budget in BUDGETS.items()},
        "numba": "numba" in sys.modules,
    }


def set_process_state(state: dict[str, Any]) -> None:
    """Set the budgets, and load Numba if it was loaded: budgets end earlier then."""
    if state["numba"]:
        from rushlight.base.dependencies import numba_loads

        numba_loads()
    for name, left in state["budgets"].items():
        with BUDGETS[name].lock:
            BUDGETS[name].left = left


def forget_programs() -> None:
    """Forget the programs of all compiled functions, and what was noted of their calls."""
    compiled = sys.modules.get("rushlight.compile.run.compiled_function")
    for function in list(compiled.EVERYONE) if compiled else []:
        function.forget()
        function.doubts.clear()
        function.numbers.clear()
        function.unsteady = ""
