"""Plant faults in rushlight and count how many each fuzzer finds: `python tests/fuzz/plant.py --seconds 30`.

Each fault is one wrong line, as a mistake would make it: a sign, a lost tangent, a missing version, a swapped stride. A
fuzzer has found it when an answer is wrong that is right without the fault. Each pair of a fault and a fuzzer runs in a
process of its own, for so many seconds."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import harness

KINDS = ("eager", "transforms", "compiled", "layouts")
FAULTS: dict[str, Callable[[], None]] = {}


def fault(plant: Callable[[], None]) -> Callable[[], None]:
    FAULTS[plant.__name__] = plant
    return plant


def module(name: str) -> Any:
    return importlib.import_module(f"rushlight.{name}")


# -- writes, versions, hooks -----------------------------------------------------------------------


@fault
def gradient_of_a_write_leaks_to_what_was_there() -> None:
    module("core.views").CopySlices.tensors = lambda self, g: (g.clone(), self.region.of(g).clone())


@fault
def views_keep_their_nodes_after_a_write() -> None:
    module("core.views").living_views = lambda root: []


@fault
def version_is_not_counted() -> None:
    views, node = module("core.views"), module("core.node")

    def stamp(writes: Any, where: Any) -> None:
        writes.where, writes.stamp = where, node.tick()
        node.clock.last_write = writes.stamp

    views.stamp = stamp


@fault
def in_place_ops_hand_hooks_what_they_overwrite() -> None:
    for name in ("core.build", "ops.math.arithmetic"):
        module(name).before_write = lambda x, args=(): x


@fault
def answer_of_a_tensor_hook_is_dropped() -> None:
    module("core.engine").checked_gradient = lambda old, new, node: old


@fault
def checkpoint_forgets_random_numbers() -> None:
    surroundings = module("utils.checkpoint").Surroundings
    init = surroundings.__init__
    surroundings.__init__ = lambda self, preserve: init(self, False)


@fault
def second_gradient_of_a_function_is_lost() -> None:
    node = module("autograd.function").FunctionNode
    checked = node.checked
    node.checked = lambda self, g, i, edge: checked(self, g if i == 0 else None, i, edge)


@fault
def no_grad_records() -> None:
    module("ops.grad_mode").no_grad.changes = {}


@fault
def sine_has_a_wrong_sign_backward() -> None:
    importlib.import_module("rushlight").sin
    op = module("core.table").TABLE["sin"]
    op.rules["x"] = lambda g, x: -g * cos(x)  # noqa: F821  (named by its world)


# -- transforms ------------------------------------------------------------------------------------


@fault
def batching_rule_has_a_wrong_sign() -> None:
    special = module("func.batching_families").SPECIAL
    module("func.vmap_transform")
    mm = module("core.table").TABLE["mm"]
    rule = special[mm]
    special[mm] = lambda op, level, parts, settings: -rule(op, level, parts, settings)


@fault
def tangent_of_a_write_is_lost() -> None:
    module("func.forward_ad").Level.on_write = module("core.mode").Inner.on_write


@fault
def tangent_of_the_second_factor_is_lost() -> None:
    tangents = module("func.jvp_rules")
    derivative = tangents.derivative
    module("func.forward_ad").derivative = lambda op, args, outs, given, record: derivative(
        op,
        args,
        outs,
        [*given[:1], *[None] * len(given[1:])] if op.name in ("mul", "mm") and given[0] is not None else given,
        record,
    )


@fault
def write_inside_vmap_is_cut_from_the_graph_around() -> None:
    batching = module("func.batching")
    assign = batching.assign
    batching.assign = lambda x, r, op=None: assign(x, r.detach(), op)


@fault
def batching_rules_run_in_the_mode_inside_the_vmap() -> None:
    module("func.batching").Level.around = lambda self, inside: inside


@fault
def results_of_inner_derivatives_are_detached() -> None:
    module("func.transform_inputs").leads_out = lambda t, own=(): False


@fault
def out_dims_are_ignored() -> None:
    mapping = module("func.vmap_transform")
    unwrapped = mapping.unwrapped
    mapping.unwrapped = lambda func, t, dim, level: unwrapped(func, t, dim and 0, level)


# -- compile ---------------------------------------------------------------------------------------


@fault
def compiled_program_takes_other_numbers_for_the_same() -> None:
    facts, trees = module("compile.guards.guard_predicates"), module("compile.guards.pytree_signature")
    equal, signature = facts.equal, trees.signature

    def of_type(value: Any, flat: list, others: list) -> Any:
        return type(value) if type(value) in (int, float) else signature(value, flat, others)

    for name in ("guard_predicates", "pytree_signature", "guard_set", "guard_text"):
        place = module(f"compile.guards.{name}")
        if hasattr(place, "equal"):
            place.equal = lambda a, b: type(a) is type(b) in (int, float) or equal(a, b)
        if hasattr(place, "signature"):
            place.signature = of_type


@fault
def multiplication_by_two_is_left_out() -> None:
    simplify, check = module("compile.passes.simplify"), module("compile.run.verify")
    is_one = simplify.is_one
    simplify.is_one = lambda v: is_one(v) or getattr(v, "size", 0) == 1 and float(v.ravel()[0]) == 2.0
    check.difference = lambda *args: ""


# -- layouts ---------------------------------------------------------------------------------------


@fault
def copies_forget_their_strides() -> None:
    shape = module("kernels.shape")
    shape.copy_of = lambda x: x.copy("C")


@fault
def images_lose_channels_last() -> None:
    strided = module("kernels.layout")
    strided.suggests_last = lambda a: False
    for name in ("conv", "pool", "normalization", "resize", "pad_modes"):
        place = module(f"kernels.{name}")
        for helper in ("suggests_last", "channels_last"):
            if hasattr(place, helper):
                setattr(place, helper, lambda a: False)


# -- running ---------------------------------------------------------------------------------------


def search(name: str, kind: str, seconds: float, seed: int) -> str:
    """Plant the fault and run the fuzzer until it makes an answer wrong: after how many programs and seconds, or ''."""
    fuzzer = importlib.import_module(kind)
    sides = getattr(fuzzer, "sides", harness.torch_and_ours)()

    def is_wrong(text: str) -> bool:
        return harness.difference(text, sides)[0] == "wrong"

    def right_without_the_fault() -> None:
        while True:
            line.send(not is_wrong(line.recv()))

    here, line = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(target=right_without_the_fault, daemon=True).start()
    FAULTS[name]()
    start = time.monotonic()
    for number in range(10**9):
        if time.monotonic() - start > seconds:
            return ""
        text = fuzzer.program(random.Random(f"{seed}:{number}"))
        if is_wrong(text):
            here.send(text)
            if here.recv():
                return f"{number + 1} programs, {time.monotonic() - start:.1f} s"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--one", nargs=2, metavar=("FAULT", "KIND"), help="in this very process")
    args = parser.parse_args()
    if args.one:
        print(search(*args.one, args.seconds, args.seed))
        return
    counts = dict.fromkeys(args.kinds, 0)
    for name in FAULTS:
        for kind in args.kinds:
            command = [
                sys.executable,
                __file__,
                "--one",
                name,
                kind,
                "--seconds",
                str(args.seconds),
                "--seed",
                str(args.seed),
            ]
            found = (
                subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip().split("\n")[-1]
            )
            counts[kind] += bool(found)
            print(f"{name:52} {kind:11} {found or 'not found'}", flush=True)
    print({kind: f"{n} of {len(FAULTS)}" for kind, n in counts.items()})


if __name__ == "__main__":
    main()
