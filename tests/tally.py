#!/usr/bin/env python3
"""Adds up what the test programs of one `meson test` run reported, case by case.

    tally.py LOG.json SHOWN     prints "passed failed skipped"; writes the failures, to be read by a person, to SHOWN

A program's own TAP lines are counted, nothing else. It fails once more (or at all) when it ended badly without saying which
case failed, when it did not come to its plan, and when it ran nothing. A suite in which every case was skipped has failed.
"""
import json
import re
import sys

RESULT = re.compile(r"^(ok|not ok) (\d+)(?: - (.*))?$")
SKIPPED = re.compile(r"# SKIP\b", re.IGNORECASE)
CHATTER = re.compile(r" level=(info|debug) |^\(test program exited")
LINES_MAX = 30


def cases(stdout):
    """Gives (passed, failed lines, skipped lines, plan or None)."""
    passed, failed, skipped, plan = 0, [], [], None
    for line in stdout.splitlines():
        if match := RESULT.match(line):
            if SKIPPED.search(line):
                skipped.append(line)
            elif match[1] == "ok":
                passed += 1
            else:
                failed.append(match[3] or match[2])
        elif match := re.match(r"^1\.\.(\d+)", line):
            plan = int(match[1])
    return passed, failed, skipped, plan


def judge(test):
    """Gives (passed, failures, skipped, everything worth reading)."""
    stdout, stderr = test.get("stdout") or "", test.get("stderr") or ""
    passed, failed, skipped, plan = cases(stdout)
    done = passed + len(failed) + len(skipped)
    if done == 0:
        failed.append("ran nothing" if plan is not None else f"ended before its first case ({test['result']})")
    elif plan is None:
        failed.append(f"ended after {done} cases, before its plan ({test['result']})")
    elif plan != done:
        failed.append(f"planned {plan} cases, ran {done}")
    elif test["returncode"] != 0 and not failed:
        failed.append(f"exit code {test['returncode']} though every case passed")
    talk = [line for line in stdout.splitlines() if line.startswith("#")]
    talk += [line for line in stderr.splitlines() if line.strip() and not CHATTER.search(line)]
    return passed, failed, skipped, talk


def main():
    log, shown = sys.argv[1:3]
    passed = failed = skipped = 0
    with open(shown, "w", encoding="utf-8", errors="replace") as out:
        try:
            with open(log, encoding="utf-8", errors="replace") as lines:
                tests = [json.loads(line) for line in lines if line.strip()]
        except FileNotFoundError:
            tests = []
        if not tests:
            print("  FAILED: this suite has no test", file=out)
            failed = 1
        for test in tests:
            good, bad, skips, talk = judge(test)
            passed, failed, skipped = passed + good, failed + len(bad), skipped + len(skips)
            for line in skips:
                print(f"  skipped: {test['name']}: {line}", file=out)
            for line in bad:
                print(f"  FAILED: {test['name']}: {line}", file=out)
            for line in talk[-LINES_MAX:] if bad else []:
                print(f"    {line}", file=out)
        if tests and passed + failed == 0:
            print("  FAILED: this suite ran nothing: every case was skipped", file=out)
            failed = 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
