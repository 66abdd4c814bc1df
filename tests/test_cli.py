"""The command: what it prints, what it leaves, what it refuses."""

import csv
import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.cli import main
from rushlight.demo import BadInput, digits, results
from rushlight.version import __version__
from tests.support.paths import ROOT

FILES = {"loss.png", "digits.png", "graph.svg", "backward.html", "weights.pt"}


def command(*args, cwd):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "rushlight", *args]
    return subprocess.run(program, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The first 120 digits as plain CSV, quick to learn."""
    path = tmp_path_factory.mktemp("data") / "small.csv"
    lines = gzip.decompress(digits.SHIPPED.read_bytes()).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:120]))
    return path


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """refused(*args) -> the one line that the demo says; training must not have started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rushlight.demo.run.train", lambda *args: pytest.fail("training has started"))

    def call(*args):
        try:
            status = main(["demo", *map(str, args)])
        except SystemExit as leaving:
            status = leaving.code
        captured = capsys.readouterr()
        assert status == 2
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert captured.err.startswith("rushlight demo: ")
        return captured.err

    return call


# a whole run


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small):
    folder = tmp_path_factory.mktemp("run")
    return folder, command("demo", "--data", str(small), "--epochs", "3", "--out", "here/results", cwd=folder)


def test_a_run_succeeds_and_says_what_it_got(finished):
    folder, done = finished
    assert done.returncode == 0, done.stderr
    for word in ("accuracy", "of 24 held-out digits", "time", "parameters", "38,282", "backward.html in a browser"):
        assert word in done.stdout
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr


def test_it_leaves_the_five_files_and_nothing_else(finished):
    folder, _ = finished
    assert {path.name for path in (folder / "here/results").iterdir()} == FILES
    assert [path.name for path in folder.iterdir()] == ["here"]
    assert [path.name for path in (folder / "here").iterdir()] == ["results"]


