"""The docs page docs/use/teach.md, written from the checks: `python -m rushlight.teaching.page`."""

from __future__ import annotations

import re

from rushlight.teaching import CHECKS
from rushlight.teaching.check import Check

HEAD = """\
<!-- written by `python -m rushlight.teaching.page > docs/use/teach.md`; edit rushlight/teaching -->
# Silent mistakes

Some mistakes raise no error: the program runs, and learns badly or measures wrongly. `--teach`
watches a training program and warns of them, once for each place, on stderr. What the program
prints, and its numbers to the last bit, stay the same.

```bash
rushlight run --teach train.py
```

In a program or a notebook:

```py
import rushlight

rushlight.teach()          # on
...                        # train
rushlight.teach(False)     # off, with a summary

with rushlight.teach() as teaching:
    ...
print(teaching.hints)
```

A hint has the measurement, your statement, and the fix:

```text
rushlight teach: gradients are not cleared between steps
  in 3 steps in a row, 4 of 4 gradients still contained the gradient of the step before.
  at: train.py:12: optimizer.step()
  hint: call optimizer.zero_grad() before backward().
  see https://rushlight-py.github.io/rushlight/use/teach.html#gradients-not-cleared
```

- **Silence proves nothing.** A check warns only if it is sure: a mistaken alarm is worse than
  silence. Each section below names the conditions.
- **Cost.** About 15 % of a program's time; nothing when it is off, because nothing is wrapped then.
- **rushlight.compile.** A compiled function is checked while it is traced, and only where no
  numbers are needed: the shapes given to a loss, and the op before it. Optimizers and models that run
  outside of the compiled function are checked as usual.
- `from torch.nn.functional import cross_entropy` before `teach()` keeps the function that is not
  watched; with `--teach` the order does not matter.
"""


CODE = re.compile(r"[A-Za-z_.][\w.]*\((?:[^()]|\([^()]*\))*\)|(?<!\w)\.[a-z]\w*|\b\w+_\w+\b|\bnn\.\w+")


def prose(words: str) -> str:
    """The text with calls, attributes and names_with_underscores as code."""
    return CODE.sub(lambda found: f"`{found[0]}`", words)


def section(check: type[Check]) -> str:
    """The section of one check."""
    return f"""
## {check.title[0].upper()}{check.title[1:]} {{ #{check.name} }}

{prose(check.why)} To fix it, {prose(check.fix)}

```py
# wrong
{check.wrong}
# right
{check.right}
```

Reported if {prose(check.limit)}
"""


def text() -> str:
    """The whole page."""
    return HEAD + "".join(section(check) for check in CHECKS)


if __name__ == "__main__":
    print(text(), end="")
