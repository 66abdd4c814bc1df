"""Find comments and docstrings that are hard to read: short texts with many pronouns, and phrases that hide a plain
word.

    python tools/words.py                       # file:line: text, for the whole package
    python tools/words.py rushlight/core        # for these files and folders only
    python tools/words.py --count               # the number per folder, and the total
    python tools/words.py --count --limit 300   # exit 1 if more than 300 texts are hard to read
    python tools/words.py --phrases             # the same for the phrases in PHRASES

A text is hard to read if it has under 30 words and at least 3 of the words in PRONOUNS. A comment is a run of comment
lines; a docstring is judged by paragraph.
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
PRONOUNS = re.compile(r"\b(?:it|its|they|them|those|these|what|which|so many|as many|one|others)\b", re.IGNORECASE)
# phrase -> what to write instead
PHRASES = {
    r"so many": "the number of ...",
    r"nobody|somebody|whoever": "the code, caller or object",
    r"kin|the like|its likes": "and so on",
    r"says? so|said so": "raises an error, warns, returns True",
    r"unless told": "by default",
    r"asks?|wants?": "reads, calls, needs",
    r"has a say|have a say": "is called",
    r"lets? go": "frees",
    r"hand(?:s|ed)? (?:on|out|over)": "passes, returns",
    r"pays? nothing": "has no overhead",
    r"in the midst|goes along with": "during, with",
    r"(?<!there )(?:is|are) no(?! longer)(?= \w)": "is not a ..., are not ...",
}
ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
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


def has_phrase(text):
    return ANY_PHRASE.search(CODE.sub(" code ", text)) is not None


def found(path, reported=is_hard):
    "The (line, text) of `path` for which `reported` is true, by line."
    source = path.read_text(encoding="utf-8")
    return sorted((line, text) for line, text in comments(source) + docstrings(source) if reported(text))


def files(places):
    for place in places:
        yield from sorted(place.rglob("*.py")) if place.is_dir() else [place]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "rushlight"], help="files or folders")
    parser.add_argument("--count", action="store_true", help="print the number per folder instead of the texts")
    parser.add_argument("--limit", type=int, help="exit with 1 if more texts than this are found")
    parser.add_argument("--phrases", action="store_true", help="report the phrases in PHRASES, not the pronouns")
    options = parser.parse_args(arguments)
    counts = Counter()
    for path in files(options.paths):
        path = path.resolve()
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for line, text in found(path, has_phrase if options.phrases else is_hard):
            counts[str(shown.parent)] += 1
            if not options.count:
                print(f"{shown}:{line}: {text}")
    total = sum(counts.values())
    if options.count:
        for folder, number in sorted(counts.items()):
            print(f"{number:5} {folder}")
    what = (
        "texts with a phrase in PHRASES"
        if options.phrases
        else f"texts of under {MAX_WORDS} words with {MIN_PRONOUNS} pronouns or more"
    )
    print(f"{total:5} {what}")
    if options.limit is not None and total > options.limit:
        print(f"over the limit of {options.limit}: name the nouns (docs/glossary.md)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
