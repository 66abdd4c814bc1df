"""torch.distributed.utils: the same module on all ranks."""

from tests.support.ranks import needs_mpi, ranks


def same_states(torch, dist):
    from rushlight.distributed.utils import _sync_module_states, _verify_param_shape_across_processes

    module = torch.nn.BatchNorm1d(2)
    with torch.no_grad():
        module.weight += dist.get_rank()
        module.running_mean += dist.get_rank()
    _sync_module_states(module, dist.group.WORLD, 1 << 20, 1, ["running_mean"])
    try:
        _verify_param_shape_across_processes(dist.group.WORLD, [torch.ones(1 + dist.get_rank())])
    except RuntimeError as error:
        told = "appears not to match" in str(error)
    return [module.weight.tolist(), module.running_mean.tolist(), told]


@needs_mpi
def test_the_same_module_on_all_ranks():
    assert ranks(2)(same_states) == [[[2.0, 2.0], [r, r], True] for r in (0.0, 1.0)]
