"""A stand-in for tyro: a dataclass from `--field-name value` arguments."""

import dataclasses
import sys


def cli(cls, args=None, **kw):
    values = {}
    args = list(sys.argv[1:] if args is None else args)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    while args:
        a = args.pop(0)
        name = a.lstrip("-").replace("-", "_")
        if name.startswith("no_") and name[3:] in fields:
            values[name[3:]] = False
            continue
        old = fields[name].default
        if isinstance(old, bool):
            values[name] = True
            continue
        raw = args.pop(0)
        values[name] = type(old)(raw) if old is not None and old is not dataclasses.MISSING else raw
    return cls(**values)
