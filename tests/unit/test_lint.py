#!/usr/bin/env python3
"""Each check of tests/lint is shown a tree that breaks its rule: a check that finds nothing there would find nothing anywhere."""
import json
import os
import shutil
import subprocess
import tempfile

SOURCE = os.environ["SILT_SOURCE_ROOT"]
LONG = "int silt_long(int a);\nint silt_long(int a)\n{\n" + "    a += a * 3;\n" * 90 + "    return a;\n}\n"
NULL = "int silt_null(void);\nint silt_null(void)\n{\n    int *at = 0;\n    return *at;\n}\n"

# check, file, its text
BROKEN = [
    ("each header compiles alone", "format/x.h", "size_t silt_x(void);\n"),
    ("each outside library has one door", "format/a.c", "#include <lmdb.h>\n#include <event2/event.h>\n"),
    ("each outside library has one door", "archiver/b.c", "#include <lmdb.h>\n"),
    ("no file over 800 lines", "tools/long.c", "\n" * 801),
    ("no mirror and no machine's directory", "tools/where", "cd /ho" + "me/somebody\n"),
    ("no left-overs", "tools/later.c", "/* TO" + "DO: all of it */\n"),
    ("one place removes from a stream", "archiver/c.c", 'call("XTRIM s MINID 1");\n'),
    ("no MAXLEN is sent", "archiver/d.c", 'call("XADD s MAXLEN 1 * a b");\n'),
    ("every commit is synced", "format/e.c", "int f = MDB_NOSYNC;\n"),
    ("one door to the heap", "mergeread/f.c", "void *p = malloc(1);\n"),
    ("no unsafe string function", "format/g.c", "strcpy(a, b);\n"),
    ("libraries do not print or exit", "format/h.c", 'printf("x");\n'),
    ("tests do not sleep", "tests/i.c", "usleep(1);\n"),
    ("the tests that field-reports.md names are there", "tests/field-reports.md", "`nobody__is_there`\n"),
    ("scripts", "tools/j", '#!/bin/sh\ncd "$1"; rm -rf ./*\nfoo=$(ls)\n[ $# == 1 ] && echo "$foo"\n'),
    ("layout", "tools/k.c", "int   k ;\n"),
    ("the systemd unit", "docs/siltd.service", "[Service]\nExecStart=/bin/true\n"),
    ("clang-tidy", "tools/l.c", LONG),
    ("cppcheck", "tools/m.c", NULL),
]


def lint(root, files):
    """Gives {check: passed}."""
    os.makedirs(os.path.join(root, "tests"))
    os.makedirs(os.path.join(root, "build"))
    for name in ("tests/lint", ".clang-tidy", ".clang-format"):
        shutil.copy(os.path.join(SOURCE, name), os.path.join(root, name))
    for folder in ("format", "mergeread", "archiver", "tools", "docs"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy(os.path.join(SOURCE, "docs/siltd.service"), os.path.join(root, "docs"))
    for name, text in files:
        with open(os.path.join(root, name), "w", encoding="utf-8") as out:
            out.write(text)
    commands = [
        {"directory": os.path.join(root, "build"), "file": "../" + name, "command": "cc -c ../" + name}
        for name, _ in files
        if name.endswith(".c")
    ]
    with open(os.path.join(root, "build", "compile_commands.json"), "w", encoding="utf-8") as out:
        json.dump(commands, out)
    environ = dict(os.environ, SILT_BUILD_ROOT="build")
    said = subprocess.run([os.path.join(root, "tests", "lint")], capture_output=True, text=True, env=environ).stdout
    return {line.split("lint: ", 1)[1]: line.startswith("ok") for line in said.splitlines() if "lint: " in line and line[0] != "#" and "# SKIP" not in line}


def main():
    with tempfile.TemporaryDirectory() as root:
        clean = lint(os.path.join(root, "clean"), [("format/a.c", "int silt_a;\n"), ("tests/field-reports.md", "none\n")])
        broken = lint(os.path.join(root, "broken"), [(name, text) for _, name, text in BROKEN])
    results = [("passes_a_clean_tree", bool(clean) and all(clean.values()), clean)]
    for check in clean:
        planted = any(check == name for name, _, _ in BROKEN)
        results.append((check.replace(" ", "_"), planted and not broken.get(check, True), "was not found"))
    for number, (name, good, why) in enumerate(results, 1):
        print(f"ok {number} - lint__{name}" if good else f"not ok {number} - lint__{name}: {why}")
    print(f"1..{len(results)}")


main()
