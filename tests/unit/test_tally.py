#!/usr/bin/env python3
"""tally.py judges every other test: what it must not count as a pass is tried here."""
import json
import os
import subprocess
import sys
import tempfile

TALLY = os.path.join(os.environ["SILT_SOURCE_ROOT"], "tests", "tally.py")

# name of the case, stdout, exit code, expected (passed, failed, skipped)
CASES = [
    ("counts_each_case", "ok 1 - a\nok 2 - b\n1..2\n", 0, (2, 0, 0)),
    ("counts_failures", "ok 1 - a\nnot ok 2 - b: why\n# more\n1..2\n", 1, (1, 1, 0)),
    ("nothing_ran_is_a_failure", "1..0\n", 0, (0, 1, 0)),
    ("silence_is_a_failure", "", 0, (0, 1, 0)),
    ("talk_is_not_a_result", "okay 1 - a\nok, fine\n", 0, (0, 1, 0)),
    ("crash_before_the_plan_is_a_failure", "ok 1 - a\n", -11, (1, 1, 0)),
    ("crash_after_the_plan_is_a_failure", "ok 1 - a\n1..1\n", -11, (1, 1, 0)),
    ("too_few_cases_are_a_failure", "1..3\nok 1 - a\nok 2 - b\n", 0, (2, 1, 0)),
    ("a_skip_is_no_pass", "ok 1 - a # SKIP no reason\nok 2 - b\n1..2\n", 0, (1, 0, 1)),
    ("failed_case_counts_once", "not ok 1 - a\n1..1\n", 1, (0, 1, 0)),
]


def tally(directory, log):
    path, shown = os.path.join(directory, "log.json"), os.path.join(directory, "shown")
    if os.path.exists(path):
        os.remove(path)
    if log is not None:
        with open(path, "w", encoding="utf-8") as out:
            out.write(log)
    said = subprocess.run([sys.executable, TALLY, path, shown], check=True, capture_output=True, text=True).stdout
    return tuple(int(word) for word in said.split())


def main():
    results = []
    with tempfile.TemporaryDirectory() as directory:
        for name, stdout, code, want in CASES:
            test = {"name": "t", "stdout": stdout, "stderr": "", "returncode": code, "result": "?"}
            results.append((name, tally(directory, json.dumps(test) + "\n"), want))
        results.append(("empty_log_is_a_failure", tally(directory, ""), (0, 1, 0)))
        results.append(("missing_log_is_a_failure", tally(directory, None), (0, 1, 0)))
    for number, (name, got, want) in enumerate(results, 1):
        if got == want:
            print(f"ok {number} - tally__{name}")
        else:
            print(f"not ok {number} - tally__{name}: {got}, not {want}")
    print(f"1..{len(results)}")


main()
