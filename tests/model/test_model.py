#!/usr/bin/env python3
"""Checks the models of the protocol exhaustively, and that the checker finds every mistake put into them. Needs spin and a C compiler.

    test_model.py [WORDS]     only the cases whose name contains WORDS; a mistake's counter-example is shown then
"""
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cases import HOLDS, MISTAKES, PROMISES  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LONG = os.environ.get("SILT_TEST_LONG") == "1"
FEWEST = 10000  # states of a model that holds: fewer, and it has not gone anywhere
LIMIT_S = 1800 if LONG else 240
MEMORY_MB = 6000 if LONG else 2000


def run(argv, where):
    return subprocess.run(argv, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)


def build(case, where):
    """Makes the checker of one case; returns what went wrong, or None."""
    shutil.copy(HERE / f"{case.model}.pml", where)
    made = run(["spin", "-a", *case.bounds.split(), f"{case.model}.pml"], where)
    if made.returncode != 0 or "rror:" in made.stdout or not (where / "pan.c").exists():
        return "spin: " + made.stdout.strip()[-300:]
    # A short search is dearer to compile well than to run badly, and clang is the faster of the two at that.
    options = ["-w", "-DSAFETY", f"-DMEMLIM={MEMORY_MB}"]
    options += ["-O2", "-DCOLLAPSE"] if case.long and not case.broken else ["-O0"]
    if case.broken and case.last_first:
        options.append("-DT_REVERSE")
    made = run(["clang" if shutil.which("clang") else "cc", *options, "-o", "pan", "pan.c"], where)
    return None if made.returncode == 0 else "compiler: " + made.stdout.strip()[-300:]


def judge(case, out):
    """What pan said, against what must be so: returns what is wrong, or None."""
    if re.search(r"out of memory|max search depth too small|Search not completed|VECTORSZ", out) and not case.broken:
        return "the search was not completed: " + " ".join(out.split())[:200]
    errors = re.search(r"errors: (\d+)", out)
    if not errors:
        return "no verdict: " + " ".join(out.split())[:200]
    said = re.search(r"^pan:\d+: (.*)$", out, re.M)
    said = said[1] if said else ""
    if not case.broken:
        if errors[1] != "0":
            return f"broken: {said}"
        return None if states(out) >= FEWEST else f"only {states(out)} states: the model goes nowhere"
    if errors[1] == "0":
        return f"the mistake is not found in {states(out)} states"
    patterns = [PROMISES[case.model][promise] for promise in case.broken]
    if "assertion violated" in said and any(re.search(pattern, said) for pattern in patterns):
        return None
    return f"found something else than {' or '.join(case.broken)}: {said}"


def states(out):
    found = re.search(r"(\d+) states, stored", out)
    return int(found[1]) if found else 0


def steps(case, where):
    """The counter-example, as the model tells it."""
    told = run(["spin", "-t", *case.bounds.split(), f"{case.model}.pml"], where).stdout
    return [line.strip() for line in told.splitlines() if re.match(r"\s+(EV|\[\d\]|look|COMMIT|CRASH|our|reader|siltd|the script)", line)]


def check(case, show):
    """Returns (what is wrong or None, states, lines to show)."""
    with tempfile.TemporaryDirectory(prefix="silt-model-") as name:
        where = pathlib.Path(name)
        wrong = build(case, where)
        if wrong:
            return wrong, 0, []
        out = run(["./pan", "-E", "-m100000", "-w25" if case.long else "-w20"], where).stdout
        wrong = judge(case, out)
        unexpected = wrong is not None and "errors: 0" not in out
        return wrong, states(out), steps(case, where) if (show or unexpected) and list(where.glob("*.trail")) else []


def main():
    words = " ".join(sys.argv[1:])
    if not shutil.which("spin"):
        print("1..0 # SKIP spin is not installed (tools/setup test)")
        return 0
    cases = [case for case in HOLDS + MISTAKES if words in case.name and (LONG or not case.long or words)]
    total, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(1 if LONG else 2) as pool:
        for number, (case, result) in enumerate(zip(cases, pool.map(lambda case: check(case, bool(words)), cases)), 1):
            wrong, count, shown = result
            total += count
            failed += wrong is not None
            for line in shown:
                print(f"#   {line}")
            what = f"{'finds: ' if case.broken else ''}{case.name} ({case.model} {case.bounds}: {count} states)"
            print(f"not ok {number} - {what}: {wrong}" if wrong else f"ok {number} - {what}", flush=True)
    print(f"# {total} states in all")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"# {used.ru_utime + used.ru_stime:.1f} s of CPU")
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
