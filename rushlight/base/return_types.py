"""torch.return_types: the tuples with names that ops with several outputs return."""

from __future__ import annotations

from operator import itemgetter

RETURN_TYPES: dict[str, type] = {}  # {name: class}, filled by `return_type`


def return_type(name: str, fields: list[str]) -> type:
    """A tuple with names, as `torch.max(x, dim)` returns: `.values`, `.indices`."""
    if name in RETURN_TYPES:
        return RETURN_TYPES[name]

    def show(self: tuple) -> str:
        return f"torch.return_types.{name}(\n" + ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self)) + ")"

    places = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    made = RETURN_TYPES[name] = type(
        name,
        (tuple,),
        {
            "__slots__": (),
            "_fields": tuple(fields),
            "__repr__": show,
            **places,
            "__module__": "torch.return_types",
            "__reduce__": lambda self: (tuple, (tuple(self),)),
        },
    )
    return made
