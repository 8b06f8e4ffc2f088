"""The second decoder: segments read by what format/README.md says, and by nothing else.

It was written from that page without the C sources beside it, and is checked against them. Where the two differ, the page
decides, or the page is mended. It knows no column chooser and no store. Plain rather than fast.
"""
import struct

import xxhash
import zstandard

EPOCH_MS = 1704067200000
DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
HEADER = struct.Struct("<4sHHIIQ3sBIQQQQIIQQQQQ")
MASK = (1 << 64) - 1
MOST = {"entries": 65536, "raw": 1 << 30, "values": 1 << 24, "places": 1 << 20, "dictionary": 65536, "names": 1 << 20,
        "columns": 1 << 21, "fields": 1 << 20,
        "entry bytes": 512 << 20}
CONSTANT, TEXT, NUMBER, NEAR, BRANDED, CODES, MAPPED = range(7)
EXCEPTIONS = RUNNING = 0x10
MUST_REFUSE_KNOWN = 0


class Damaged(ValueError):
    """The bytes are not what was written."""


class Newer(ValueError):
    """The bytes are whole, but of a format that this decoder does not know."""


def need(truth, what):
    if not truth:
        raise Damaged(what)


class Raw:
    """The raw columns, read once from front to back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(count <= len(self.data) - self.at, f"{count} bytes wanted at {self.at}, {len(self.data) - self.at} there")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        need(value <= MASK and (byte or shift == 7), f"varint before {self.at} is too large or not the shortest")
        return value

    def integers(self, count):
        """Offsets in byte planes over a base, as they are or as running sums."""
        need(count > 0, "no integers")
        form = self.take(1)[0]
        width = form & 0x0F
        need(width <= 8 and form & ~0x1F == 0, f"form of integers {form:#x}")
        base = self.varint()
        base = base >> 1 ^ -(base & 1)
        first = self.varint() if form & RUNNING else None
        stored = count - 1 if form & RUNNING else count
        planes = [self.take(stored) for _ in range(width)]
        offsets = [0] * stored
        for nth, plane in enumerate(planes):
            offsets = [offset | byte << 8 * nth for offset, byte in zip(offsets, plane)]
        if first is None:
            return [base + offset & MASK for offset in offsets]
        sums = [first]
        for offset in offsets:
            sums.append(sums[-1] + base + offset & MASK)
        return sums

    def texts(self, count):
        if count == 0:
            return []
        lengths = self.integers(count)
        need(sum(lengths) <= len(self.data) - self.at, "texts longer than the columns")
        return [self.take(length) for length in lengths]


class Column:
    """One column: whose it is, which entries its values stand in, and after `read` the values."""

    def __init__(self, name, count):
        self.name, self.count, self.rows = name, count, []
        self.kind = self.values = self.codes = self.code_count = self.of = None

    def read(self, raw, before, ids):
        """Reads the payload; `before` are the columns in front of this one."""
        byte = raw.take(1)[0]
        self.kind = byte & ~EXCEPTIONS
        need(self.kind <= MAPPED, f"kind of column {byte:#x}")
        need(not byte & EXCEPTIONS or self.kind >= NUMBER, f"exceptions of kind {self.kind}")
        value_at = self.payload(raw, before, ids)
        self.values = [value_at(at) for at in range(self.count)]
        if not byte & EXCEPTIONS:
            return
        need(not self.of or self.of.count <= 4 * self.count, "exceptions behind values of a longer column")
        count = raw.varint()
        need(0 < count <= self.count, f"{count} exceptions of {self.count} values")
        positions = raw.integers(count)
        need(all(a < b for a, b in zip(positions, positions[1:])) and positions[-1] < self.count, "positions of exceptions")
        for at, value in zip(positions, raw.texts(count)):
            self.values[at] = value
            if self.kind == CODES:
                self.codes[at] = self.code_count
                self.code_count += 1

    def payload(self, raw, before, ids):
        """The function from a position to its value."""
        if self.kind == CONSTANT:
            value = raw.take(raw.varint())
            return lambda at: value
        if self.kind == TEXT:
            texts = raw.texts(self.count)
            return lambda at: texts[at]
        if self.kind == NUMBER:
            numbers = raw.integers(self.count)
            return lambda at: b"%d" % numbers[at]
        if self.kind == NEAR:
            numbers = raw.integers(self.count)
            return lambda at: b"%d" % (numbers[at] + ids[self.rows[at]][0] & MASK)
        if self.kind == BRANDED:
            letters = raw.take(3)
            distances, tails = raw.integers(self.count), raw.integers(self.count)
            return lambda at: branded(letters, ids[self.rows[at]][0] - distances[at] & MASK, tails[at])
        if self.kind == CODES:
            self.of = named(before, raw.varint(), CONSTANT, BRANDED)
            self.codes, self.code_count = raw.integers(self.count), self.of.count
            return lambda at: pick(self.of.values, self.codes[at])
        codes = named(before, raw.varint(), CODES, CODES)
        need(codes.count == self.count and codes.code_count <= 4 * self.count, "mapped from a column of another length or too many codes")
        self.of = named(before, raw.varint(), CONSTANT, BRANDED)
        mapping = [pick(self.of.values, code) for code in raw.integers(codes.code_count)]
        return lambda at: mapping[codes.codes[at]]


def named(before, index, lowest, highest):
    need(index < len(before), f"column {index} does not stand before")
    need(lowest <= before[index].kind <= highest, f"column {index} is of kind {before[index].kind}")
    need(highest == CODES or before[index].count <= MOST["dictionary"], f"column {index} is too long to take values of")
    return before[index]


def pick(values, code):
    need(code < len(values), f"code {code} of {len(values)}")
    return values[code]


def branded(letters, ms, tail):
    """The 14 bytes of a branded id."""
    need(EPOCH_MS <= ms < EPOCH_MS + (1 << 41) and tail < 1 << 22, f"{ms} ms, tail {tail} have no branded form")
    snowflake = ms - EPOCH_MS << 22 | tail
    digits = bytearray()
    for _ in range(11):
        snowflake, digit = divmod(snowflake, 62)
        digits.append(DIGITS[digit])
    return letters + bytes(reversed(digits))


def read_header(data):
    """The facts of the header, its checksum and limits verified."""
    need(len(data) >= 8 and data[:4] == b"SSEG", "no segment")
    version, length = struct.unpack_from("<HH", data, 4)
    need(16 <= length <= len(data), f"header of {length} bytes")
    need(xxhash.xxh64(data[:length - 8]).intdigest() == int.from_bytes(data[length - 8:length], "little"), "checksum of the header")
    must_refuse = int.from_bytes(data[8:12], "little")
    if version != 1 or must_refuse & ~MUST_REFUSE_KNOWN:
        raise Newer(f"version {version}, must-refuse bits {must_refuse:#x}")
    need(length >= HEADER.size, f"header of {length} bytes")
    names = ("magic version length must_refuse may_ignore life namespace namespace_end entries first_ms first_seq last_ms last_seq"
             " foreign zero bytes raw_bytes body_bytes body_checksum checksum").split()
    header = dict(zip(names, HEADER.unpack_from(data)))
    space = header["namespace"]
    need(header["namespace_end"] == 0 and (space == bytes(3) or all(0x41 <= c <= 0x5A for c in space)), f"namespace {space!r}")
    need(header["zero"] == 0, "the zero of the header")
    need(1 <= header["entries"] <= MOST["entries"] and header["raw_bytes"] <= MOST["raw"], "header beyond the limits")
    return header


def read_body(data, header):
    """The raw columns out of the body, their length and checksum verified."""
    body = data[header["length"]:]
    need(len(body) == header["body_bytes"], f"body of {len(body)} bytes, the header says {header['body_bytes']}")
    need(xxhash.xxh64(body).intdigest() == header["body_checksum"], "checksum of the body")
    try:
        need(zstandard.frame_content_size(body) == header["raw_bytes"], "content size of the frame")
        frame = zstandard.ZstdDecompressor().decompressobj()
        raw = frame.decompress(body)
    except zstandard.ZstdError as error:
        raise Damaged(f"frame: {error}") from error
    need(len(raw) == header["raw_bytes"] and not frame.unused_data, "length of the frame")
    return raw


def read_columns_and_shapes(raw, header):
    """Columns without payloads, and for each entry its shape: a list of columns, None for the derived id."""
    name_count, column_count, shape_count = raw.varint(), raw.varint(), raw.varint()
    need(name_count <= MOST["names"] and column_count <= MOST["columns"] and shape_count <= header["entries"], "counts")
    names = raw.texts(name_count)
    columns = []
    for _ in range(column_count):
        name = raw.varint()
        count = raw.varint() if name == 0 else 0
        need(name <= name_count and (name or 1 <= count <= MOST["dictionary"]), "name of a column or values of a dictionary")
        columns.append(Column(names[name - 1] if name else None, count))
    need(sum(column.count for column in columns) <= MOST["values"], "values of dictionaries")
    shapes, places = [], 0
    for _ in range(shape_count):
        field_count = raw.varint()
        places += field_count
        need(field_count <= MOST["fields"] and places <= MOST["places"], "fields of shapes beyond the limits")
        shape = [raw.varint() for _ in range(field_count)]
        need(all(field <= column_count for field in shape), "column of a shape")
        shape = [columns[field - 1] if field else None for field in shape]
        need(all(column is None or column.name is not None for column in shape), "a dictionary as a field")
        need(shape.count(None) <= (0 if header["namespace"] == bytes(3) else 1), "derived ids of a shape")
        shapes.append(shape)
    codes = raw.integers(header["entries"])
    need(set(codes) == set(range(shape_count)), "shape codes")
    return columns, shapes, codes


def read_ids(raw, header):
    count = header["entries"]
    ms = [header["first_ms"] + distance & MASK for distance in raw.integers(count)]
    start = raw.varint()
    ids = []
    for at, distance in enumerate(raw.integers(count)):
        expected = ids[-1][1] + 1 if at and ms[at] == ms[at - 1] else start
        ids.append((ms[at], expected + distance & MASK))
    need(all(a < b for a, b in zip(ids, ids[1:])), "ids not ascending")
    need(ids[0] == (header["first_ms"], header["first_seq"]) and ids[-1] == (header["last_ms"], header["last_seq"]),
         "first or last id is not the header's")
    return ids


def place_values(columns, shapes, codes):
    """Gives every column the entries its values stand in; returns for each entry its (column, position) pairs."""
    members = [[] for _ in shapes]
    for entry, code in enumerate(codes):
        members[code].append(entry)
    need(sum(len(shape) * len(rows) for shape, rows in zip(shapes, members)) <= MOST["values"], "too many values")
    fields = [[] for _ in codes]
    for shape, rows in zip(shapes, members):
        for column in shape:
            for entry in rows:
                fields[entry].append((column, len(column.rows) if column else 0))
                if column:
                    column.rows.append(entry)
    for column in columns:
        if column.name is None:
            column.rows = [0] * column.count
        need(column.rows, "a column without a place")
        column.count = len(column.rows)
    return fields


def decode(data):
    """The header's facts and the entries, each ((ms, seq), [(name, value), ...], foreign), of one segment."""
    header = read_header(data)
    raw = Raw(read_body(data, header))
    columns, shapes, codes = read_columns_and_shapes(raw, header)
    ids = read_ids(raw, header)
    places = place_values(columns, shapes, codes)
    for at, column in enumerate(columns):
        column.read(raw, columns[:at], ids)
    need(raw.at == len(raw.data), "bytes behind the last column")
    entries = []
    for (ms, seq), place in zip(ids, places):
        fields = [(b"id", branded(header["namespace"], ms, seq)) if column is None else (column.name, column.values[at])
                  for column, at in place]
        foreign = header["namespace"] != bytes(3) and not any(column is None for column, _ in place)
        entries.append(((ms, seq), fields, foreign))
    sizes = [sum(len(name) + len(value) for name, value in fields) for _, fields, _ in entries]
    need(sum(sizes) == header["bytes"] and max(sizes) <= MOST["entry bytes"], "bytes of names and values")
    need(sum(foreign for _, _, foreign in entries) == header["foreign"], "foreign entries")
    return header, entries
