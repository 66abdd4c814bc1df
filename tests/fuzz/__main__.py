"""Random programs, by torch and by rushlight: `python tests/fuzz eager --seconds 60`.

Kinds: eager, transforms, compiled, layouts; `all` runs each for so many seconds. The seed is printed, and gives the
same programs again. Exit status 1 if more answers than `--share` of the programs are wrong: none, by default."""

from __future__ import annotations

import argparse
import importlib
import random
import sys

import harness

KINDS = ("eager", "transforms", "compiled", "served", "layouts", "sparse", "trainings")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*KINDS, "all"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, help="run so many programs, however long they take")
    parser.add_argument("--seed", type=int, default=None, help="a fresh one by default")
    parser.add_argument("--all-kinds", action="store_true", help="minimise and show what is refused or accepted, too")
    parser.add_argument("--share", type=float, default=0.0, help="the share of wrong answers that is no failure")
    parser.add_argument("--show", type=int, default=40, help="how many classes of divergences are shown")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    shown = ("wrong", "refused", "accepted", "rounding") if args.all_kinds else ("wrong",)
    failed = False
    for kind in KINDS if args.kind == "all" else (args.kind,):
        print(f"{kind}: seed {seed}", flush=True)
        fuzzer = importlib.import_module(kind)
        sides = getattr(fuzzer, "sides", harness.torch_and_ours)()
        report = harness.fuzz(
            fuzzer.program,
            args.seconds,
            seed,
            args.programs,
            shown,
            lambda report: print(f"  ... {report.line()}", file=sys.stderr, flush=True),
            sides,
        )
        print(f"{kind}: {report.line()}", flush=True)
        for (what, ops), texts in sorted(report.classes.items(), key=lambda pair: -len(pair[1]))[: args.show]:
            text = min(texts, key=len)
            print(f"\n{what} x{len(texts)}: {ops}\n" + "\n".join(f"    {line}" for line in text.split("\n")))
            for side in () if "crashed" in what else sides:
                made = harness.run(text, side)
                print(f"  {side.name}: {made.error or made.leaves}"[:600])
        # in a short search one program is more than the share; it is printed, and is no failure alone
        failed |= report.kinds["wrong"] > max(args.share * report.programs, args.share > 0)
        failed |= any("crashed" in kind and kind != "torch crashed" for kind in report.kinds)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