def test_the_pictures_are_pictures(finished):
    out = finished[0] / "here/results"
    for name in ("loss.png", "digits.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    picture = (out / "graph.svg").read_text()
    assert picture.startswith("<svg")
    page = (out / "backward.html").read_text(encoding="utf-8")
    assert "return nn.CrossEntropyLoss()(model(images), labels)" in page  # its own statements, as a user's
    assert page.startswith("<!DOCTYPE html>")
    assert len(page) < 1_000_000
    for name in ("0.weight", "2.bias", "9.weight"):
        assert name in picture
        assert name in page


def test_the_weights_can_be_loaded(finished):
    import rushlight as torch
    from rushlight.demo.train import network

    model = network()
    model.load_state_dict(torch.load(finished[0] / "here/results/weights.pt"))
    assert model(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def test_torch_reads_the_weights(finished, torch):
    state = torch.load(finished[0] / "here/results/weights.pt", weights_only=True)
    assert state["0.weight"].shape == (16, 1, 3, 3)


def test_the_same_seed_learns_the_same(small, tmp_path, capsys):
    for out in ("a", "b"):
        assert main(["demo", "--data", str(small), "--epochs", "1", "--out", str(tmp_path / out), "--quiet"]) == 0
    assert (tmp_path / "a/weights.pt").read_bytes() == (tmp_path / "b/weights.pt").read_bytes()
    assert capsys.readouterr() == ("", "")


def test_overwrite_replaces_our_files_only(small, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "loss.png").write_text("old")
    (out / "notes.txt").write_text("mine")
    arguments = ["demo", "--data", str(small), "--epochs", "1", "--out", str(out), "--quiet"]
    assert main(arguments) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (out / "loss.png").read_text() == "old"
    assert main([*arguments, "--overwrite"]) == 0
    assert {path.name for path in out.iterdir()} == FILES | {"notes.txt"}
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "notes.txt").read_text() == "mine"


def test_an_empty_folder_may_be_filled(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--data", str(small), "--epochs", "1", "--out", ".", "--quiet"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == FILES


# help and version


def test_help_reads_well(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")  # argparse fills the width of the terminal
    for arguments, words in {
        ("--help",): ["demo", "version"],
        ("demo", "--help"): ["--out DIR", "--overwrite", "--epochs N", "--data FILE", "(default: 15)", "loss.png"],
        ("version", "--help"): ["version"],
    }.items():
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        text = capsys.readouterr().out
        assert leaving.value.code == 0
        assert all(word in text for word in words)
        assert max(map(len, text.splitlines())) <= 82


def test_no_command_shows_the_help(capsys):
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_version(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"rushlight {__version__}\n"
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"rushlight {__version__}\n"


# bad input


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--foo"], "--foo"),
        (["more"], "more"),
        (["--ep", "3"], "--ep"),
        (["--epochs", "0"], "expected an integer >= 1, got '0'"),
        (["--epochs", "2.5"], "'2.5'"),
        (["--epochs", "9" * 5000], "--epochs"),
        (["--seed", "-1"], "--seed"),
        (["--lr", "fast"], "'fast'"),
        (["--lr", "0"], "> 0"),
        (["--lr", "nan"], "'nan'"),
        (["--out"], "--out"),
    ],
)
def test_bad_flags(refused, flags, word):
    assert word in refused(*flags)


def test_an_unknown_command(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["demonstrate"])
    assert leaving.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["rnu", "x.py"], "rushlight: no command 'rnu'; did you mean run?; see rushlight --help"),
        (["launhc"], "rushlight: no command 'launhc'; did you mean launch?; see rushlight --help"),
        (["xyz"], "rushlight: no command 'xyz'; choose from demo, plot, run, check, "),
        (["completion", "bsh"], "rushlight completion: shell: no choice 'bsh'; did you mean bash?; see rushlight "),
        (["demo", "--epoch", "3"], "rushlight demo: unrecognized arguments: --epoch 3; did you mean --epochs?; see "),
        (["info", "--zzz"], "rushlight info: unrecognized arguments: --zzz; see rushlight info --help"),
    ],
)
def test_a_typing_error_names_what_was_meant(capsys, given, shown):
    try:
        status = main(given)
    except SystemExit as leaving:
        status = leaving.code
    text = capsys.readouterr().err
    assert (status, text.count("\n")) == (2, 1)
    assert text.startswith(shown)


@pytest.mark.origin("newcomers")
def test_each_option_has_a_help_text(capsys):
    """`launch --help` and the others explain each option that they list."""
    from rushlight.cli import parser

    (commands,) = [action for action in parser()._actions if hasattr(action, "choices") and action.choices]
    for name, command in commands.choices.items():
        for action in command._actions:
            assert action.help, f"rushlight {name}: {action.option_strings or action.dest}"
            assert "means nothing" not in action.help


@pytest.fixture
def rows(small):
    return list(csv.reader(small.open()))


def changed(rows, row, column, value):
    rows[row][column] = value
    return rows


