#!/usr/bin/python3
"""The second decoder beside the C codec: what the codec packs comes out of the second decoder as it went in, and what one of the two refuses
the other refuses too, also where the checksums are right. Debian's own interpreter, since the modules are Debian's."""
import base64
import collections
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import crafted  # noqa: E402
import second_decoder  # noqa: E402
import xxhash  # noqa: E402
import zstandard  # noqa: E402

GOLDEN = pathlib.Path(__file__).parent
ROOT = pathlib.Path(os.environ["SILT_SOURCE_ROOT"])
CODEC, FEED = os.environ["SEGMENT_CODEC"], os.environ["SILT_FEED"]
SEED = os.environ.get("SILT_SEED", str(time.time_ns() % 10**9))
LIFE = 0x0123456789ABCDEF
met = set()


# What the decoder meets is noted, so that no kind of column stays untried.

class WatchedRaw(second_decoder.Raw):
    def integers(self, count):
        form = self.data[self.at] if self.at < len(self.data) else 0
        met.add(f"{'running sums' if form & 0x10 else 'integers'} of width {form & 15}")
        return super().integers(count)


class WatchedColumn(second_decoder.Column):
    def read(self, raw, before, ids):
        super().read(raw, before, ids)
        met.add(f"kind {self.kind}{' with exceptions' if raw.data[self.start] & 0x10 else ''}")

    def payload(self, raw, before, ids):
        self.start = raw.at - 1
        return super().payload(raw, before, ids)


second_decoder.Raw, second_decoder.Column = WatchedRaw, WatchedColumn


# Entries in and out of the C codec.

def text_of(entries):
    return "".join("%d-%d%s\n" % (*id, "".join(f" {name.hex()}={value.hex()}" for name, value in fields)) for id, fields in entries)


def codec_pack(runs, namespace="-"):
    """One segment for each run of entries."""
    given = "".join(text_of(run) + "\n" for run in runs).encode()
    done = subprocess.run([CODEC, "pack", namespace, str(LIFE)], input=given, stdout=subprocess.PIPE, check=True).stdout
    segments, at = [], 0
    while at < len(done):
        size = int.from_bytes(done[at:at + 8], "little")
        segments.append(done[at + 8:at + 8 + size])
        at += 8 + size
    assert len(segments) == len(runs), "the codec gave another number of segments"
    return segments


def codec_verdicts(segments):
    """For each: the entries as text, or "damaged" or "newer"."""
    given = b"".join(struct.pack("<Q", len(segment)) + segment for segment in segments)
    done = subprocess.run([CODEC, "open"], input=given, stdout=subprocess.PIPE, check=True).stdout.decode()
    blocks = done.split("\n\n")[:-1]
    assert len(blocks) == len(segments), "the codec gave another number of verdicts"
    names = {"SILT_ERR_CORRUPT": "damaged", "SILT_ERR_NEWER_FORMAT": "newer"}
    return [block[5:] + "\n" if block.startswith("open\n") else names.get(block, block) for block in blocks]


def verdict(segment):
    try:
        return text_of(entry[:2] for entry in second_decoder.decode(segment)[1])
    except second_decoder.Newer:
        return "newer"
    except second_decoder.Damaged:
        return "damaged"


# What goes in.

def from_json(value):
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


def feed(*arguments):
    done = subprocess.run([FEED, *arguments], stdout=subprocess.PIPE, check=True).stdout
    for line in done.splitlines():
        entry = json.loads(line)
        ms, seq = entry["id"].split("-")
        yield (int(ms), int(seq)), [(from_json(name), from_json(value)) for name, value in entry["fields"]]


def log(name):
    data = (ROOT / "tests/data" / f"{name}.jsonl.zst").read_bytes()
    text = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    seen = collections.Counter()
    for event in sorted((json.loads(line) for line in text.splitlines()), key=lambda event: event["t"]):
        seen[event["t"]] += 1
        yield (event["t"], seen[event["t"]] - 1), [(from_json(name), from_json(value)) for name, value in event["fields"]]


