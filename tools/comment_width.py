"""Fit comments and docstrings into 100 columns: what `ruff format` leaves alone.

    python tools/comment_width.py rushlight tests         # rewrites the files
    python tools/comment_width.py --check rushlight       # lists the files that would change

A trailing comment that would pass column 100 moves to a line of its own above its line, with the
same indentation. Lines that continue it move with it. Comment blocks and docstring paragraphs with
longer lines are wrapped again. Left alone: pragmas (`type: ignore`, `noqa`, `fmt`), doctests, and
indented lines of comments and docstrings: examples, drawings, tables.
"""

import argparse
import ast
import io
import re
import sys
import textwrap
import tokenize
from pathlib import Path

WIDTH = 100
PRAGMA = re.compile(r"#\s*(?:type:|noqa|fmt:|pragma|mypy:|ruff:)")


def multiline_lines(source):
    "The numbers of the lines that end inside a string: a comment above such a line's statement would change the string."
    inside = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING and token.end[0] > token.start[0]:
            inside.update(range(token.start[0], token.end[0] + 1))
    return inside


def wrapped(text, indent, prefix="# "):
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent + prefix,
        subsequent_indent=indent + prefix,
        break_long_words=False,
        break_on_hyphens=False,
    )


def with_comments_moved(source):
    "The source with each trailing comment that is too long on lines of its own above."
    lines = source.splitlines()
    strings = multiline_lines(source)
    trailing = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip():
            trailing[token.start[0]] = token.start[1]
    made, i = [], 0
    while i < len(lines):
        line, number = lines[i], i + 1
        column = trailing.get(number)
        if column is None or number in strings:
            made.append(line)
            i += 1
            continue
        code, comment = line[:column].rstrip(), line[column:]
        extra = i + 1
        # the comment goes on below, aligned
        while extra < len(lines) and re.match(rf" {{{column}}}#", lines[extra]):
            comment += " " + lines[extra].strip().lstrip("# ")
            extra += 1
        pragma = PRAGMA.match(comment)
        if pragma and "  # " in comment:  # `# type: ignore  # words`: the words may move
            kept, _, words = comment.partition("  # ")
            if PRAGMA.match("# " + words):
                made.append(line)
                i += 1
                continue
            code, comment, pragma = f"{code}  {kept}", "# " + words, None
        if pragma or (extra == i + 1 and len(code) + 2 + len(comment) <= WIDTH):
            made.append(line)
            i += 1
            continue
        indent = re.match(" *", code)[0]
        words = comment.lstrip("#").strip()
        # above these stands the block before
        if re.match(r"(?:elif|else|except|finally|case)\b", code.lstrip()):
            made.append(code)
            indent = following_indent(lines, extra, indent)
            made += wrapped(words, indent)
        else:
            made += [*wrapped(words, indent), code]
        i = extra
    return "\n".join(made) + "\n"


def following_indent(lines, at, indent):
    while at < len(lines) and not lines[at].strip():
        at += 1
    return re.match(" *", lines[at])[0] if at < len(lines) else indent + "    "


def with_blocks_wrapped(source):
    "The source with comment blocks wrapped again that have too long lines."
    strings = multiline_lines(source)
    lines, made, i = source.splitlines(), [], 0
    while i < len(lines):
        match = re.match(r"( *)#(?: (?=[^\s])|$)", lines[i])
        if not match or i + 1 in strings or PRAGMA.match(lines[i].strip()):
            made.append(lines[i])
            i += 1
            continue
        indent, end = match[1], i
        while (
            end < len(lines)
            and re.match(rf"{indent}# [^\s]", lines[end])
            and not PRAGMA.match(lines[end].strip())
        ):
            end += 1
        block = lines[i:end] or [lines[i]]
        if any(len(line) > WIDTH for line in block):
            head = re.match(r" *# -- .* -+$", block[0])
            if head and len(block) == 1:  # a heading: shorten its rule
                text = block[0].rstrip("-").rstrip()
                made.append(text + " " + "-" * (WIDTH - len(text) - 1))
            else:
                made += wrapped(" ".join(line.strip().lstrip("# ") for line in block), indent)
        else:
            made += block
        i = max(end, i + 1)
    return "\n".join(made) + "\n"


def with_docstrings_wrapped(source):
    "The source with the paragraphs of docstrings wrapped again that have too long lines."
    lines = source.splitlines()
    nodes = [
        n
        for n in ast.walk(ast.parse(source))
        if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and ast.get_docstring(n, clean=False) is not None
    ]
    for node in sorted(nodes, key=lambda n: -n.body[0].value.lineno):
        constant = node.body[0].value
        first, last = constant.lineno - 1, constant.end_lineno
        text = lines[first:last]
        if all(len(line) <= WIDTH for line in text) or not text[0].lstrip().startswith('"""'):
            continue
        if source_of(text).strip()[3:-3] != constant.value:  # escapes, or code on the same line
            continue
        lines[first:last] = refilled(constant.value, " " * constant.col_offset)
    return "\n".join(lines) + "\n"


def source_of(lines):
    return "\n".join(lines)


def refilled(value, indent):
    "The lines of a docstring, wrapped where they are too long."
    rows = value.split("\n")
    verbatim, inside = [], False  # doctests and their output: from a prompt to the next empty line
    for row in rows:
        inside = bool(row.strip()) and (inside or row.strip().startswith(">>>"))
        verbatim.append(inside)
    made, i = [], 0
    while i < len(rows):
        row = rows[i]
        lead = indent + '"""' if i == 0 else ""
        plain = bool(row.strip()) and not verbatim[i] and (i == 0 or re.match(rf"{indent}\S", row))
        end = i + 1
        while (
            plain and end < len(rows) and not verbatim[end] and re.match(rf"{indent}\S", rows[end])
        ):
            end += 1
        block = rows[i:end]
        too_long = any(
            len(r) + (len(lead) + (3 if len(rows) == 1 else 0) if k == 0 and i == 0 else 0) > WIDTH
            for k, r in enumerate(block)
        )
        if plain and too_long:
            words = " ".join(r.strip() for r in block)
            made += textwrap.wrap(
                words,
                WIDTH,
                initial_indent=lead or indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        else:
            made += [lead + block[0] if i == 0 else block[0], *block[1:]]
        i = end
    if made[-1].strip() and len(made) > 1 or len(made[-1]) + 3 > WIDTH:
        return [*made, indent + '"""']
    return [*made[:-1], (made[-1] if made[-1].strip() else indent) + '"""']


def same_code(old, new):
    "Whether two sources differ in comments and docstrings only."

    def tree(source):
        root = ast.parse(source)
        for node in ast.walk(root):
            if (
                isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                and ast.get_docstring(node, clean=False) is not None
            ):
                node.body[0].value.value = " ".join(node.body[0].value.value.split())
        return ast.dump(root)

    return tree(old) == tree(new)


def main(arguments=None):
    global WIDTH
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 if files would change"
    )
    parser.add_argument("--width", type=int, default=WIDTH, help="columns (default: %(default)s)")
    options = parser.parse_args(arguments)
    WIDTH = options.width
    changed = 0
    for place in options.paths:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            old = path.read_text(encoding="utf-8")
            new = with_docstrings_wrapped(with_blocks_wrapped(with_comments_moved(old)))
            if new == old:
                continue
            if not same_code(old, new):
                print(f"{path}: left alone, its code would change", file=sys.stderr)
                continue
            changed += 1
            print(path)
            if not options.check:
                path.write_text(new, encoding="utf-8")
    return int(options.check and changed > 0)


if __name__ == "__main__":
    sys.exit(main())
