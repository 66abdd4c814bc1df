"""Measure a library with torch's API against torch, on torch's own test databases.

python conformance.py --candidate rushlight --suite ops --only '^nn\\.functional'
"""

import os

# One thread in each worker: the workers share the cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import collections
import dataclasses
import json
import re
import sys
import time
import warnings

import torch
from runner import FAILURES, Task, run
from suites import SUITES

QUICK_SAMPLES = 4


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidate", default="rushlight", help="module to measure")
    parser.add_argument("--suite", default="all", help=f"all, or some of {','.join(SUITES)}")
    parser.add_argument("--only", metavar="REGEX", help="entries whose name matches")
    parser.add_argument("--columns", help="only these columns, separated by commas")
    parser.add_argument("--quick", action="store_true", help="few samples, no complex or integers")
    parser.add_argument("--max-samples", type=int, metavar="N", help="samples for each column")
    parser.add_argument("--time-limit", type=float, default=60, metavar="S", help="for each column")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes")
    parser.add_argument("--json", metavar="FILE", help="write everything to a file")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="failures of each kind")
    options = parser.parse_args(arguments)
    options.suites = list(SUITES) if options.suite == "all" else options.suite.split(",")
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    if options.quick and options.max_samples is None:
        options.max_samples = QUICK_SAMPLES
    return options


def plan(options):
    """The tasks to run and, by suite and reason, the entries that are out of scope."""
    tasks = []
    skipped = collections.defaultdict(list)
    wanted = options.columns.split(",") if options.columns else None
    for name in options.suites:
        suite = SUITES[name]
        for index, entry in enumerate(suite.entries()):
            if options.only and not re.search(options.only, entry.name):
                continue
            if entry.skip:
                skipped[name, entry.skip].append(entry.title)
                continue
            for column in suite.columns(entry):
                if options.quick and column not in suite.QUICK:
                    continue
                if wanted is None or column in wanted:
                    tasks.append(Task(name, index, column))
    return tasks, skipped


def position(record):
    """Where a record stands in the report."""
    columns = SUITES[record.suite].COLUMNS
    suite = list(SUITES).index(record.suite)
    return suite, record.name, record.variant, columns.index(record.column)


def summarize(records):
    """Counts by suite and column, in the order in which the suites name their columns."""
    counts = collections.defaultdict(collections.Counter)
    for record in records:
        counts[record.suite, record.column][record.status] += 1
    rows = []
    for name, suite in SUITES.items():
        for column in suite.COLUMNS:
            count = counts.get((name, column))
            if count:
                applicable = count.total() - count["n/a"]
                row = {"suite": name, "column": column, "applicable": applicable}
                rows.append(row | {kind: count[kind] for kind in ("pass", *FAILURES, "n/a")})
    return rows


def print_summary(rows):
    print(f"{'suite':<11} {'column':<16} {'passed / applicable':>20}", end="")
    print("".join(f"{kind:>9}" for kind in ("", *FAILURES)))
    for row in rows:
        if row["applicable"]:
            share = 100 * row["pass"] / row["applicable"]
            print(f"{row['suite']:<11} {row['column']:<16}", end=" ")
            print(f"{row['pass']:>11} / {row['applicable']:<6}", end=" ")
            print(f"{share:>7.1f}%", "".join(f"{row[kind]:>9}" for kind in FAILURES))


def print_families(records):
    """How many operators of each family pass all their columns, and how many pass any."""
    operators = collections.defaultdict(list)
    for record in records:
        if record.suite == "ops" and record.status != "n/a":
            operators[record.family, record.title].append(record.status == "pass")
    families = collections.defaultdict(list)
    for (family, _), passes in operators.items():
        families[family].append(passes)
    if len(families) > 1:
        print(f"\n{'operators':<32}{'all columns pass':>18}{'some':>8}{'of':>8}")
        for family, members in sorted(families.items()):
            whole, some = sum(map(all, members)), sum(map(any, members))
            print(f"{family:<32}{whole:>18}{some:>8}{len(members):>8}")


def print_skipped(skipped):
    if skipped:
        print("\nout of scope")
    for (suite, reason), titles in sorted(skipped.items()):
        print(f"  {suite:<11} {len(titles):>4}  {reason}")


def print_missing(records, show):
    """Missing names, those that hold up most columns first."""
    names = collections.Counter(r.message for r in records if r.status == "missing")
    if names:
        print(f"\nmissing: {len(names)} names")
    for name, count in names.most_common(show):
        print(f"  {count:>4} columns  {name}")
    if len(names) > show:
        print(f"  ... and {len(names) - show} more")


def print_failures(records, kind, show):
    """Each failing entry once, with the first failure of its first failing column."""
    entries = collections.defaultdict(list)
    for record in records:
        if record.status == kind:
            entries[record.suite, record.title].append(record)
    if entries:
        print(f"\n{kind}: {len(entries)} entries")
    for (suite, title), failed in list(entries.items())[:show]:
        first = failed[0]
        columns = ", ".join(record.column for record in failed)
        print(f"  {suite:<11} {title} [{columns}]")
        print(f"      {first.passed} of {first.applicable} samples pass; {first.message}")
    if len(entries) > show:
        print(f"  ... and {len(entries) - show} more")


def main(arguments=None):
    options = parse(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.path.insert(0, os.getcwd())
    start = time.time()
    tasks, skipped = plan(options)

    def progress(done):
        if sys.stderr.isatty() and (done % 20 == 0 or done == len(tasks)):
            print(f"\r{done}/{len(tasks)} columns", end="", file=sys.stderr, flush=True)

    records = run(
        tasks,
        options.candidate,
        jobs=options.jobs,
        limit=options.time_limit,
        max_samples=options.max_samples,
        progress=progress,
    )
    records.sort(key=position)
    rows = summarize(records)
    print(f"\n{options.candidate} against torch {torch.__version__}\n")
    print_summary(rows)
    print_skipped(skipped)
    print_families(records)
    print_missing(records, options.show)
    for kind in ("wrong", "raises"):
        print_failures(records, kind, options.show)
    print(f"\n{len(tasks)} columns in {time.time() - start:.0f} s")
    if options.json:
        report = {
            "candidate": options.candidate,
            "torch": torch.__version__,
            "quick": options.quick,
            "max_samples": options.max_samples,
            "summary": rows,
            "out_of_scope": [
                {"suite": suite, "reason": reason, "entries": titles}
                for (suite, reason), titles in sorted(skipped.items())
            ],
            "records": [dataclasses.asdict(record) for record in records],
        }
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
