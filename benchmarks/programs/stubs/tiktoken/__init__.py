"""A stand-in for tiktoken (its vocabularies are downloads).

Splits text roughly as GPT-2 does (words with their leading blank, punctuation)
and numbers the pieces by a checksum; decoding remembers what was encoded.
"""

import re
import zlib

_EOT = "<|endoftext|>"
_PIECES = re.compile(r" ?\w+| ?[^\w\s]+|\s+")
_seen = {}


class Encoding:
    name = "stub"
    n_vocab = 50257
    eot_token = 50256
    max_token_value = 50256

    def __init__(self, *a, **k):
        pass

    def _id(self, piece):
        i = zlib.crc32(piece.encode()) % 50256
        _seen.setdefault(i, piece)
        return i

    def encode_ordinary(self, text):
        return [self._id(p) for p in _PIECES.findall(text)]

    def encode(self, text, allowed_special=(), disallowed_special=()):
        out = []
        for part in re.split("(" + re.escape(_EOT) + ")", text):
            if part == _EOT and (allowed_special == "all" or _EOT in allowed_special):
                out.append(self.eot_token)
            else:
                out.extend(self.encode_ordinary(part))
        return out

    def decode(self, ids):
        return "".join(_EOT if int(i) == self.eot_token else _seen.get(int(i), f" <{int(i)}>") for i in ids)


def get_encoding(name):
    return Encoding()


def encoding_for_model(name):
    return Encoding()
