"""Find texts that are hard to read: short texts with many pronouns, and phrases that hide a plain word.

    python tools/words.py                       # file:line: text, for the package, README.md and docs
    python tools/words.py rushlight/core        # for these files and folders only
    python tools/words.py --count               # the number per folder, and the totals
    python tools/words.py --count --pronouns 3 --phrases 300   # exit 1 if comments have more texts of a kind

Texts are comments, paragraphs of docstrings, error messages and warnings, and paragraphs of Markdown. A text has many
pronouns if it has under 30 words and at least 3 of the words in PRONOUNS; this is tested for comments and docstrings.
PHRASES are tested for all texts. Messages and Markdown may have none.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ["rushlight", "README.md", "CONTRIBUTING.md", "docs"]
UNREAD = {"docs/project/engineering-log.md"}  # a diary
MAX_WORDS = 30  # texts with this many words or more have room to name their nouns
MIN_PRONOUNS = 3
PRONOUNS = re.compile(r"\b(?:it|its|they|them|those|these|what|which|so many|as many|one|others)\b", re.IGNORECASE)
# phrase -> the plain wording
PHRASES = {
    r"so many|(?<!times )as many(?! \w+ as)": "the number of ...",
    r"nobody|somebody|whoever|who (?:asks|wants|looks|needs|does|knows)": "the code, caller, object or reader",
    r"kin|the like|its likes?": "and so on",
    r"says? so|said so|says (?:what|which|how|when|where|who|whether|of|nothing)": "raises, returns, defines",
    r"tells (?:what|which|how|when|where|whether)": "shows, returns",
    r"told(?! apart)": "given; by default",
    r"asks|asked for|wants": "reads, calls, needs",
    r"has a say|have a say": "is called",
    r"lets? go": "frees",
    r"hand(?:s|ed) (?:on|out|over)": "passes, returns",
    r"pays? nothing": "has no overhead",
    r"in the midst|goes along with": "during, with",
    r"goes on|go on(?! to)": "continues",
    r"anew": "again",
    r"(?<!there )(?:is|are) no(?! longer)(?= \w)": "is not a ..., are not ...",
    r"(?:that|those) of": "the noun again",
    r"what (?:is|are|was|were|has|have|it|they|lies|stands|comes|follows|does|do)(?![^.;:]*\?)": "the values that ...",
    r"(?:of|from|by|on|for|with) what(?![^.;:]*\?)": "the values that ...",
    r"(?:is|are|was|were) (?:not )?there(?! (?:any|a|an|no)\b|\?)": "exists, is missing, is supported",
    r"where (?:there (?:is|are)|it does|it is not|not)": "if ...",
    r"but for": "except",
    r"as (?:it|they) lies?|lies? (?:so|as|side|in (?:order|C|memory)|innermost|together|apart|beside|one)": "the layout",
    r"knows? (?:no|nothing|of|by)": "has, uses",
    r"put off": "deferred",
}
ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
CODE = re.compile(r"`+[^`]*`+|https?://\S+")
# torch's own sentences: programs and searches depend on them
TORCH = re.compile(
    r"than that of the original Tensor|match that of input except|same as that of the input tensor|says nothing of the base"
)
# functions whose arguments are shown to users
MESSAGES = {
    *("explain", "warn", "warn_once", "value_error", "runtime_error", "type_error", "index_error", "key_error"),
    *("not_implemented_error", "assertion_error", "attribute_error", "overflow_error"),
    *("add_argument", "add_parser"),
}
Text = tuple[int, str, str]  # line, kind, text


def comments(source: str) -> Iterator[Text]:
    """Each comment; consecutive comment lines are one text."""
    first, last, words = 0, None, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        alone = not token.line[:column].strip()
        if not (alone and last == line - 1):  # a trailing comment, or a gap: a new text begins
            if words:
                yield first, "comment", " ".join(words)
            first, words = line, []
        words.append(token.string.lstrip("#: "))
        last = line if alone else None
    if words:
        yield first, "comment", " ".join(words)


def docstring(node: ast.AST) -> Iterator[Text]:
    """Each paragraph of the node's docstring, without doctests."""
    if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    if ast.get_docstring(node, clean=False) is None:
        return
    constant = node.body[0].value
    line = constant.lineno
    for paragraph in re.split(r"(\n\s*\n)", constant.value):
        if paragraph.strip() and not paragraph.lstrip().startswith(">>>"):
            lead = len(paragraph) - len(paragraph.lstrip())
            yield line + paragraph[:lead].count("\n"), "comment", " ".join(paragraph.split())
        line += paragraph.count("\n")


