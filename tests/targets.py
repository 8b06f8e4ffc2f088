#!/usr/bin/env python3
"""Prints what ninja must build for some suites: everything outside tests/, the harness, and the folders named.

    targets.py BUILD-DIRECTORY SUITE...
"""
import json
import os
import subprocess
import sys


def main():
    build, folders = sys.argv[1], {"harness", *sys.argv[2:]}
    targets = json.loads(subprocess.check_output(["meson", "introspect", "--targets", build]))
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for target in targets:
        place = os.path.relpath(target["defined_in"], root).split(os.sep)
        if place[0] == "tests" and place[1] not in folders or not target["build_by_default"]:
            continue
        for name in target["filename"]:
            print(os.path.relpath(name, os.path.abspath(build)))


if __name__ == "__main__":
    main()