FAULTS = {
    "a row cut short": (lambda rows: rows[:-1] + [rows[-1][:30]], "line 120: 30 numbers"),
    "a row too long": (lambda rows: rows[:-1] + [rows[-1] * 2], "line 120: 130 numbers"),
    "words": (lambda rows: changed(rows, 3, 5, "ink"), "line 4: not a row of integers"),
    "an empty number": (lambda rows: changed(rows, 3, 64, ""), "line 4: not a row"),
    "a pixel too dark": (
        lambda rows: changed(rows, 0, 0, "17"),
        "line 1: a number of this row is out of range: pixels must be 0 to 16",
    ),
    "a label too large": (lambda rows: changed(rows, 9, 64, "10"), "line 10: "),
    "too few": (lambda rows: rows[:9], "contains 9 digits"),
    "nothing": (lambda rows: [], "contains 0 digits"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_rows(refused, tmp_path, rows, fault):
    change, word = FAULTS[fault]
    path = tmp_path / "bad.csv"
    path.write_text("".join(",".join(row) + "\n" for row in change(rows)))
    line = refused("--data", path)
    assert word in line
    assert str(path) in line


def test_bad_files(refused, tmp_path):
    assert "No such file" in refused("--data", tmp_path / "nowhere.csv")
    assert "directory" in refused("--data", tmp_path)
    whole = digits.SHIPPED.read_bytes()
    for name, raw in {"cut.csv.gz": whole[:30000], "damaged.csv.gz": whole[:100] + b"\0" * 50 + whole[150:]}.items():
        (tmp_path / name).write_bytes(raw)
        assert "truncated or damaged" in refused("--data", tmp_path / name)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\xff\xfe")
    assert "not text" in refused("--data", tmp_path / "picture.png")
    assert not (tmp_path / "rushlight-demo").exists()


def test_bad_folders(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "it is a file" in refused("--out", tmp_path / "file")
    assert "Not a directory" in refused("--out", tmp_path / "file" / "in" / "it")
    (tmp_path / "results" / "loss.png").mkdir(parents=True)
    assert "it is a folder" in refused("--out", tmp_path / "results", "--overwrite")


def test_a_folder_that_cannot_be_written(refused, tmp_path, monkeypatch):
    def read_only(self, *args, **kwargs):
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert "Read-only file system" in refused("--out", tmp_path / "out")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(refused, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "Permission denied" in refused("--out", tmp_path / "locked" / "out")
    assert "Permission denied" in refused("--out", tmp_path / "locked")


def test_missing_extras_are_named(refused, monkeypatch):
    monkeypatch.setattr("rushlight.demo.run.find_spec", lambda name: None if name == "rich" else name)
    assert "needs rich: pip install rich" in refused()


# faults on the way


def test_nothing_half_written(tmp_path):
    def fail(path):
        raise OSError(28, "No space left on device", str(path))

    writers = {"a": lambda path: path.write_text("new"), "b": fail}
    for out in (tmp_path / "fresh", tmp_path / "old"):
        if out.name == "old":
            out.mkdir()
            (out / "a").write_text("old")
        with pytest.raises(OSError, match="No space"):
            results.write(out, writers)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert [(path.name, path.read_text()) for path in (tmp_path / "old").iterdir()] == [("a", "old")]


def test_a_full_disk_is_one_line(small, tmp_path, capsys, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device", "loss.png")

    monkeypatch.setattr("rushlight.demo.run.draw_loss", full)
    out = tmp_path / "out"
    assert main(["demo", "--data", str(small), "--epochs", "1", "--out", str(out), "--quiet"]) == 1
    assert capsys.readouterr().err == "rushlight demo: loss.png: No space left on device\n"
    assert not out.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupted(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    code = (
        # which shells' background jobs lack
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from rushlight.cli import main; from rushlight.demo import run\n"
        "run.train = lambda *args, train=run.train: print('on', flush=True) or train(*args)\n"
        "exit(main(['demo', '--epochs', '9999']))"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=env, text=True, **pipes)
    try:
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()  # or it would learn for hours where it failed
    assert process.returncode == 130
    assert errors.endswith("rushlight demo: interrupted; nothing was written\n")
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_an_exception_of_its_own():
    assert not issubclass(BadInput, OSError)  # or main would call it a fault of the disk


def test_info_names_versions_and_the_cache(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))
    assert main(["info"]) == 0
    facts = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert facts["rushlight"].startswith(__version__)
    assert facts["Python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert str(tmp_path) in facts["cache"]
    assert facts["RUSHLIGHT_CACHE"] == str(tmp_path)


def test_cache_is_counted_and_cleared(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))
    loops = tmp_path / "loops" / "__pycache__"
    loops.mkdir(parents=True)
    (loops.parent / "rushlight_loop_a.py").write_bytes(b"x" * 1_000_000)
    (loops / "rushlight_loop_a.nbi").write_bytes(b"x" * 500_000)
    (tmp_path / "other.txt").write_text("not ours")
    assert main(["cache"]) == 0
    assert "1 loops, 1.5 MB" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "removed 1.5 MB" in capsys.readouterr().out
    assert [*loops.parent.rglob("*")] == []
    assert (tmp_path / "other.txt").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_the_commands(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("demo", "warmup", "--overwrite"))


def test_completion_names_what_it_needs(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install shtab" in capsys.readouterr().err


def test_demo_opens_the_page(small, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    arguments = ["demo", "--quiet", "--open", "--epochs", "1", "--data", str(small)]
    assert main([*arguments, "--out", str(tmp_path / "results")]) == 0
    assert opened == [(tmp_path / "results" / "backward.html").as_uri()]


# -- export --------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A model in the file line.pt of the current folder."""
    monkeypatch.chdir(tmp_path)
    rushlight.manual_seed(0)
    rushlight.save(rushlight.nn.Linear(3, 2), "line.pt")
    return tmp_path


def test_export_writes_a_folder_and_lists_its_files(saved, capsys):
    assert main(["export", "line.pt", "--example", "4x3", "--dynamic"]) == 0
    assert sorted(f.name for f in (saved / "line").iterdir()) == ["__init__.py", "program.py", "weights.safetensors"]
    assert "line/program.py" in capsys.readouterr().out
    assert main(["export", "line.pt", "--example", "4x3"]) == 2
    assert "line exists; choose another folder with --out, or pass --overwrite" in capsys.readouterr().err
    assert main(["export", "line.pt", "--example", "4x3", "--overwrite"]) == 0


def test_export_writes_a_c_library(saved):
    pytest.importorskip("llvmlite")
    np.save("x.npy", np.ones((1, 3), np.float32))
    assert main(["export", "line.pt", "--example", "x.npy", "--format", "c", "--out", "lib"]) == 0
    assert "int lib(const float *input, float *y, void *workspace);" in (saved / "lib" / "lib.h").read_text()


def test_export_writes_an_onnx_file(saved, capsys):
    pytest.importorskip("onnxruntime")
    import onnxruntime

    assert main(["export", "line.pt", "--example", "4x3", "--dynamic", "--onnx", "line.onnx", "--opset", "18"]) == 0
    assert "line.onnx" in capsys.readouterr().out
    x = np.random.default_rng(0).standard_normal((7, 3), np.float32)
    y = onnxruntime.InferenceSession("line.onnx").run(None, {"input": x})[0]
    wanted = rushlight.load("line.pt", weights_only=False)(rushlight.from_numpy(x)).detach().numpy()
    assert np.allclose(y, wanted, atol=1e-6)
    assert main(["export", "line.pt", "--example", "4x3", "--onnx", "line.onnx"]) == 2
    assert "line.onnx exists; choose another file, or pass --overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["line.pt", "--example", "1x3", "--onnx", "a.onnx", "--opset", "7"], "opset_version=7; hint: use 18 to 24"),
        (["line.pt", "--example", "1x4", "--onnx", "a.onnx"], "mat1 and mat2 shapes cannot be multiplied"),
        (["none.pt", "--example", "1x3"], "none.pt is not a file"),
        (["state.pt", "--example", "1x3"], "save the whole model"),
        (["line.pt", "--example", "1,3"], "neither a shape such as 1x28x28 nor a .npy file"),
        (["line.pt", "--example", "float7:1x3"], "float7 is not a dtype"),
        (["line.pt", "--example", "1x3", "--out", "a-b"], "is not a name that Python can import"),
    ],
)
def test_export_refuses_bad_input(saved, capsys, given, says):
    rushlight.save(rushlight.nn.Linear(3, 2).state_dict(), "state.pt")
    assert main(["export", *given]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
