"""Checkpoints: saved by some ranks, loaded by another number of them."""

import pytest

import rushlight
from rushlight.distributed import checkpoint
from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def made(torch, how):
    from rushlight.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from rushlight.nn.parallel import DistributedDataParallel

    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
    wrap = {"fsdp": FullyShardedDataParallel, "ddp": DistributedDataParallel, "fully": fully_shard}
    model = wrap[how](model)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def step(torch, model, optimizer):
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def save(torch, dist, path, how, later):
    from rushlight.distributed import checkpoint
    from rushlight.distributed.checkpoint.state_dict import get_state_dict

    torch.manual_seed(1)
    model, optimizer = made(torch, how)
    step(torch, model, optimizer)
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optim": moments, "step": 7, "note": ["a", {"b": 2}]}
    if later:
        future = checkpoint.async_save(state, checkpoint_id=path)
        for p in model.parameters():
            torch.nn.init.zeros_(p)  # training goes on
        future.result()
        return None
    checkpoint.save(state, checkpoint_id=path)
    step(torch, model, optimizer)
    return model(torch.ones(1, 5)).tolist()


def load(torch, dist, path, how):
    from rushlight.distributed import checkpoint
    from rushlight.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    torch.manual_seed(2)
    model, optimizer = made(torch, how)
    step(torch, model, optimizer)  # so that there is a state to load into
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optim": moments, "step": 0, "note": [None, {"b": None}]}
    checkpoint.load(state, checkpoint_id=path)
    assert (state["step"], state["note"]) == (7, ["a", {"b": 2}])
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
    )
    step(torch, model, optimizer)
    return model(torch.ones(1, 5)).tolist()


@pytest.mark.parametrize(
    ("saved", "by", "loaded", "into"),
    [
        (2, "fsdp", 4, "fsdp"),
        (4, "fully", 2, "fsdp"),
        (2, "ddp", 4, "fully"),
        (4, "fsdp", 2, "ddp"),
    ],
)
def test_another_number_of_ranks_goes_on(tmp_path, saved, by, loaded, into):
    path = str(tmp_path / "checkpoint")
    want = ranks(saved)(save, path, by, False)[0]
    for got in ranks(loaded)(load, path, into):
        assert got[0] == pytest.approx(want[0], rel=1e-5)


def test_a_thread_saves_what_was_there(tmp_path):
    first, second = str(tmp_path / "one"), str(tmp_path / "two")
    ranks(2)(save, first, "fsdp", False)
    ranks(2)(save, second, "fsdp", True)
    assert ranks(2)(load, first, "fsdp") == ranks(2)(load, second, "fsdp")


def test_one_process(tmp_path):
    model, other = rushlight.nn.Linear(2, 3), rushlight.nn.Linear(2, 3)
    for _ in range(2):  # over the one that is there
        checkpoint.save({"model": model, "scale": 0.5}, checkpoint_id=tmp_path / "c")
    state = {"model": other, "scale": None}
    checkpoint.load(state, checkpoint_id=tmp_path / "c")
    assert rushlight.equal(model.weight, other.weight)
    assert state["scale"] == 0.5
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: more"):
        checkpoint.load({"more": None}, checkpoint_id=tmp_path / "c")
    with pytest.raises(ValueError, match="Size mismatch"):
        checkpoint.load({"model": rushlight.nn.Linear(3, 3)}, checkpoint_id=tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="is no checkpoint"):
        checkpoint.load({}, checkpoint_id=tmp_path / "d")