def message(node: ast.AST) -> Iterator[Text]:
    """Each text of a call that raises an error, warns, or describes an option."""
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in MESSAGES or name.endswith(("Error", "Warning")):
        named = [k.value for k in node.keywords if k.arg in ("hint", "help", "description")]
        for argument in [*node.args, *named]:
            for text in literals(argument):
                yield argument.lineno, "message", text


def literals(node: ast.AST) -> Iterator[str]:
    """The texts of an expression: both branches of a condition; a placeholder for each value in an f-string."""
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.JoinedStr(parts):
            yield "".join([p.value if isinstance(p, ast.Constant) else "`x`" for p in parts])
        case ast.IfExp(_, body, other):
            yield from [*literals(body), *literals(other)]
        case ast.BinOp(left, ast.Add(), right):
            yield " ".join([*literals(left), *literals(right)])


def python_texts(source: str) -> Iterator[Text]:
    yield from comments(source)
    for node in ast.walk(ast.parse(source)):
        yield from docstring(node)
        yield from message(node)


def markdown_texts(source: str) -> Iterator[Text]:
    """Each paragraph, list item, and cell of a table, without code blocks and headings."""
    source = re.sub(r"^( *)```.*?^\1```", lambda found: "\n" * found[0].count("\n"), source, flags=re.M | re.S)
    line = 1
    for block in re.split(r"(\n(?=\s*\n|\s*[-*|#]\s?|\s*\d+\. ))", source):
        for text in block.split("|") if block.lstrip().startswith("|") else [block]:
            if text.strip() and not text.lstrip().startswith("#"):
                yield line + block[: len(block) - len(block.lstrip())].count("\n"), "page", " ".join(text.split())
        line += block.count("\n")


def texts(path: Path) -> list[Text]:
    """The texts of a file, by line."""
    source = path.read_text(encoding="utf-8")
    return sorted((python_texts if path.suffix == ".py" else markdown_texts)(source))


def without_code(text: str) -> str:
    return CODE.sub(" code ", TORCH.sub("", text))


def has_pronouns(text: str) -> bool:
    prose = without_code(text)
    return len(prose.split()) < MAX_WORDS and len(PRONOUNS.findall(prose)) >= MIN_PRONOUNS


def has_phrase(text: str) -> bool:
    return ANY_PHRASE.search(without_code(text)) is not None


def kinds(kind: str, text: str) -> Iterator[str]:
    """The faults of a text: "pronouns", "phrases", or a phrase in a "message" or on a "page"."""
    if kind == "comment" and has_pronouns(text):
        yield "pronouns"
    if has_phrase(text):
        yield "phrases" if kind == "comment" else kind


def files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        found = sorted([*place.rglob("*.py"), *place.rglob("*.md")]) if place.is_dir() else [place]
        for path in found:
            inside = path.resolve()
            shown = inside.relative_to(ROOT).as_posix() if inside.is_relative_to(ROOT) else ""
            if shown not in UNREAD and not (shown.startswith("docs/") and path.suffix == ".py"):
                yield inside


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / p for p in PLACES], help="files or folders")
    parser.add_argument("--count", action="store_true", help="print the number per folder instead of the texts")
    parser.add_argument("--pronouns", type=int, help="exit with 1 if more comments have many pronouns")
    parser.add_argument("--phrases", type=int, help="exit with 1 if more comments have a phrase, or any other text has")
    options = parser.parse_args(arguments)
    folders: Counter[tuple[str, str]] = Counter()
    for path in files(options.paths):
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for line, kind, text in texts(path):
            for fault in kinds(kind, text):
                folders[str(shown.parent), fault] += 1
                if not options.count:
                    print(f"{shown}:{line}: {fault}: {text}")
    if options.count:
        for (folder, fault), number in sorted(folders.items()):
            print(f"{number:5} {fault} in {folder}")
    totals = {fault: sum([n for (_, f), n in folders.items() if f == fault]) for fault in LIMITED}
    for fault, number in totals.items():
        print(f"{number:5} {LIMITED[fault]}")
    limits = {"pronouns": options.pronouns, "phrases": options.phrases}
    if options.phrases is not None:
        limits |= {"message": 0, "page": 0}
    over = [fault for fault, most in limits.items() if most is not None and totals[fault] > most]
    for fault in over:
        print(
            f"over the limit of {limits[fault]}: {LIMITED[fault]}; name the nouns (docs/glossary.md)", file=sys.stderr
        )
    return 1 if over else 0


# fault -> the line of its total
LIMITED = {
    "pronouns": f"comments and docstrings of under {MAX_WORDS} words with {MIN_PRONOUNS} pronouns or more",
    "phrases": "comments and docstrings with a phrase in PHRASES",
    "message": "messages with a phrase in PHRASES",
    "page": "paragraphs of pages with a phrase in PHRASES",
}


if __name__ == "__main__":
    sys.exit(main())
