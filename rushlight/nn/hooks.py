"""Hooks of a module's call: before and after `forward`, and before and after its backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np

from rushlight.autograd.function import Function
from rushlight.base.errors import located, runtime_error, warn
from rushlight.base.missing_names import NoAttribute
from rushlight.base.tracebacks import hide_frames
from rushlight.core.node import Handle
from rushlight.core.tensor import Tensor, created, from_array

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

if TYPE_CHECKING:

    class HasForward(Protocol[P, R]):
        """What type checkers see of a module: a call has the arguments and result of `forward`."""

        _hooked: bool

        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


Kind = tuple[tuple[int, ...], np.dtype]  # a tensor's shape and dtype
number = count().__next__  # the next key of a hook: unique and increasing

# key -> (kind, hook) of the hooks on all modules; usually empty
EVERYWHERE: dict[int, tuple[str, Callable]] = {}
WITH_KWARGS: set[int] = set()  # keys of the hooks that also take keyword arguments
ALWAYS_CALLED: set[int] = set()  # keys of the hooks that run after an error, too
# hooks on registrations, under torch's names
_global_parameter_registration_hooks: dict[int, Callable] = {}
_global_buffer_registration_hooks: dict[int, Callable] = {}
_global_module_registration_hooks: dict[int, Callable] = {}
REGISTERED = {
    "parameter": _global_parameter_registration_hooks,
    "buffer": _global_buffer_registration_hooks,
    "module": _global_module_registration_hooks,
}
# the kinds of hooks that a call runs
CALLED = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
HOOKS = (
    *CALLED, "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
OLDER = "_older_backward_hooks"  # hooks of register_backward_hook on all modules


def add(hooks: dict, hook: Any, prepend: bool = False) -> Handle:
    """Put a hook at the end, or in front."""
    key = number()
    while key in hooks:  # taken by a hook from a file
        key = number()
    later = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[key] = hook
    hooks.update(later)
    return Handle(hooks, key)


def register_module_forward_pre_hook(hook: Callable) -> Handle:
    """Call `hook(module, args)` before the forward of every module."""
    return add(EVERYWHERE, ("_forward_pre_hooks", hook))


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call `hook(module, args, output)` after the forward of every module; see `Module.register_forward_hook`."""
    handle = add(EVERYWHERE, ("_forward_hooks", hook))
    if with_kwargs:
        WITH_KWARGS.add(handle.key)
    if always_call:
        ALWAYS_CALLED.add(handle.key)
    return handle


def register_module_full_backward_pre_hook(hook: Callable) -> Handle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return add(EVERYWHERE, ("_backward_pre_hooks", hook))


def register_module_full_backward_hook(hook: Callable) -> Handle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    check_one_sort(not any(kind == OLDER for kind, _ in EVERYWHERE.values()), "as a global Module hook")
    return add(EVERYWHERE, ("_backward_hooks", hook))


def register_module_backward_hook(hook: Callable) -> Handle:
    """`Module.register_backward_hook` for every module."""
    check_one_sort(not any(kind == "_backward_hooks" for kind, _ in EVERYWHERE.values()), "as a global Module hook")
    return add(EVERYWHERE, (OLDER, hook))


def check_one_sort(one: bool, where: str = "on a single Module") -> None:
    """RuntimeError for full backward hooks together with older ones."""
    if not one:
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
        )


