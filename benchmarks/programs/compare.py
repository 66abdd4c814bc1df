#!/usr/bin/env python3
"""compare.py REFERENCE.json OTHER.json: one verdict per program.

crash   the other engine did not run it to the end (or the reference did not)
runs    exit 0, but text or numbers differ
close   same text, every number within rtol 1e-2
same    identical text, or every number within rtol 1e-4
"""

import argparse
import collections
import json
import math
import re
import sys

import prep

NUM = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w])", re.I)
HEX = re.compile(r"0x[0-9a-f]{6,}")
ORDER = ["crash", "runs", "close", "same"]


def tokens(text, masks=()):
    for m in masks:
        text = re.sub(m, "<~>", text, flags=re.M)
    text = HEX.sub("<addr>", text)
    words, numbers, pos = [], [], 0
    for m in NUM.finditer(text):
        words.append(re.sub(r"[\s=\-]+", " ", text[pos : m.start()]).strip())
        numbers.append(m.group(0))
        pos = m.end()
    words.append(re.sub(r"[\s=\-]+", " ", text[pos:]).strip())
    return words, numbers


def last_place(s):
    """Value of one unit in the last printed digit (0 for an integer)."""
    m = re.match(r"[-+]?(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?$", s)
    if not m or "." not in s:
        return 0.0
    return 10.0 ** (int(m.group(3) or 0) - len(m.group(2)))


def distance(a, b, scale=0.0):
    """Relative difference of two printed numbers; one unit in the last printed
    place is no difference, as is noise far below the largest number printed."""
    x, y = float(a), float(b)
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or math.isinf(y):
        return math.inf
    d = abs(x - y)
    ulp = max(last_place(a), last_place(b))
    digits = min(len(re.sub(r"[eE].*|\D", "", s)) for s in (a, b))
    if ulp and d <= 1.001 * ulp and digits >= 4:
        return 0.0
    if d <= 1e-6 and max(abs(x), abs(y)) <= 1e-5:
        return 0.0  # float32 noise around zero
    return d / max(abs(x), abs(y))


def verdict(ref, other, masks=()):
    if ref is None or ref["exit"] != 0:
        return "crash", "the reference did not run"
    if other is None:
        return "crash", "not run"
    if other["exit"] != 0:
        return "crash", f"{other.get('error', '')} @ {other.get('where', '')}"
    wa, na = tokens(ref["stdout"], masks)
    wb, nb = tokens(other["stdout"], masks)
    if wa != wb:
        k = next((i for i, (p, q) in enumerate(zip(wa, wb)) if p != q), min(len(wa), len(wb)))
        p = wa[k] if k < len(wa) else "<end>"
        q = wb[k] if k < len(wb) else "<end>"
        j = next((i for i, (c, d) in enumerate(zip(p, q)) if c != d), 0)
        j = max(0, j - 20)
        return ("runs", f"text differs after number {k} of {len(na)}: {p[j : j + 60]!r} / {q[j : j + 60]!r}")
    worst, at = 0.0, -1
    for i, (a, b) in enumerate(zip(na, nb)):
        d = distance(a, b)
        if d > worst:
            worst, at = d, i
    n = len(na)
    if worst <= 1e-4:
        return "same", f"{n} numbers"
    first = next(i for i, (a, b) in enumerate(zip(na, nb)) if distance(a, b) > 1e-4)
    note = (
        f"{n} numbers, worst rel. diff {worst:.1e} (no {at}: {na[at]} / {nb[at]}), first over 1e-4 no {first}: "
        f"{na[first]} / {nb[first]}"
    )
    return ("close" if worst <= 1e-2 else "runs"), note


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("reference")
    ap.add_argument("other")
    ap.add_argument("--manifest")
    ap.add_argument("--json")
    ap.add_argument("--split", help="only programs whose field `split` says so")
    ap.add_argument("--all", action="store_true", help="count programs missing from OTHER as crashes")
    ap.add_argument("--quiet", action="store_true", help="counts only")
    ap.add_argument("--hide", metavar="SPLIT", help="do not name the programs of this split")
    opt = ap.parse_args()
    _, progs = prep.load_manifest(opt.manifest)
    with open(opt.reference) as f:
        A = {r["id"]: r for r in json.load(f)["programs"]}
    with open(opt.other) as f:
        B = {r["id"]: r for r in json.load(f)["programs"]}
    rows, count = [], collections.Counter()
    for p in progs:
        if opt.split and p.get("split") != opt.split:
            continue
        if p["id"] not in B and not opt.all:
            continue
        v, note = verdict(A.get(p["id"]), B.get(p["id"]), p.get("mask", []))
        # what two correct engines can agree on (set in the manifest when a
        # program amplifies rounding): reaching it counts as full marks
        ceiling = p.get("ceiling", "same")
        full = ORDER.index(v) >= ORDER.index(ceiling)
        rows.append(
            {
                "id": p["id"],
                "category": p["category"],
                "split": p.get("split", ""),
                "verdict": v,
                "ceiling": ceiling,
                "full": full,
                "note": note,
                "wall_ref": A.get(p["id"], {}).get("wall_s"),
                "wall": B.get(p["id"], {}).get("wall_s"),
                "rss_ref": A.get(p["id"], {}).get("rss_mb"),
                "rss": B.get(p["id"], {}).get("rss_mb"),
            }
        )
        count[v] += 1
        if not opt.quiet and not (opt.hide and p.get("split") == opt.hide):
            print(f"{v:6}{'*' if full else ' '} {p['id']:36} {note[:200]}")
    n = len(rows)
    print(
        f"{n} programs: "
        + ", ".join(f"{count[k]} {k}" for k in reversed(ORDER))
        + f"; {sum(r['full'] for r in rows)} at their ceiling (*)"
    )
    for split in sorted({r["split"] for r in rows} - {""}):
        c = collections.Counter(r["verdict"] for r in rows if r["split"] == split)
        if c:
            print(f"  {split}: " + ", ".join(f"{c[k]} {k}" for k in reversed(ORDER)))
    if opt.json:
        with open(opt.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
