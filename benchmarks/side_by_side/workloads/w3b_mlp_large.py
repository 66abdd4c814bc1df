"""W3b: the W3 step with hidden width 1024 and batch 1024: compute bound."""

from workloads import w3_mlp


def build(torch):
    return w3_mlp.build(torch, sizes=(784, 1024, 1024, 10), batch=1024)
