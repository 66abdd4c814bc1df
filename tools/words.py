"""Find comments and docstrings that are hard to read: short, with many pronouns that stand for no
noun in sight.

    python tools/words.py                       # file:line: text, for the whole package
    python tools/words.py rushlight/core        # for these files and folders only
    python tools/words.py --count               # the number per folder, and the total
    python tools/words.py --count --limit 300   # exit 1 if the total is over 300

A text is reported if it has under 30 words and at least 3 of the words in PRONOUNS. A comment is a
run of comment lines; a docstring is judged by paragraph.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_WORDS = 30  # texts with this many words or more have room to name their nouns
MIN_PRONOUNS = 3
PRONOUNS = re.compile(
    r"\b(?:it|its|they|them|those|these|what|which|so many|as many|one|others)\b", re.IGNORECASE
)
CODE = re.compile(r"`[^`]*`")


def comments(source):
    "(line, text) of each comment; consecutive comment lines are one text."
    texts, first, last, words = [], None, None, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        alone = not token.line[:column].strip()
        if not (alone and last == line - 1):  # a trailing comment, or a gap: a new text begins
            if words:
                texts.append((first, " ".join(words)))
            first, words = line, []
        words.append(token.string.lstrip("#: "))
        last = line if alone else None
    if words:
        texts.append((first, " ".join(words)))
    return texts


def docstrings(source):
    "(line, text) of each paragraph of each docstring, without doctests."
    texts = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is None:
            continue
        constant = node.body[0].value
        line = constant.lineno
        for paragraph in re.split(r"(\n\s*\n)", constant.value):
            if paragraph.strip() and not paragraph.lstrip().startswith(">>>"):
                lead = len(paragraph) - len(paragraph.lstrip())
                texts.append((line + paragraph[:lead].count("\n"), " ".join(paragraph.split())))
            line += paragraph.count("\n")
    return texts


def is_hard(text):
    prose = CODE.sub(" code ", text)
    return len(prose.split()) < MAX_WORDS and len(PRONOUNS.findall(prose)) >= MIN_PRONOUNS


def found(path):
    "The (line, text) of `path` that are hard to read, by line."
    source = path.read_text(encoding="utf-8")
    return sorted(
        (line, text) for line, text in comments(source) + docstrings(source) if is_hard(text)
    )


def files(places):
    for place in places:
        yield from sorted(place.rglob("*.py")) if place.is_dir() else [place]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[ROOT / "rushlight"], help="files or folders"
    )
    parser.add_argument(
        "--count", action="store_true", help="print the number per folder instead of the texts"
    )
    parser.add_argument("--limit", type=int, help="exit with 1 if more texts than this are found")
    options = parser.parse_args(arguments)
    counts = Counter()
    for path in files(options.paths):
        path = path.resolve()
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for line, text in found(path):
            counts[str(shown.parent)] += 1
            if not options.count:
                print(f"{shown}:{line}: {text}")
    total = sum(counts.values())
    if options.count:
        for folder, number in sorted(counts.items()):
            print(f"{number:5} {folder}")
    print(f"{total:5} texts of under {MAX_WORDS} words with {MIN_PRONOUNS} pronouns or more")
    if options.limit is not None and total > options.limit:
        print(
            f"over the limit of {options.limit}: name the nouns (docs/glossary.md)", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
