"""Checkpoints: saved by some ranks, loaded by another number of them."""

import pickle
from importlib import import_module
from pathlib import Path

import pytest

import rushlight
from rushlight.distributed import checkpoint
from rushlight.distributed.checkpoint import format_utils
from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def part(torch, name):
    return import_module(f"{torch.__name__}.distributed.{name}")


def made(torch, how):
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
    wrap = {
        "fsdp": lambda m: part(torch, "fsdp").FullyShardedDataParallel(m),
        "ddp": lambda m: torch.nn.parallel.DistributedDataParallel(m),
        "fully": lambda m: part(torch, "fsdp").fully_shard(m),
    }
    model = wrap[how](model)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def step(torch, model, optimizer):
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def save(torch, dist, path, how, later):
    checkpoint = part(torch, "checkpoint")
    torch.manual_seed(1)
    model, optimizer = made(torch, how)
    step(torch, model, optimizer)
    weights, moments = part(torch, "checkpoint.state_dict").get_state_dict(model, optimizer)
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
    states = part(torch, "checkpoint.state_dict")
    torch.manual_seed(2)
    model, optimizer = made(torch, how)
    step(torch, model, optimizer)  # so that there is a state to load into
    weights, moments = states.get_state_dict(model, optimizer)
    state = {"model": weights, "optim": moments, "step": 0, "note": [None, {"b": None}]}
    part(torch, "checkpoint").load(state, checkpoint_id=path)
    assert (state["step"], state["note"]) == (7, ["a", {"b": 2}])
    states.set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    step(torch, model, optimizer)
    return model(torch.ones(1, 5)).tolist()


@pytest.mark.parametrize(
    ("saved", "by", "loaded", "into"),
    [(2, "fsdp", 4, "fsdp"), (4, "fully", 2, "fsdp"), (2, "ddp", 4, "fully"), (4, "fsdp", 2, "ddp")],
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
    with pytest.raises(FileNotFoundError, match="is not a checkpoint"):
        checkpoint.load({}, checkpoint_id=tmp_path / "d")


@pytest.mark.parametrize(("saved", "by", "loaded", "into"), [(4, "fully", 2, "fully"), (2, "ddp", 2, "ddp")])
def test_torch_goes_on(tmp_path, oracle, saved, by, loaded, into):
    """torch loads the files of another number of our ranks."""
    path = str(tmp_path / "checkpoint")
    want = ranks(saved)(save, path, by, False)[0]
    for got in oracle(lambda torch: ranks(loaded, "torch")(load, path, into)):
        assert got[0] == pytest.approx(want[0], rel=1e-5)


# written by `save` of this file: ranks(2, "torch")(save, path, "fully", False)
OF_TORCH = Path(__file__).parents[2] / "golden" / "distributed" / "checkpoint" / "of_torch"


@pytest.mark.parametrize(("loaded", "into"), [(2, "fully"), (4, "fsdp"), (2, "ddp")])
def test_torchs_checkpoint_goes_on(oracle, tmp_path, loaded, into):
    want = oracle(lambda torch: ranks(2, "torch")(save, str(tmp_path / "c"), "fully", False))[0]
    for got in ranks(loaded)(load, str(OF_TORCH), into):
        assert got[0] == pytest.approx(want[0], rel=1e-5)


def test_one_file_and_back(tmp_path):
    one, folder = tmp_path / "one.pt", tmp_path / "folder"
    format_utils.dcp_to_torch_save(OF_TORCH, one)
    state = rushlight.load(one)
    assert state["optim"]["state"]["0.weight"]["exp_avg"].shape == (7, 5)
    assert state["note"] == ["a", {"b": 2}]
    format_utils.torch_save_to_dcp(one, folder)
    format_utils.dcp_to_torch_save(folder, tmp_path / "again.pt")
    again = rushlight.load(tmp_path / "again.pt")
    assert rushlight.equal(again["model"]["1.weight"], state["model"]["1.weight"])
    assert again["optim"]["param_groups"] == state["optim"]["param_groups"]


class Foreign:
    """A class of a program."""


@pytest.mark.parametrize(
    "content", [pickle.dumps(Foreign()), b"cos\nsystem\n(S'true'\ntR.", b"ccopyreg\n__newobj__\n(cos\nsystem\ntR."]
)
def test_metadata_imports_nothing(tmp_path, content):
    (tmp_path / ".metadata").write_bytes(content)
    with pytest.raises(pickle.UnpicklingError, match="not on the list|may not|not needed"):
        checkpoint.load({}, checkpoint_id=tmp_path)


def test_objects_of_programs_are_not_imported(tmp_path):
    checkpoint.save({"thing": Foreign()}, checkpoint_id=tmp_path / "c")
    with pytest.raises(pickle.UnpicklingError, match="Foreign"):
        checkpoint.load({"thing": None}, checkpoint_id=tmp_path / "c")
