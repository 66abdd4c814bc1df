"""Handwritten digits from a CSV file: a row holds 64 pixels of 0 to 16 and the label (see data/README.md)."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import rushlight as torch
from rushlight.demo import BadInput

SHIPPED = Path(__file__).parents[1] / "data" / "digits.csv.gz"
SIDE, MAX_PIXEL, CLASSES = 8, 16, 10
MIN_DIGITS = 10  # least number of digits in a file: both parts of the split need some


def read_digits(path: Path = SHIPPED) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 1, 8, 8), float32 from 0 to 1, and labels (N,), int64; by default the data in the package.

    Raises `BadInput` for a file that is missing, cut short or of another format.
    """
    lines = read_text(path).splitlines()
    rows = [parse(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    if len(rows) < MIN_DIGITS:
        raise BadInput(f"{path} contains {len(rows)} digits; the demo needs at least {MIN_DIGITS}")
    table = torch.tensor(rows)  # (N, 65)
    images = table[:, :-1].float() / MAX_PIXEL
    return images.reshape(-1, 1, SIDE, SIDE), table[:, -1]


def read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except OSError as error:
        reason = error.strerror or f"damaged: {error}"
        raise BadInput(f"cannot read the data file {path}: {reason}") from None
    except (EOFError, zlib.error):
        raise BadInput(f"cannot read the data file {path}: it is truncated or damaged; download it again") from None
    except UnicodeDecodeError:
        raise BadInput(f"cannot read the data file {path}: it is not text; a CSV file is needed") from None


def parse(line: str, place: str) -> list[int]:
    fields = line.split(",")
    if len(fields) != SIDE * SIDE + 1:
        raise BadInput(f"{place}: {len(fields)} numbers instead of 64 pixels and a label; is the file truncated?")
    try:
        row = [int(field) for field in fields]
    except ValueError:
        raise BadInput(f"{place}: not a row of integers; is the file truncated?") from None
    if not all(0 <= pixel <= MAX_PIXEL for pixel in row[:-1]) or not 0 <= row[-1] < CLASSES:
        raise BadInput(
            f"{place}: a number of this row is out of range: pixels must be 0 to {MAX_PIXEL}, labels 0 to {CLASSES - 1}"
        )
    return row
