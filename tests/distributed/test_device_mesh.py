"""DeviceMesh: the ranks as an array."""

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def mesh(torch, dist):
    if torch.__name__ == "torch":
        import torch.distributed.device_mesh
    made = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    x = torch.ones(1) * dist.get_rank()
    dist.all_reduce(x, group=made.get_group("columns"))
    y = torch.ones(1) * dist.get_rank()
    dist.all_reduce(y, group=made["rows"].get_group())
    return [
        x.item(),
        y.item(),
        made.get_coordinate(),
        made.get_local_rank("rows"),
        list(made.shape),
        made.size(),
        made["columns"].mesh.tolist(),
        dist.get_process_group_ranks(made.get_group(0)),
    ]


def test_groups_of_rows_and_columns(oracle):
    want = oracle(lambda torch: ranks(4, "torch")(mesh))
    assert ranks(4)(mesh) == want
