#!/usr/bin/env python3
"""tools/setup derives the backports source from the machine's own sources, whatever form those have."""
import os
import subprocess
import tempfile

SETUP = os.path.join(os.environ["SILT_SOURCE_ROOT"], "tools", "setup")
# The function by itself, on another directory than the machine's.
CALL = 'eval "$(sed -n "/^backports_source() {/,/^}/p" "$0")"; apt_dir=$1; backports_source bookworm "$2"'

ONE_LINE = """\
# deb http://old.example/debian bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb-src http://a.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://a.example/debian bookworm main contrib
deb http://b.example/debian bookworm main
"""
STANZAS = """\
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

# a comment
Types: deb deb-src
# in between
URIs: http://a.example/debian
Suites:
 bookworm
 bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF==
 -----END PGP PUBLIC KEY BLOCK-----
"""
STANZAS_WANTED = """\
Types: deb
Suites: bookworm-backports
URIs: http://a.example/debian
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF==
 -----END PGP PUBLIC KEY BLOCK-----
"""
OFF = "Enabled: no\nTypes: deb\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\n"
SRC = "Types: deb-src\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\n"
STABLE = "Types: deb\nURIs: http://a.example/debian\nSuites: stable\nComponents: main\n"

# case, form, files, what must come out
CASES = [
    ("one_line_keeps_options_and_components", "list", {"sources.list": ONE_LINE},
     "deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://a.example/debian bookworm-backports main contrib\n"),
    ("one_line_files_are_read_too", "list", {"sources.list.d/x.list": "deb http://a.example/debian bookworm main\n"},
     "deb http://a.example/debian bookworm-backports main\n"),
    ("stanza_keeps_its_key", "sources", {"sources.list.d/debian.sources": STANZAS}, STANZAS_WANTED),
    ("stanza_by_the_name_stable", "sources", {"sources.list.d/debian.sources": STABLE},
     "Types: deb\nSuites: bookworm-backports\nURIs: http://a.example/debian\nComponents: main\n"),
    ("stanza_switched_off_is_not_used", "sources", {"sources.list.d/debian.sources": OFF}, ""),
    ("stanza_of_sources_only_is_not_used", "sources", {"sources.list.d/debian.sources": SRC}, ""),
    ("stanzas_of_two_files_stay_apart", "sources", {"sources.list.d/a.sources": OFF.rstrip("\n"), "sources.list.d/b.sources": STABLE},
     "Types: deb\nSuites: bookworm-backports\nURIs: http://a.example/debian\nComponents: main\n"),
    ("nothing_gives_nothing", "list", {}, ""),
]


def derive(form, files):
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(os.path.join(directory, "sources.list.d"))
        for name, text in files.items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as out:
                out.write(text)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", CALL, SETUP, directory, form], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"


def main():
    for number, (name, form, files, want) in enumerate(CASES, 1):
        got = derive(form, files)
        print(f"ok {number} - setup__{name}" if got == want else f"not ok {number} - setup__{name}: {got!r}")
    print(f"1..{len(CASES)}")


main()
