#!/usr/bin/python3
"""Made refused/ once, out of segments/feed.segment: damage, newer formats, and columns that lie behind right checksums. Finds of the
fuzzers are added by hand under corrupt-fuzz-*."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import second_decoder  # noqa: E402
import xxhash  # noqa: E402
import zstandard  # noqa: E402

ROOT = pathlib.Path(__file__).parent
FEED = (ROOT / "segments/feed.segment").read_bytes()


def seal(data):
    return data[:104] + struct.pack("<Q", xxhash.xxh64(data[:104]).intdigest()) + data[112:]


def place(at, form, value):
    bent = bytearray(FEED)
    struct.pack_into(form, bent, at, value)
    return seal(bytes(bent))


def forged(raw, header=FEED, **places):
    """Any columns under a header whose lengths and checksums are right."""
    body, bent = zstandard.compress(raw, 3), bytearray(header[:112])
    for at, form, value in places.values():
        struct.pack_into(form, bent, at, value)
    struct.pack_into("<QQQ", bent, 80, len(raw), len(body), xxhash.xxh64(body).intdigest())
    return seal(bytes(bent) + body)


RAW = zstandard.decompress(FEED[112:])
# One entry 1-0 of a plain stream with one field; what a column may say wrong stands behind `head`.
ONE = bytearray(112)
ONE[:8] = FEED[:8]
struct.pack_into("<I4Q", ONE, 28, 1, 1, 0, 1, 0)
HEAD = bytes([1, 1, 1, 0, 2, 97, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
NUMBER = bytes([2, 0, 14])  # the decimal 7
FILES = {
    "corrupt-empty": b"",
    "corrupt-cut-header": FEED[:111],
    "corrupt-cut-body": FEED[:-1],
    "corrupt-byte-behind": FEED + b"\0",
    "corrupt-magic": seal(b"SSEH" + FEED[4:]),
    "corrupt-version-bit": FEED[:4] + b"\3" + FEED[5:],
    "corrupt-body-bit": FEED[:900] + bytes([FEED[900] ^ 1]) + FEED[901:],
    "corrupt-count": place(28, "<I", 401),
    "corrupt-last-id": place(48, "<Q", struct.unpack_from("<Q", FEED, 48)[0] + 1),
    "corrupt-foreign-count": place(64, "<I", 1),
    "corrupt-bytes": place(72, "<Q", struct.unpack_from("<Q", FEED, 72)[0] - 1),
    "newer-version": place(4, "<H", 2),
    "newer-must-refuse": place(8, "<I", 4),
    "corrupt-raw-cut": forged(RAW[:-1]),
    "corrupt-raw-byte-behind": forged(RAW + b"\0"),
    "corrupt-column-kind": forged(HEAD + bytes([9, 0, 0]), ONE, b=(72, "<Q", 2)),
    "corrupt-column-names-itself": forged(HEAD + bytes([5, 0, 0, 0]), ONE, b=(72, "<Q", 2)),
    "corrupt-width-9": forged(HEAD + bytes([2, 9, 0]) + bytes(9), ONE, b=(72, "<Q", 2)),
    "corrupt-exception-position": forged(
        HEAD + bytes([0x12, 0, 14, 1, 0, 2, 0, 2, 97]), ONE, b=(72, "<Q", 2)),
    "corrupt-tail-too-large": forged(
        HEAD + b"\4ABC" + bytes([0, 0, 0x00, 0x80, 0x80, 0x80, 4]), ONE, b=(72, "<Q", 15)),
}
# What the others are bent from is itself well formed.
header, entries = second_decoder.decode(forged(HEAD + NUMBER, ONE, b=(72, "<Q", 2)))
assert entries == [((1, 0), [(b"a", b"7")], False)], entries

if __name__ == "__main__":
    for name, data in FILES.items():
        (ROOT / "refused" / (name + ".segment")).write_bytes(data)