def register_module_parameter_registration_hook(hook: Callable) -> Handle:
    """Call `hook(module, name, parameter)` when a parameter is registered; its result replaces the parameter."""
    return add(_global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> Handle:
    """Call `hook(module, name, buffer)` when a buffer is registered; its result replaces the buffer."""
    return add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> Handle:
    """Call `hook(module, name, submodule)` when a submodule is registered; its result replaces the submodule."""
    return add(_global_module_registration_hooks, hook)


def registered(module: Any, kind: str, name: str, value: Any) -> Any:
    """The object to register, after the hooks of registration have run."""
    for hook in list(REGISTERED[kind].values()):
        if (answer := hook(module, name, value)) is not None:
            value = answer
    return value


class Hooked:
    """The part of Module that runs hooks. A call of a module without hooks goes straight to `forward`."""

    _hooked = False
    _is_full_backward_hook: bool | None = None  # whether the backward hooks are full hooks; None: no hooks
    _forward_pre_hooks: dict[int, Callable]
    _forward_hooks: dict[int, Callable]
    _backward_pre_hooks: dict[int, Callable]
    _backward_hooks: dict[int, Callable]
    # keys of the hooks that also take keyword arguments
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]  # keys of the hooks that run after an error, too
    forward: Callable[..., Any]

    def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if self._hooked or EVERYWHERE:
                return call(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            with_module_path(error, self)
            raise

    def _hang(self, kind: str, hook: Callable, prepend: bool = False) -> Handle:
        self.__dict__["_hooked"] = True
        return add(getattr(self, kind), hook, prepend)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call `hook(module, args)` before forward; its result replaces the arguments.

        `with_kwargs`: call `hook(module, args, kwargs)`, which may return (args, kwargs).
        """
        handle = self._hang("_forward_pre_hooks", hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.key] = True
        return handle

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after forward; its result replaces the output.

        `with_kwargs`: call `hook(module, args, kwargs, output)`; `always_call`: also after an error, with output
        None."""
        handle = self._hang("_forward_hooks", hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.key] = True
        if always_call:
            self._forward_hooks_always_called[handle.key] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_output)` once the gradients of the outputs are computed.

        Its result replaces the gradients.
        """
        return self._hang("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are computed.

        The hook's result replaces `grad_input`. Inputs and outputs are the tensors among the positional arguments and
        in the result. None stands for an input or output without a gradient.
        """
        check_one_sort(self._is_full_backward_hook is not False)
        self._is_full_backward_hook = True
        return self._hang("_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable) -> Handle:
        """Call `hook(module, grad_input, grad_output)` with the gradients of the module's last node only. If the module
        has several ops, these are not the gradients of its inputs. Prefer `register_full_backward_hook`.
        """
        check_one_sort(self._is_full_backward_hook is not True)
        self._is_full_backward_hook = False
        return self._hang("_backward_hooks", hook)


def with_module_path(error: Exception, module: Any) -> None:
    """Add the path of the failing module to the message of a rushlight error. Each enclosing module prepends its name,
    so the outermost module completes the path.
    """
    explained = located(error)
    hide_frames(own=explained or isinstance(error, NoAttribute))
    if not explained:
        return
    inner = error.__dict__.get("in_module")
    if inner is None:
        path, kind, line = "", type(module).__name__, None
    else:
        child, path, kind, line = inner
        name = next((name for name, m in module._modules.items() if m is child), None)
        if name is None:  # the caller is not the module's parent
            return
        path = f"{name}.{path}" if path else name
    told = f"\n  module: {kind} '{path}'" if path else f"\n  module: {kind}"
    text = error.args[0] if line is None else error.args[0].replace(line, "", 1)
    error.args = (text.replace("\n  at: ", told + "\n  at: ", 1), *error.args[1:])
    error.__dict__["in_module"] = (module, path, kind, told)


def hooks_of_kind(module: Hooked, kind: str) -> list[tuple[int, Callable]]:
    """(key, hook) of one kind: hooks on all modules first, then the module's own hooks."""
    shared = [(key, hook) for key, (k, hook) in list(EVERYWHERE.items()) if k == kind]
    return [*shared, *getattr(module, kind).items()]


def call(module: Any, args: tuple, kwargs: dict) -> Any:
    """`module(*args, **kwargs)` with hooks."""
    done: set[int] = set()
    result = None
    try:
        args, kwargs = run_forward_pre_hooks(module, args, kwargs)
        full, older = backward_hooks(module)
        first = [hook for _, hook in hooks_of_kind(module, "_backward_pre_hooks")]
        passage = Passage(module, first, full) if full or first else None
        if passage is not None:
            args = passage.enter(args)
        result = module.forward(*args, **kwargs)
        for key, hook in hooks_of_kind(module, "_forward_hooks"):
            done.add(key)
            answer = run_forward_hook(module, key, hook, args, kwargs, result)
            result = result if answer is None else answer
        result = result if passage is None else passage.leave(result)
        if older:
            watch_node(module, older, args, result)
        return result
    except Exception:
        for key, hook in hooks_of_kind(module, "_forward_hooks"):
            if (key in module._forward_hooks_always_called or key in ALWAYS_CALLED) and key not in done:
                result = after_error(module, key, hook, args, kwargs, result)
        raise


def after_error(module: Hooked, key: int, hook: Callable, args: tuple, kwargs: dict, result: Any) -> Any:
    """The result after a hook that is always called. An error in the hook does not hide an earlier error."""
    try:
        answer = run_forward_hook(module, key, hook, args, kwargs, result)
    except Exception as error:
        whose = "global module" if key in ALWAYS_CALLED else "module"
        warn(
            f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another error "
            f"was raised in forward: {error}"
        )
        return result
    return result if answer is None else answer


def backward_hooks(module: Hooked) -> tuple[list[Callable], list[Callable]]:
    """(full backward hooks, older hooks, which see the gradients of the last node only)."""
    shared = {kind: [hook for k, hook in list(EVERYWHERE.values()) if k == kind] for kind in ("_backward_hooks", OLDER)}
    own = list(module._backward_hooks.values())
    older = module._is_full_backward_hook is False
    return (shared["_backward_hooks"] + ([] if older else own)), shared[OLDER] + (own if older else [])


def watch_node(module: Hooked, hooks: list[Callable], args: tuple, result: Any) -> None:
    """Add hooks to the node that made the result."""
    var = result
    while not isinstance(var, Tensor):
        var = next(v for v in var.values() if isinstance(v, Tensor)) if isinstance(var, dict) else var[0]
    if (node := var.grad_fn) is not None:
        for hook in hooks:
            node.register_hook(partial(hook, module))
        if (text := missed_by_old_hooks(args, result, node)) is not None:
            warn(f"Using {text} Please use register_full_backward_hook to get the documented behavior.", FutureWarning)


def missed_by_old_hooks(args: Any, result: Any, node: Any) -> str | None:
    """torch's description of the gradients that a hook on the result's node does not get; None if it gets all
    gradients."""
    gone = "is deprecated and will be removed in future versions. This hook will be missing some"
    results = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(results, tuple) and all([isinstance(r, Tensor) for r in results])):
        return (
            "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
            f"{gone} of the grad_output."
        )
    if not all([isinstance(a, Tensor) for a in args]):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
            f"Tensors {gone} of the grad_input."
        )
    if len({r.grad_fn for r in results if r.grad_fn is not None}) > 1:
        return f"a non-full backward hook when outputs are generated by different autograd Nodes {gone} grad_output."
    if {a.grad_fn for a in args if a.grad_fn is not None} != {n for n, _ in node.next_functions}:
        return f"a non-full backward hook when the forward contains multiple autograd Nodes {gone} grad_input."
    return None


def run_forward_pre_hooks(module: Hooked, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments as the forward pre-hooks return them."""
    for key, hook in hooks_of_kind(module, "_forward_pre_hooks"):
        if key in module._forward_pre_hooks_with_kwargs:
            answer = hook(module, args, kwargs)
            if answer is not None:
                if not isinstance(answer, tuple) or len(answer) != 2:
                    raise runtime_error(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                    )
                args, kwargs = answer
        else:
            answer = hook(module, args)
            if answer is not None:
                args = answer if isinstance(answer, tuple) else (answer,)
    return args, kwargs


def run_forward_hook(module: Hooked, key: int, hook: Callable, args: tuple, kwargs: dict, result: Any) -> Any:
    if key in module._forward_hooks_with_kwargs or key in WITH_KWARGS:
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


class Passage:
    """One call of a module. Identity nodes around the call pass the gradients to the backward hooks."""

    def __init__(self, module: Hooked, first: list[Callable], last: list[Callable]):
        # before and after the module's backward
        self.module, self.first, self.last = module, first, last
        self.places: list[int] = []  # positions of the tensors among the arguments
        self.inputs = 0  # number of arguments
        self.watched = False  # whether a gradient reaches the inputs
        self.grad_output: tuple | None = None  # set by `outside`, read by `inside`

    def enter(self, args: tuple) -> tuple:
        """The arguments, after their tensors have passed an identity node that reports their gradients."""
        self.inputs = len(args)
        self.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        tensors = [args[i] for i in self.places]
        if not any(t.requires_grad for t in tensors):
            return args
        passed = Gate.apply(self.inside, *tensors)
        self.watched = any(t.requires_grad for t in passed)
        fresh = dict(zip(self.places, passed))
        return tuple(fresh.get(i, a) for i, a in enumerate(args))

    def leave(self, result: Any) -> Any:
        """The result, after its tensors have passed an identity node that reports their gradients."""
        if not isinstance(result, (Tensor, tuple)):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                f"received {type(result)}"
            )
            return result
        parts = list(result) if isinstance(result, tuple) else [result]
        places = [i for i, r in enumerate(parts) if isinstance(r, Tensor)]
        if not any(parts[i].requires_grad for i in places):
            return result
        # a reference to `parts` would make a cycle
        seen = partial(self.outside, places=places, outputs=len(parts))
        passed = Gate.apply(seen, *[parts[i] for i in places])
        for i, t in zip(places, passed):
            parts[i] = t
        if not isinstance(result, tuple):
            return parts[0]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)

    def outside(self, grads: tuple, like: list[Kind], places: list[int], outputs: int) -> tuple:
        """Called with the gradients of the outputs. Hooks see None for a missing gradient; backward continues with
        0."""
        known = dict(zip(places, grads))
        shown = tuple(known.get(i) for i in range(outputs))
        for hook in self.first:
            shown = replaced(hook(self.module, shown), shown, "pre hook", "grad_output")
        self.grad_output = shown
        if not self.watched:  # no gradient goes to the inputs, so backward of the module ends here
            warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients: hooks see None for grad_input"
            )
            last = self.finish((None,) * self.inputs)
            if any(g is not None for g in last):
                raise runtime_error(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        return filled([shown[i] for i in places], like)

    def inside(self, grads: tuple, like: list[Kind]) -> tuple:
        """Called with the gradients of the inputs."""
        grads = filled(grads, like)
        # the gradients did not pass the outputs: forward returned a dict, or this is a second derivative
        if self.grad_output is None:
            return grads
        known = dict(zip(self.places, grads))
        answer = self.finish(tuple(known.get(i) for i in range(self.inputs)))
        return tuple(answer[i] for i in self.places)

    def finish(self, grad_input: tuple) -> tuple:
        for hook in self.last:
            grad_input = replaced(hook(self.module, grad_input, self.grad_output), grad_input, "hook", "grad_input")
        self.grad_output = None
        return grad_input


def replaced(answer: Any, grads: tuple, kind: str, name: str) -> tuple:
    """The gradients that a hook returned. RuntimeError if their number is wrong."""
    if answer is None:
        return grads
    given = answer if isinstance(answer, tuple) else (answer,)
    if len(given) != len(grads):
        raise runtime_error(
            f"Backward {kind} returned an invalid number of {name}, got {len(given)}, but expected {len(grads)}"
        )
    return given


def filled(grads: Iterable[Tensor | None], like: list[Kind]) -> tuple:
    """The gradients, with zeros in place of None."""
    return tuple(
        created(from_array(np.zeros(shape, dtype))) if g is None else g for g, (shape, dtype) in zip(grads, like)
    )


class Gate(Function):
    """The identity on several tensors; its backward passes their gradients to a function."""

    @staticmethod
    def forward(ctx: Any, seen: Callable, *tensors: Tensor) -> tuple:
        ctx.seen, ctx.like = seen, [(t._array.shape, t._array.dtype) for t in tensors]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[t for t, needed in zip(tensors, ctx.needs_input_grad[1:]) if not needed])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        return (None, *ctx.seen(grads, ctx.like))

    @staticmethod
    def jvp(ctx: Any, seen: None, *tangents: Tensor) -> tuple:
        return tangents
