"""Reads manifest.toml and lays one program out in a sandbox directory.

The programs' source is never stored here: it is read from a checkout directory
(`--anchors DIR`, or the environment variable PROGRAMS_ANCHORS).
"""

import ast
import fnmatch
import json
import os
import re
import shutil

import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
CELL = "# %% [cell {}]"
CELL_RE = re.compile(r"^# %% \[cell (\d+)\]$", re.M)


class PrepError(Exception):
    pass


def load_manifest(path=None):
    with open(path or os.path.join(HERE, "manifest.toml"), "rb") as f:
        m = tomllib.load(f)
    defaults = m.get("defaults", {})
    out = []
    for p in m["program"]:
        q = dict(defaults)
        q.update(p)
        repo = m["repos"][q["repo"]]
        q["dir"] = repo["dir"]
        q["commit"] = repo.get("commit", "")
        for name, code in m.get("snippets", {}).items():
            if "append" in q:
                q["append"] = q["append"].replace("@@" + name + "@@", code)
        out.append(q)
    ids = [p["id"] for p in out]
    dup = {i for i in ids if ids.count(i) > 1}
    if dup:
        raise PrepError(f"duplicate ids: {sorted(dup)}")
    return m, out


def notebook_source(text):
    """Code cells joined; lines that are shell or magic commands dropped."""
    nb = json.loads(text)
    parts = []
    for i, cell in enumerate(nb["cells"]):
        if cell["cell_type"] != "code":
            continue
        src = cell["source"]
        src = src if isinstance(src, str) else "".join(src)
        lines = []
        for ln in src.split("\n"):
            st = ln.lstrip()
            if st.startswith("%%"):
                continue
            if st.startswith(("!", "%")):
                ln = ln[: len(ln) - len(st)] + "pass  # magic"
            lines.append(ln)
        parts.append(CELL.format(i) + "\n" + "\n".join(lines).rstrip())
    return "\n\n".join(parts) + "\n"


def echo_cells(source):
    """Wrap the last expression of each cell, so that it prints as in a notebook."""
    marks = list(CELL_RE.finditer(source))
    out = []
    for k, m in enumerate(marks):
        end = marks[k + 1].start() if k + 1 < len(marks) else len(source)
        body = source[m.end() + 1 : end].rstrip()
        out.append(m.group(0))
        try:
            tree = ast.parse(body)
        except SyntaxError:
            out.append(body + "\n")
            continue
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not body.rstrip().endswith(";"):
            node = tree.body[-1]
            lines = body.split("\n")
            a, b = node.lineno - 1, node.end_lineno - 1
            ca = len(lines[a].encode()[: node.col_offset].decode())
            cb = len(lines[b].encode()[: node.end_col_offset].decode())
            called = node.value
            name = ast.unparse(called.func) if isinstance(called, ast.Call) else ""
            if name != "print":
                lines[b] = lines[b][:cb] + ")" + lines[b][cb:]
                lines[a] = lines[a][:ca] + "__show__(" + lines[a][ca:]
            body = "\n".join(lines)
        out.append(body + "\n")
    return "\n".join(out)


def apply_edits(text, edits, regex, where):
    for old, new in edits:
        if old not in text:
            raise PrepError(f"{where}: edit does not apply: {old[:70]!r}")
        text = text.replace(old, new)
    for pat, new in regex:
        text, n = re.subn(pat, new, text, flags=re.M)
        if not n:
            raise PrepError(f"{where}: regex edit does not apply: {pat[:70]!r}")
    return text


def _tree(base):
    for dirpath, dirs, files in os.walk(base):
        dirs[:] = sorted(d for d in dirs if d not in (".git", "__pycache__"))
        for f in sorted(files):
            yield os.path.relpath(os.path.join(dirpath, f), base)


