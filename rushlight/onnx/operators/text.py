"""Strings, which are arrays of str, and the tables of ai.onnx.ml. Patterns of files are not run."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor

from .table import ML, Floats, Ints, Value, operator

Texts = list[str]


def texts(items: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """An array of objects."""
    return np.array([*items, None], object)[:-1].reshape(shape)


@operator("StringConcat")
def string_concat(x: Value, y: Value) -> np.ndarray:
    """x + y."""
    return np.asarray(x + y, object)


@operator("StringSplit")
def string_split(x: Value, *, delimiter: str = "", maxsplit: int | None = None) -> tuple[np.ndarray, Tensor]:
    """(the parts of each string, padded with "", the number of parts)."""
    parts = [text.split(delimiter or None, -1 if maxsplit is None else maxsplit) for text in x.reshape(-1)]
    most = max(map(len, parts), default=0)
    padded = [part for row in parts for part in row + [""] * (most - len(row))]
    counts = torch.tensor([len(row) for row in parts], dtype=torch.int64).reshape(x.shape)
    return texts(padded, (*x.shape, most)), counts


@operator("StringNormalizer")
def string_normalizer(
    x: Value,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    stopwords: Texts | None = None,
    locale: str = "",
) -> np.ndarray:
    """The strings without stopwords, in upper or lower case."""
    stop = set(stopwords or ()) if is_case_sensitive else {word.lower() for word in stopwords or ()}
    kept = [text for text in x.reshape(-1) if (text if is_case_sensitive else text.lower()) not in stop]
    if case_change_action != "NONE":
        kept = [text.upper() if case_change_action == "UPPER" else text.lower() for text in kept]
    kept = kept or [""]
    return texts(kept, (1, len(kept)) if x.ndim == 2 else (len(kept),))


@operator("TfIdfVectorizer")
def tfidf_vectorizer(
    x: Value,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: Ints,
    ngram_indexes: Ints,
    pool_int64s: Ints | None = None,
    pool_strings: Texts | None = None,
    weights: Floats | None = None,
) -> Tensor:
    """How often each n-gram of the pool occurs in each row, also with items skipped between its items."""
    places = grams(pool_strings or pool_int64s or [], ngram_counts, ngram_indexes)
    weight = dict(zip(ngram_indexes, weights or [1.0] * len(ngram_indexes)))
    rows = x.tolist() if x.ndim == 2 else [x.tolist()]
    out = np.zeros((len(rows), max(ngram_indexes) + 1), np.float32)
    for row, counts in zip(rows, out):
        for size in range(min_gram_length, max_gram_length + 1):
            for skip in range(1, max_skip_count + 2 if size > 1 else 2):
                for start in range(len(row) - (size - 1) * skip):
                    place = places.get(tuple(row[start : start + size * skip : skip]))
                    if place is not None:
                        counts[place] += 1
    scale = np.array([weight.get(i, 0.0) for i in range(out.shape[1])], np.float32)
    if mode != "TF":
        out = (np.minimum(out, 1) if mode == "IDF" else out) * scale
    return torch.as_tensor(out.reshape(-1) if x.ndim == 1 else out)


def grams(pool: list[Any], counts: Ints, indexes: Ints) -> dict[tuple[Any, ...], int]:
    """{n-gram: its place in the output}; the pool has all 1-grams, then all 2-grams, and so on."""
    found, i = {}, 0
    for size, (start, end) in enumerate(zip(counts, [*counts[1:], len(pool)]), 1):
        for at in range(start, end, size):
            found[tuple(pool[at : at + size])] = indexes[i]
            i += 1
    return found


@operator("LabelEncoder", domain=ML)
def label_encoder(
    x: Value,
    *,
    keys_int64s: Ints | None = None,
    keys_strings: Texts | None = None,
    keys_floats: Floats | None = None,
    keys_tensor: np.ndarray | None = None,
    values_int64s: Ints | None = None,
    values_strings: Texts | None = None,
    values_floats: Floats | None = None,
    values_tensor: np.ndarray | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_float: float = -0.0,
    default_tensor: np.ndarray | None = None,
) -> Any:
    """The value of each key; a default for other elements."""
    keys = next(k for k in (keys_int64s, keys_strings, keys_floats, keys_tensor) if k is not None)
    choices: list[tuple[Any, Any, Any]] = [
        (values_int64s, default_int64, np.int64),
        (values_strings, default_string, object),
        (values_floats, default_float, np.float32),
        (values_tensor, -1, getattr(values_tensor, "dtype", None)),
    ]
    values, default, dtype = next(choice for choice in choices if choice[0] is not None)
    default = default_tensor.reshape(-1)[0] if default_tensor is not None else default
    table = {key_of(key): value for key, value in zip(np.asarray(keys).tolist(), np.asarray(values).tolist())}
    out = [table.get(key_of(item), default) for item in np.asarray(x).reshape(-1).tolist()]
    return texts(out, x.shape).astype(dtype)


def key_of(item: Any) -> Any:
    """A key of a dict: all nans are equal."""
    return "nan" if isinstance(item, float) and item != item else item


@operator("Binarizer", domain=ML)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    """1 where x > threshold, else 0."""
    return (x > threshold).to(x.dtype)


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(x: Tensor, at: Ints) -> Tensor:
    """The elements of the last dimension at indices."""
    out = x.index_select(-1, torch.tensor(at))
    return out.reshape(1, -1) if x.ndim == 1 else out
