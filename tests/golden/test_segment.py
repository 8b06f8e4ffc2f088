#!/usr/bin/env python3
"""The second decoder on the kept segments and on new ones: it must say what the first says. TAP."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
import segment  # noqa: E402

ROOT = pathlib.Path(__file__).parent
count = failed = 0


def case(name, problem):
    global count, failed
    count += 1
    failed += bool(problem)
    print("%s %d - %s" % ("not ok" if problem else "ok", count, name))
    if problem:
        print("# " + problem.replace("\n", "\n# "))


def difference(path):
    try:
        got = segment.dump(path.read_bytes()).splitlines()
    except (segment.Damaged, segment.Newer) as error:
        return "refused: %s" % error
    want = path.with_suffix(".txt").read_text().splitlines()
    for number, (a, b) in enumerate(zip(got, want)):
        if a != b:
            return "line %d:\n%s\n%s" % (number + 1, a[:300], b[:300])
    return "" if len(got) == len(want) else "%d lines, not %d" % (len(got), len(want))


def refusal(path):
    try:
        segment.decode(path.read_bytes())
    except segment.Newer:
        return "newer"
    except (segment.Damaged, IndexError, ValueError, MemoryError) as error:
        return "corrupt" if str(error) else "corrupt"
    return "accepted"


kept = sorted((ROOT / "segments").glob("*.segment"))
case("there are kept segments", "" if len(kept) >= 6 else "only %d" % len(kept))
for path in kept:
    case("kept segment: " + path.stem, difference(path))
refused = sorted((ROOT / "refused").glob("*.segment"))
case("there are refused segments", "" if len(refused) >= 8 else "only %d" % len(refused))
for path in refused:
    got = refusal(path)
    case("refused segment: " + path.stem, "" if path.stem.startswith(got + "-") else got)
with tempfile.TemporaryDirectory() as scratch:
    seed = os.environ.get("SILT_SEED", str(time.time_ns() % 10**9))
    print("# SILT_SEED=" + seed)
    subprocess.run([os.environ["MAKE_SEGMENTS"], scratch, seed], check=True)
    made = sorted(pathlib.Path(scratch).glob("*.segment"))
    case("segments were made", "" if len(made) >= 6 else "only %d" % len(made))
    for path in made:
        case("new segment: " + path.stem, difference(path))
print("1..%d" % count)
sys.exit(1 if failed else 0)
