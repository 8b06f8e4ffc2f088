#!/usr/bin/env python3
"""libmergeread as others meet it: installed into a scratch prefix, found by pkg-config, compiled against, run; the header read as C++."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ["SILT_SOURCE_ROOT"]
BUILD = os.environ["SILT_BUILD_ROOT"]
CC = os.environ.get("SILT_TEST_CC", "cc").split()
SANITIZE = os.environ.get("SILT_TEST_SANITIZE", "none")
FLAGS = [] if SANITIZE == "none" else ["-fsanitize=" + SANITIZE]
HEADERS = ["branded_id.h", "bytes.h", "entry.h", "mergeread.h", "status.h", "wire_id.h"]


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError("%s: exit %d: %s" % (" ".join(command), done.returncode, (done.stdout + done.stderr)[-900:]))
    return done.stdout


class Installed:
    def __init__(self, directory):
        self.directory = directory
        self.destdir = os.path.join(directory, "root")
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.destdir)
        pc = [os.path.join(path, name) for path, _, names in os.walk(self.destdir) for name in names if name == "mergeread.pc"]
        assert len(pc) == 1, "mergeread.pc found at %r" % pc
        self.env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc[0]), PKG_CONFIG_SYSROOT_DIR=self.destdir)
        self.libdir = os.path.dirname(os.path.dirname(pc[0]))
        include = [path for path, _, names in os.walk(self.destdir) if "mergeread.h" in names]
        assert len(include) == 1 and include[0].endswith("/include/silt"), "headers at %r" % include
        self.include = include[0]

    def flags(self):
        return run("pkg-config", "--cflags", "--libs", "mergeread", env=self.env).split()

    def compile(self, name, *sources, compiler=None, more=()):
        out = os.path.join(self.directory, name)
        run(*(compiler or CC), *FLAGS, "-Wall", "-Wextra", "-Werror", *more, "-o", out, *sources, *self.flags())
        return out

    def start(self, *command):
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60,
                              env=dict(os.environ, LD_LIBRARY_PATH=self.libdir))


class Server:
    """Of this test's own, on a UNIX socket; ended by its process id."""

    def __init__(self, directory):
        binary = os.environ.get("SILT_TEST_SERVER") or shutil.which("valkey-server") or shutil.which("redis-server")
        self.path = os.path.join(directory, "s.sock")
        self.process = subprocess.Popen([binary, "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "no",
                                         "--dir", directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            self.link = socket.socket(socket.AF_UNIX)
            try:
                self.link.connect(self.path)
                break
            except OSError:
                self.link.close()
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def call(self, *words):
        text = "*%d\r\n" % len(words) + "".join("$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.link.sendall(text.encode())
        answer = self.link.recv(4096)
        assert not answer.startswith(b"-"), answer

    def stop(self):
        self.link.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def headers_are_the_documented_ones(installed):
    assert sorted(os.listdir(installed.include)) == HEADERS, os.listdir(installed.include)


def example_reads_a_live_stream(installed):
    program = installed.compile("read_history", os.path.join(SOURCE, "examples", "read_history.c"))
    server = Server(installed.directory)
    try:
        for n in range(1, 4):
            server.call("XADD", "s", "%d-0" % n, "name", "value", "other", "value")
        said = installed.start(program, "-", "unix:" + server.path, "s")
        assert said.returncode == 0, said.stderr
        assert said.stdout == "".join("%d-0 live 2 fields\n" % n for n in range(1, 4)), said.stdout
        said = installed.start(program, "-", "unix:" + server.path, "none")
        assert said.returncode == 2 and "none" in said.stderr, (said.returncode, said.stderr)
    finally:
        server.stop()
    said = installed.start(program, "-", "unix:" + server.path, "s")
    assert said.returncode == 4 and server.path in said.stderr, (said.returncode, said.stderr)
    said = installed.start(program, os.path.join(installed.directory, "nowhere"), "-", "s")
    assert said.returncode == 5 and said.stdout == "", (said.returncode, said.stderr)


def example_is_thirty_lines(_):
    with open(os.path.join(SOURCE, "examples", "read_history.c"), encoding="utf-8") as source:
        assert len(source.readlines()) <= 32


CXX_PROGRAM = """
#include <silt/mergeread.h>
#include <cstdio>
int main()
{
    silt_err err = {};
    silt_history_options where = {};
    silt_history *history = nullptr;
    if (silt_history_open(&where, &history, &err) != SILT_ERR_USAGE) return 1;
    silt_wire_id id = {5, 6};
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(id, text);
    std::printf("%s\\n", text);
    return 0;
}
"""


def header_is_cxx_too(installed):
    source = os.path.join(installed.directory, "example.cpp")
    with open(source, "w", encoding="utf-8") as out:
        out.write(CXX_PROGRAM)
    order = ["clang++", "g++"] if "clang" in CC[-1] else ["g++", "clang++"]
    compiler = [path for path in map(shutil.which, order) if path][:1]
    if SANITIZE != "none":  # the two compilers' sanitizers do not mix in one program
        include = [flag for flag in installed.flags() if flag.startswith("-I")]
        run(*compiler, "-Wall", "-Wextra", "-Werror", "-c", "-o", os.devnull, source, *include)
        return
    program = installed.compile("example_cxx", source, compiler=compiler)
    said = installed.start(program)
    assert said.returncode == 0 and said.stdout == "5-6\n", (said.returncode, said.stdout, said.stderr)


def each_header_compiles_alone(installed):
    for name in HEADERS:
        run(*CC, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", os.path.dirname(installed.include), "-x", "c", "-",
            input="#include <silt/%s>\nint unused;\n" % name)


def exports_what_the_headers_declare(installed):
    declared = set()
    for name in HEADERS:
        with open(os.path.join(installed.include, name), encoding="utf-8") as header:
            text = header.read()
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"static inline[^{;]*\{.*?\n\}", "", text, flags=re.S)
        text = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
        declared.update(re.findall(r"\b(silt_\w+)\s*\(", text))
    library = os.path.join(installed.libdir, "libmergeread.so")
    exported = set()
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        kind, symbol = line.split()[-2:]
        if kind in "TWDBR":
            exported.add(symbol.split("@")[0])
    assert exported == declared, "not declared: %s; not exported: %s" % (sorted(exported - declared), sorted(declared - exported))


CASES = [headers_are_the_documented_ones, example_reads_a_live_stream, example_is_thirty_lines, header_is_cxx_too,
         each_header_compiles_alone, exports_what_the_headers_declare]


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="silt-installed-") as directory:
        installed = Installed(directory)
        for number, case in enumerate(CASES, 1):
            try:
                case(installed)
                print("ok %d - installed__%s" % (number, case.__name__))
            except (AssertionError, OSError, subprocess.SubprocessError) as why:
                failed += 1
                print("not ok %d - installed__%s: %s" % (number, case.__name__, str(why).replace("\n", " ")))
    print("1..%d" % len(CASES))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
