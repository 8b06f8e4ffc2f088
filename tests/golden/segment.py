"""The second decoder: reads a segment as format/README.md tells it, shares no code with the first, and is slow and plain on purpose.

    segment.py FILE     prints what dump.h says
"""
import ctypes
import ctypes.util
import struct
import sys

EPOCH = 1704067200000
M64 = (1 << 64) - 1
DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Damaged(Exception):
    pass


class Newer(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Damaged(what)


def xxh64(data):
    """Source: the xxHash specification, XXH64 with seed 0."""
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                          0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)

    def rotl(value, by):
        return (value << by | value >> (64 - by)) & M64

    def turn(acc, lane):
        return rotl((acc + lane * p2) & M64, 31) * p1 & M64

    at, left = 0, len(data)
    if left >= 32:
        acc = [(p1 + p2) & M64, p2, 0, -p1 & M64]
        while left - at >= 32:
            for i, lane in enumerate(struct.unpack_from("<4Q", data, at)):
                acc[i] = turn(acc[i], lane)
            at += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & M64
        for a in acc:
            h = ((h ^ turn(0, a)) * p1 + p4) & M64
    else:
        h = p5
    h = (h + left) & M64
    while left - at >= 8:
        h = (rotl(h ^ turn(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & M64
        at += 8
    if left - at >= 4:
        h = (rotl(h ^ struct.unpack_from("<I", data, at)[0] * p1 & M64, 23) * p2 + p3) & M64
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * p5 & M64, 11) * p1 & M64
    h = (h ^ h >> 33) * p2 & M64
    h = (h ^ h >> 29) * p3 & M64
    return h ^ h >> 32


def unpack(frame, size):
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame)))
    need(got == size, "the body does not decompress to its raw bytes")
    return out.raw


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(count <= len(self.data) - self.at, "too short")
        self.at += count
        return self.data[self.at - count:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def integers(self, count):
        form, zigzag = self.byte(), self.varint()
        base = (zigzag >> 1) ^ -(zigzag & 1)
        width, sums = form & 15, form & 0x10
        need(width <= 8 and not form & 0xE0, "integers")
        values = []
        if sums:
            values.append(self.varint())
            count -= 1
        planes = [self.take(count) for _ in range(width)]
        for i in range(count):
            value = base + sum(plane[i] << 8 * w for w, plane in enumerate(planes))
            values.append((value + (values[-1] if sums else 0)) & M64)
        return values

    def texts(self, count):
        return [self.take(length) for length in self.integers(count)]


def branded(letters, snowflake):
    need(snowflake < 1 << 63, "snowflake")
    digits = bytearray()
    for _ in range(11):
        snowflake, digit = divmod(snowflake, 62)
        digits.append(DIGITS[digit])
    return letters + bytes(reversed(digits))


def column_values(reader, columns, times, first_ms, count):
    """One column's payload: its values; those of kind 5 also their codes and what these name."""
    form = reader.byte()
    kind, odd = form & 15, form & 0x10
    owner = times if times is not None else [first_ms] * count
    codes = named = None
    if kind == 0:
        values = [reader.take(reader.varint())] * count
    elif kind == 1:
        values = reader.texts(count)
    elif kind == 2:
        values = [b"%d" % value for value in reader.integers(count)]
    elif kind == 3:
        values = [b"%d" % (value + ms & M64) for value, ms in zip(reader.integers(count), owner)]
    elif kind == 4:
        letters = reader.take(3)
        distances, tails = reader.integers(count), reader.integers(count)
        values = [branded(letters, (ms - EPOCH - distance & M64) << 22 | tail)
                  for ms, distance, tail in zip(owner, distances, tails)]
    elif kind == 5:
        named = list(columns[reader.varint()]["values"])
        codes = reader.integers(count)
        values = [named[code] for code in codes]
    elif kind == 6:
        source, target = columns[reader.varint()], columns[reader.varint()]["values"]
        table = reader.integers(len(source["named"]))
        values = [target[table[code]] for code in source["codes"]]
    else:
        raise Damaged("kind of column")
    if odd:
        positions = reader.integers(reader.varint())
        for position, text in zip(positions, reader.texts(len(positions))):
            values[position] = text
            if codes is not None:
                codes[position] = len(named)
                named.append(text)
    return {"values": values, "codes": codes, "named": named}


def header_of(data):
    need(len(data) >= 112 and data[:4] == b"SSEG", "magic")
    version, length, refuse = struct.unpack_from("<HHI", data, 4)
    need(112 <= length <= len(data), "length")
    need(struct.unpack_from("<Q", data, length - 8)[0] == xxh64(data[:length - 8]), "header checksum")
    if version != 1 or refuse != 0:
        raise Newer("version %d" % version)
    names = ("life", "count", "first_ms", "first_seq", "last_ms", "last_seq", "foreign", "zero",
             "bytes", "raw", "body", "body_sum")
    header = dict(zip(names, struct.unpack_from("<Q4xI4QII4Q", data, 16)))
    header["namespace"], header["length"] = data[24:27].strip(b"\0"), length
    return header


def decode(data):
    """The header and a list of (ms, seq, foreign, [(name, value)])."""
    header = header_of(data)
    count, brand = header["count"], header["namespace"]
    body = data[header["length"]:]
    need(len(body) == header["body"] and xxh64(body) == header["body_sum"], "body checksum")
    reader = Reader(unpack(body, header["raw"]))
    name_count, column_count, shape_count = reader.varint(), reader.varint(), reader.varint()
    names = reader.texts(name_count) if name_count else []
    column_names = []
    for _ in range(column_count):
        name = reader.varint()
        column_names.append((name, reader.varint() if name == 0 else None))
    shapes = [[reader.varint() for _ in range(reader.varint())] for _ in range(shape_count)]
    codes = reader.integers(count)
    entries_of = [[i for i in range(count) if codes[i] == s] for s in range(shape_count)]

    ms_list = [header["first_ms"] + ms & M64 for ms in reader.integers(count)]
    base, ids = reader.varint(), []
    for ms, seq in zip(ms_list, reader.integers(count)):
        start = ids[-1][1] + 1 if ids and ids[-1][0] == ms else base
        ids.append((ms, start + seq & M64))
    need(ids == sorted(set(ids)), "order of ids")
    need(ids[0] == (header["first_ms"], header["first_seq"]), "first id")
    need(ids[-1] == (header["last_ms"], header["last_seq"]), "last id")

    columns = []
    for number, (name, values) in enumerate(column_names):
        owners = [i for s, shape in enumerate(shapes) for column in shape if column == number + 1
                  for i in entries_of[s]]
        times = None if name == 0 else [ids[i][0] for i in owners]
        columns.append(column_values(reader, columns, times, header["first_ms"],
                                     values if name == 0 else len(owners)))
    need(reader.at == len(reader.data), "bytes left over")

    next_value, entries = [0] * column_count, [None] * count
    for s, shape in enumerate(shapes):
        fields = {i: [] for i in entries_of[s]}
        for column in shape:
            for i in entries_of[s]:
                if column == 0:
                    snowflake = ids[i][0] - EPOCH << 22 | ids[i][1]
                    fields[i].append((b"id", branded(brand, snowflake)))
                else:
                    value = columns[column - 1]["values"][next_value[column - 1]]
                    next_value[column - 1] += 1
                    fields[i].append((names[column_names[column - 1][0] - 1], value))
        for i in entries_of[s]:
            entries[i] = (*ids[i], bool(brand) and 0 not in shape, fields[i])
    need(sum(e[2] for e in entries) == header["foreign"], "foreign count")
    total = sum(len(n) + len(v) for e in entries for n, v in e[3])
    need(total == header["bytes"], "bytes of names and values")
    return header, entries


def shown(text):
    return "".join(chr(b) if 0x21 <= b <= 0x7E and b not in b"\\=" else "\\x%02x" % b for b in text)


def dump(data):
    header, entries = decode(data)
    lines = ["segment life=%d namespace=%s first=%d-%d last=%d-%d count=%d foreign=%d bytes=%d" % (
        header["life"], header["namespace"].decode() or "-", header["first_ms"], header["first_seq"],
        header["last_ms"], header["last_seq"], header["count"], header["foreign"], header["bytes"])]
    for ms, seq, foreign, fields in entries:
        pairs = "".join(" %s=%s" % (shown(name), shown(value)) for name, value in fields)
        lines.append("%d-%d %s%s" % (ms, seq, "f" if foreign else "-", pairs))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as source:
        sys.stdout.write(dump(source.read()))