def prepare(prog, anchors, box):
    """Lay the program out under `box`; returns what run.py needs to start it."""
    repo = os.path.join(anchors, prog["dir"])
    if not os.path.isdir(repo):
        raise PrepError(f"no checkout of {prog['repo']} at {repo}")
    root = os.path.join(box, prog["dir"])
    want = [prog["path"]] + list(prog.get("copy", []))
    globs = [w for w in want if any(c in w for c in "*?[")]
    for w in want:
        if w in globs:
            continue
        src, dst = os.path.join(repo, w), os.path.join(root, w)
        if os.path.isdir(src):
            for f in _tree(src):
                os.makedirs(os.path.dirname(os.path.join(dst, f)), exist_ok=True)
                shutil.copy(os.path.join(src, f), os.path.join(dst, f))
        elif os.path.isfile(src):
            os.makedirs(os.path.dirname(dst), exist_ok=True)
            shutil.copy(src, dst)
        else:
            raise PrepError(f"{prog['repo']} has no {w}")
    if globs:
        for f in _tree(repo):
            if any(fnmatch.fnmatch(f, g) for g in globs):
                dst = os.path.join(root, f)
                os.makedirs(os.path.dirname(dst), exist_ok=True)
                shutil.copy(os.path.join(repo, f), dst)

    cwd = os.path.join(root, prog.get("cwd", os.path.dirname(prog["path"])))
    os.makedirs(cwd, exist_ok=True)

    # files of other checkouts (real data such as names.txt), relative to cwd
    for src, dst in prog.get("files", []):
        s = os.path.join(anchors, src)
        if not os.path.isfile(s):
            raise PrepError(f"missing data file {src}")
        d = os.path.join(cwd, dst)
        os.makedirs(os.path.dirname(d), exist_ok=True)
        head = prog.get("files_head_bytes", 0)
        if head:
            with open(s, "rb") as f, open(d, "wb") as g:
                g.write(f.read(head))
        else:
            shutil.copy(s, d)
    for d in prog.get("mkdirs", []):
        os.makedirs(os.path.join(cwd, d), exist_ok=True)
    if prog.get("make"):
        import makedata

        for call in prog["make"]:
            name, *args = call
            getattr(makedata, name)(cwd, *args)

    # the main file
    path = os.path.join(root, prog["path"])
    with open(path, encoding="utf-8") as f:
        text = f.read()
    is_nb = path.endswith(".ipynb")
    if is_nb:
        text = notebook_source(text)
    text = apply_edits(text, prog.get("replace", []), prog.get("resub", []), prog["path"])
    if is_nb:
        if prog.get("echo", True):
            text = echo_cells(text)
        script = re.sub(r"[^A-Za-z0-9_.]+", "_", path[len(root) + 1 : -len(".ipynb")])
        script = os.path.join(cwd, script.replace("/", "_") + "_nb.py")
    else:
        script = path
    with open(script, "w", encoding="utf-8") as f:
        f.write(text)
    for other, edits in prog.get("replace_in", {}).items():
        p = os.path.join(root, other)
        with open(p, encoding="utf-8") as f:
            t = f.read()
        t = apply_edits(t, edits, [], other)
        with open(p, "w", encoding="utf-8") as f:
            f.write(t)
    for name, content in prog.get("write", {}).items():
        p = os.path.join(cwd, name)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        with open(p, "w", encoding="utf-8") as f:
            f.write(content)

    extra = {}
    for key in ("prepend", "append"):
        extra[key] = None
        if prog.get(key):
            extra[key] = os.path.join(box, f"_{key}.py")
            with open(extra[key], "w", encoding="utf-8") as f:
                f.write(prog[key])

    stubs = os.path.join(box, "_stubs")
    os.makedirs(stubs)
    for s in prog.get("stubs", []):
        for cand in (s, s + ".py"):
            src = os.path.join(HERE, "stubs", cand)
            if os.path.isdir(src):
                shutil.copytree(src, os.path.join(stubs, cand), ignore=shutil.ignore_patterns("__pycache__"))
                break
            if os.path.isfile(src):
                shutil.copy(src, stubs)
                break
        else:
            with open(os.path.join(HERE, "stubs", "_blank.py")) as f:
                blank = f.read()
            with open(os.path.join(stubs, s + ".py"), "w") as f:
                f.write(blank)
    pythonpath = [stubs] + [os.path.join(root, p) for p in prog.get("pythonpath", [])]
    for other, copy in prog.get("libs", {}).items():
        # a package of another checkout: "<dir>" = "<package path inside it>"
        src = os.path.join(anchors, other, copy)
        dst = os.path.join(box, "_libs", os.path.basename(copy))
        for f in _tree(src):
            if f.endswith(".py"):
                os.makedirs(os.path.dirname(os.path.join(dst, f)), exist_ok=True)
                shutil.copy(os.path.join(src, f), os.path.join(dst, f))
        pythonpath.append(os.path.join(box, "_libs"))
    return dict(script=script, cwd=cwd, pythonpath=pythonpath, **extra)