def random_value(rng, id, earlier):
    kind = rng.randrange(10)
    if kind == 0:
        return rng.randbytes(rng.choice((0, 1, 2, 40)))
    if kind == 1:
        return b"%d" % (id[0] + rng.randrange(-5000, 5000) & second_decoder.MASK)
    if kind == 2:
        return b"%d" % rng.randrange(10 ** rng.randrange(1, 22))
    if kind == 3:
        return b"0%d" % rng.randrange(100)
    if kind == 4 and second_decoder.EPOCH_MS + 10000 < id[0] < second_decoder.EPOCH_MS + (1 << 41):
        return second_decoder.branded(b"JOB", id[0] - rng.randrange(9000), rng.randrange(1 << 22))
    return rng.choice(earlier) if earlier and kind < 8 else b"%s" % rng.choice((b"red", b"green", b"blue", b""))


def random_run(rng):
    """Entries of a few shapes, with ids anywhere in the range and in clusters; each shape's fields mostly keep to one way of making values."""
    names = [rng.choice((b"id", b"kind", b"x", b"", b"\xff\0", b"score", b"player", rng.randbytes(3))) for _ in range(rng.randrange(1, 9))]
    shapes = [[rng.choice(names) for _ in range(rng.choice((0, 1, 2, 3, 5, 9)))] for _ in range(rng.randrange(1, 5))]
    ways = {name: rng.randrange(1 << 30) for name in names}
    ms, seq = rng.choice(((0, 1), (second_decoder.EPOCH_MS + rng.randrange(1 << 40), rng.randrange(1 << 22)), (second_decoder.MASK - 9, 0)))
    run, earlier = [], []
    for nth in range(rng.choice((1, 2, 7, 60, 400))):
        fields = []
        for name in rng.choice(shapes):
            way = random.Random(ways[name] + (nth // 2 if rng.random() < 0.9 else rng.random() * 1e9 // 1))
            value = random_value(way if rng.random() < 0.5 else random.Random(ways[name]), (ms, seq), earlier)
            fields.append((name, value))
            earlier = (earlier + [value])[-20:]
        if rng.random() < 0.5 and second_decoder.EPOCH_MS <= ms < second_decoder.EPOCH_MS + (1 << 41) and seq < 1 << 22:
            fields.insert(0, (b"id", second_decoder.branded(b"EVT", ms, seq)))
        run.append(((ms, seq), fields))
        step = rng.choice((0, 0, 1, 1, 3, 1000, 10**7))
        if step and ms + step <= second_decoder.MASK:
            ms, seq = ms + step, rng.choice((0, 0, 5, rng.randrange(1 << 22)))
        else:
            seq += rng.choice((1, 1, 1, 2, 900))
    return run


# How it is judged.

def is_ours(id, fields, namespace):
    """The rule of a branded stream: the first `id` names the entry's own id."""
    value = next((value for name, value in fields if name == b"id"), None)
    fits = second_decoder.EPOCH_MS <= id[0] < second_decoder.EPOCH_MS + (1 << 41) and id[1] < 1 << 22
    return fits and value == second_decoder.branded(namespace, *id)


def difference(run, segment, namespace):
    """What the second decoder gives of a segment against what went in; empty: the same."""
    try:
        header, entries = second_decoder.decode(segment)
    except ValueError as error:
        return f"refused: {error!r}"
    letters = namespace.encode() if namespace != "-" else bytes(3)
    want = [(id, fields, namespace != "-" and not is_ours(id, fields, letters)) for id, fields in run]
    facts = {"version": 1, "length": 112, "must_refuse": 0, "may_ignore": 0, "life": LIFE, "namespace": letters, "entries": len(run),
             "first_ms": run[0][0][0], "first_seq": run[0][0][1], "last_ms": run[-1][0][0], "last_seq": run[-1][0][1],
             "foreign": sum(foreign for _, _, foreign in want), "body_bytes": len(segment) - 112,
             "bytes": sum(len(name) + len(value) for _, fields in run for name, value in fields)}
    for name, value in facts.items():
        if header[name] != value:
            return f"header: {name} is {header[name]!r}, not {value!r}"
    for got, wanted in zip(entries, want):
        if got != wanted:
            return f"entry {got!r:.300} is not {wanted!r:.300}"
    return "" if len(entries) == len(want) else f"{len(entries)} entries, not {len(want)}"


def compare(entries, namespace, size):
    entries = list(entries)
    runs = [entries[at:at + size] for at in range(0, len(entries), size)]
    return next(filter(None, (difference(run, segment, namespace) for run, segment in zip(runs, codec_pack(runs, namespace)))),
                "" if runs else "no entries")


def compare_random():
    rng = random.Random(f"runs {SEED}")
    for namespace in ("-", "EVT"):
        runs = [random_run(rng) for _ in range(150)]
        for run, segment in zip(runs, codec_pack(runs, namespace)):
            problem = difference(run, segment, namespace)
            if problem:
                return problem
    return ""


def sealed(segment, raw=None, header=b"", at=0):
    """The segment with other raw columns, or other bytes at a place of the header, and right lengths and checksums."""
    head, body = bytearray(segment[:104]), segment[112:]
    if raw is not None:
        body = zstandard.ZstdCompressor(level=1).compress(raw)
        head[80:104] = struct.pack("<QQQ", len(raw), len(body), xxhash.xxh64(body).intdigest())
    head[at:at + len(header)] = header
    return bytes(head) + struct.pack("<Q", xxhash.xxh64(head).intdigest()) + body


def disagreement(segments):
    """Both decoders on each; empty: they say the same, and of some that they are damaged."""
    refused = 0
    for segment, theirs in zip(segments, codec_verdicts(segments)):
        ours = verdict(segment)
        refused += ours == "damaged"
        if ours != theirs:
            return f"{len(segment)} bytes {segment.hex()[:2000]}: the codec says {theirs[:200]!r}, the second decoder {ours[:200]!r}"
    return "" if refused else "nothing was refused"


def small_segments():
    """Few entries of many kinds of column."""
    who = [(b"player %d" % (nth % 3), b"name %d" % (nth % 3 * 7)) for nth in range(40)]
    base = second_decoder.EPOCH_MS + 10**10
    run = []
    for nth, (player, name) in enumerate(who):
        ms = base + 777 * nth
        fields = [(b"id", second_decoder.branded(b"EVT", ms, 5)), (b"at", b"%d" % (ms - nth % 4)), (b"n", b"%d" % (nth * nth) if nth % 19 else b"007"),
                  (b"player", player), (b"name", name if nth != 30 else b"!"), (b"job", second_decoder.branded(b"JOB", ms - nth % 5, nth))]
        run.append(((ms, 5), fields if nth % 13 else fields[1:3]))
    plain = [((9, 1), [(b"a", b"x")]), ((9, 2), []), ((12, 0), [(b"a", b"y"), (b"a", b"77")])]
    return codec_pack([run], "EVT") + codec_pack([plain])


def forged_columns():
    """Each byte of the raw columns changed in several ways, bytes taken out and put in, behind right checksums. Some stay sound: then both give
    the same entries."""
    rng = random.Random(f"forged {SEED}")
    forged = []
    for segment in small_segments():
        raw = zstandard.ZstdDecompressor().decompress(segment[112:])
        for at in range(len(raw)):
            for byte in {raw[at] ^ 1, raw[at] ^ 0x10, raw[at] ^ 0x80, raw[at] + 1 & 255, raw[at] - 1 & 255, 0, rng.randrange(256)} - {raw[at]}:
                forged.append(sealed(segment, raw[:at] + bytes([byte]) + raw[at + 1:]))
            forged.append(sealed(segment, raw[:at] + raw[at + 1:]))
            forged.append(sealed(segment, raw[:at] + raw[at:at + 1] + raw[at:]))
        forged.append(sealed(segment, raw + b"\0"))
    runs = [random_run(rng)[:60] for _ in range(100)]
    for segment in codec_pack(runs, "EVT"):
        raw = zstandard.ZstdDecompressor().decompress(segment[112:])
        for _ in range(8):
            at = rng.randrange(len(raw))
            forged.append(sealed(segment, raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1:]))
    return disagreement(forged)


def forged_headers():
    forged = []
    for segment in small_segments():
        for at in range(104):
            forged += [sealed(segment, header=bytes([segment[at] ^ 1 << bit]), at=at) for bit in range(8)]
        longer = bytearray(segment[:104]) + bytes(16)
        longer[6] += 16
        forged.append(bytes(longer) + struct.pack("<Q", xxhash.xxh64(longer).intdigest()) + segment[112:])
    return disagreement(forged)


def unnoticed():
    """Every single bit flipped, every length cut: refused as damage, never as a newer format, never read."""
    for segment in small_segments():
        bent = [segment[:size] for size in range(len(segment))]
        for bit in range(8 * len(segment)):
            flipped = bytearray(segment)
            flipped[bit // 8] ^= 1 << bit % 8
            bent.append(bytes(flipped))
        for each in bent:
            if verdict(each) != "damaged":
                return f"{each.hex()[:2000]} is {verdict(each)[:200]!r}"
    return ""


def kept_difference(path):
    """Against the text that was kept beside it."""
    def escape(data):
        return re.sub(rb"[^\x21-\x3c\x3e-\x5b\x5d-\x7e]", lambda found: b"\\x%02x" % found[0][0], data).decode()
    want = path.with_suffix(".txt").read_text(encoding="ascii").splitlines()
    header, entries = second_decoder.decode(path.read_bytes())
    got = ["segment life=%d namespace=%s first=%d-%d last=%d-%d count=%d foreign=%d bytes=%d" % (
        header["life"], header["namespace"].strip(b"\0").decode() or "-", header["first_ms"], header["first_seq"], header["last_ms"],
        header["last_seq"], header["entries"], header["foreign"], header["bytes"])]
    for id, fields, foreign in entries:
        got.append("%d-%d %s" % (*id, "f" if foreign else "-") + "".join(f" {escape(name)}={escape(value)}" for name, value in fields))
    return next((f"{a[:300]} is not {b[:300]}" for a, b in zip(got, want) if a != b), "" if len(got) == len(want) else "another number of lines")


def refused_difference(path):
    want = {"corrupt": "damaged", "newer": "newer"}[path.stem.split("-")[0]]
    got = verdict(path.read_bytes())
    return "" if got == want else f"{got[:200]!r}, not {want}"


def crafted_difference(segment, want, theirs):
    want = want if isinstance(want, str) else text_of(want)
    ours = verdict(segment)
    return "" if ours == theirs == want else f"{ours[:300]!r} here, {theirs[:300]!r} from the codec, wanted {want[:300]!r}"


def kinds_not_met():
    want = {f"kind {kind}" for kind in range(7)} | {f"kind {kind} with exceptions" for kind in range(2, 7)}
    want |= {f"{form} of width {width}" for form in ("integers", "running sums") for width in range(5)} | {"integers of width 8"}
    return ", ".join(sorted(want - met))


def cases():
    yield "has_kept_segments", lambda: "" if len(list((GOLDEN / "segments").glob("*.segment"))) >= 6 else "kept segments are missing"
    yield "has_refused_segments", lambda: "" if len(list((GOLDEN / "refused").glob("*.segment"))) >= 20 else "refused segments are missing"
    for path in sorted((GOLDEN / "segments").glob("*.segment")):
        yield f"kept_{path.stem}", lambda path=path: kept_difference(path)
    for path in sorted((GOLDEN / "refused").glob("*.segment")):
        yield f"refuses_{path.stem}", lambda path=path: refused_difference(path)
    theirs = codec_verdicts([segment for _, segment, _ in crafted.CASES])
    for (name, segment, want), verdict_there in zip(crafted.CASES, theirs):
        yield f"crafted_{name}", lambda args=(segment, want, verdict_there): crafted_difference(*args)
    yield "feed", lambda: compare(feed("--seed", SEED, "--count", "12000"), "EVT", 6000)
    yield "feed_as_plain", lambda: compare(feed("--seed", SEED, "--count", "4000"), "-", 1500)
    for namespace in ("EVT", "-", "GES"):
        yield f"odd_as_{namespace}", lambda namespace=namespace: compare(feed("--odd", "--seed", SEED), namespace, 1777)
    yield "earthquakes", lambda: compare(log("earthquakes"), "-", 1000)
    yield "random_runs", compare_random
    yield "every_kind_of_column_met", kinds_not_met
    yield "every_flip_and_cut_noticed", unnoticed
    yield "same_verdict_on_forged_columns", forged_columns
    yield "same_verdict_on_forged_headers", forged_headers


def main():
    print(f"# SILT_SEED={SEED}")
    count = failed = 0
    for name, judge in cases():
        count += 1
        try:
            problem = judge()
        except Exception as error:  # one case's failure, also where the decoder fails in a way of its own
            problem = repr(error)
        failed += bool(problem)
        print(f"{'not ' if problem else ''}ok {count} - second_decoder__{name}{': ' if problem else ''}{problem}", flush=True)
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
