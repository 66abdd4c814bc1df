"""Programs that `torch.jit.script` compiles: loops, conditions, containers, state. torch reads their source."""

from __future__ import annotations


def programs(torch):
    """{name: (module, arguments)} for torch."""
    from typing import NamedTuple

    nn = torch.nn

    class Loops(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)])

        def forward(self, x, count: int):
            total = torch.zeros_like(x)
            for step in self.steps:
                total = total + step(x).tanh()
            k = 0
            while k < count:
                if k % 2 == 0:
                    total = total * 1.1
                elif k == 3:
                    k += 2
                    continue
                else:
                    total = total - x
                if float(total.abs().sum()) > 1000.0:
                    break
                k += 1
            return total, k

    class Containers(nn.Module):
        def __init__(self):
            super().__init__()
            self.names: list[str] = ["a", "b"]
            self.scales: dict[str, float] = {"a": 2.0, "b": 0.5}

        def forward(self, x) -> dict[str, torch.Tensor]:
            found: dict[str, torch.Tensor] = {}
            rows: list[torch.Tensor] = []
            for name in self.names:
                found[name] = x * self.scales[name]
                rows.append(found[name].sum(0))
            if "a" in found and len(rows) == 2:
                found["rows"] = torch.stack(rows)
            sizes = [n * 2 for n in x.shape]
            found["grown"] = torch.ones(sizes) * sum(sizes) + len("-".join(self.names))
            return found

    class State(nn.Module):
        """A buffer and a number that each call changes."""

        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.calls = 0

        def forward(self, x, weight: torch.Tensor | None = None):
            self.calls += 1
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            if weight is not None:
                x = x * weight
            return (x - self.mean) * self.calls

        @torch.jit.export
        def reset(self):
            self.calls = 0
            self.mean.zero_()

    class Helper(nn.Module):
        def forward(self, x) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
            with torch.no_grad():
                y = x * 2
            return y, (x[1:, ::2], x[..., -1])

    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleDict({"first": Helper(), "second": Helper()})
            self.scale = nn.ParameterList([nn.Parameter(torch.ones(4) * k) for k in (1, 2)])

        def forward(self, x):
            out = x
            for _, part in self.inner.items():
                y, (left, right) = part(out)
                out = y + left.sum() - right.unsqueeze(1)
            if out.size(0) > 1 and not self.training:
                out = out * (1 if out.dim() == 2 else 0)
            return out

    Point = NamedTuple("Point", [("x", torch.Tensor), ("y", torch.Tensor)])  # noqa: UP014 -- torch needs types, not texts

    class Tuples(nn.Module):
        def forward(self, x):
            p = Point(x + 1, x * 2)
            return Point(p.y, p.x), f"{x.dim()} dims", [int(x.shape[0]), int(x.shape[1])]

    class Greedy(nn.Module):
        """A decoder: a token for each step, until a token ends the sequence."""

        def __init__(self):
            super().__init__()
            self.table, self.cell, self.out = nn.Embedding(7, 5), nn.GRUCell(5, 6), nn.Linear(6, 7)

        def forward(self, h, most: int = 10):
            token = torch.zeros([h.size(0)], dtype=torch.long)
            found = torch.jit.annotate(list[torch.Tensor], [])
            for _ in range(most):
                h = self.cell(self.table(token), h)
                token = self.out(h).argmax(1)
                found.append(token)
                if bool((token == 6).all()):
                    break
            return torch.stack(found, 1), h

    x = torch.linspace(-1, 1, 8).view(2, 4)
    return {
        "loops": (Loops(), (x, 7)), "containers": (Containers(), (x,)), "state": (State(), (x[:, :3], x[:, :3] + 2)),
        "nested": (Nested(), (x,)), "greedy": (Greedy(), (torch.linspace(-1, 1, 12).view(2, 6),)),
        "tuples": (Tuples(), (x,)),
    }  # fmt: skip
