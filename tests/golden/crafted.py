"""Segments put together by hand from the sentences of format/README.md: what a decoder must read though no encoder of ours writes it,
and what it must refuse though every checksum is right. CASES: a name, the segment, its entries or what the refusal is."""
import struct

import xxhash
import zstandard

MS = 1767225600000
IDS = [(MS, 1), (MS, 2), (MS + 5, 0)]
NONE, EVT = bytes(3), b"EVT"
MASK = (1 << 64) - 1
CONSTANT, TEXT, NUMBER, NEAR, BRANDED, CODES, MAPPED = range(7)
EXCEPTIONS = 0x10
DAMAGED = "damaged"


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def planes(offsets, width):
    return b"".join(bytes(offset >> 8 * nth & 255 for offset in offsets) for nth in range(width))


def integers(values, base=0, width=1):
    return bytes([width]) + zigzag(base) + planes([value - base & MASK for value in values], width)


def sums(values, base=0, width=1):
    steps = [b - a - base & MASK for a, b in zip(values, values[1:])]
    return bytes([0x10 | width]) + zigzag(base) + varint(values[0]) + planes(steps, width)


def texts(values):
    return integers([len(value) for value in values]) + b"".join(values) if values else b""


def text(*values):
    return bytes([TEXT]) + texts(values)


def codes(column, values, exceptions=b""):
    return bytes([CODES | (EXCEPTIONS if exceptions else 0)]) + varint(column) + integers(values) + exceptions


def mapped(codes_of, values_of, mapping):
    return bytes([MAPPED]) + varint(codes_of) + varint(values_of) + integers(mapping)


def exceptions(positions, values):
    return varint(len(positions)) + integers(positions) + texts(values)


def dictionary(count):
    return varint(0) + varint(count)


def put_ids(ids, start=0):
    expected = [a[1] + 1 if at and a[0] == b[0] else start for at, (a, b) in enumerate(zip([ids[0]] + ids, ids))]
    return integers([ms - ids[0][0] & MASK for ms, _ in ids], width=8) + varint(start) + integers(
        [seq - want & MASK for (_, seq), want in zip(ids, expected)], width=8)


def header(ids, count, namespace, foreign, size, raw_size, body, **other):
    facts = {"magic": b"SSEG", "version": 1, "length": 112, "must": 0, "may": 0, "zero": 0, "end": 0, "more": b"", **other}
    head = struct.pack("<4sHHIIQ3sBIQQQQIIQQQQ", facts["magic"], facts["version"], facts["length"], facts["must"], facts["may"], 7, namespace,
                       facts["end"], count, *ids[0], *ids[-1], foreign, facts["zero"], size, raw_size, len(body),
                       xxhash.xxh64(body).intdigest()) + facts["more"]
    return head + struct.pack("<Q", xxhash.xxh64(head).intdigest())


def craft(*payloads, names=(b"a",), columns=None, shapes=((1,),), shape_codes=None, ids=None, ids_bytes=None, namespace=NONE, foreign=0,
          size=6, counts=None, behind=b"", raw=None, raw_size=None, body=None, **other):
    """A segment of three entries of one text column unless told otherwise. `size`: bytes of names and values."""
    ids = ids or IDS
    columns = [varint(1)] if columns is None else columns
    if raw is None:
        raw = b"".join(varint(count) for count in counts or (len(names), len(columns), len(shapes))) + texts(list(names)) + b"".join(columns)
        raw += b"".join(varint(len(shape)) + b"".join(varint(field) for field in shape) for shape in shapes)
        raw += integers(shape_codes or [0] * len(ids)) + (put_ids(ids) if ids_bytes is None else ids_bytes)
        raw += b"".join(payloads) if payloads else text(b"x", b"y", b"z")[:None if len(ids) == 3 else 0]
        raw += behind
    body = zstandard.ZstdCompressor(level=1).compress(raw) if body is None else body(raw)
    return header(ids, len(ids), namespace, foreign, size, len(raw) if raw_size is None else raw_size, body, **other) + body


def many(names=1, dictionaries=0, values=1):
    """Names of no bytes and dictionaries of nothing, which cost next to nothing; one text column behind them."""
    raw = varint(names) + varint(dictionaries + 1) + varint(1) + b"\0\0" + dictionary(values) * dictionaries + varint(1)
    raw += varint(1) + varint(dictionaries + 1) + integers([0, 0, 0]) + put_ids(IDS) + b"\0\0" * dictionaries + text(b"x", b"y", b"z")
    return craft(raw=raw, size=3)


def of_long(count, a_count, behind_codes=0, mapped_exception=False):
    """A mapped column of three values: into a dictionary of `count`, from codes of one of `a_count` and some exceptions."""
    there = exceptions(list(range(behind_codes)), [b"0"] * behind_codes) if behind_codes else b""
    column = bytes([MAPPED | (EXCEPTIONS if mapped_exception else 0)]) + varint(2) + varint(0) + integers([0] * (a_count + behind_codes))
    return craft(text(*[b"0"] * count), text(*[b"0"] * a_count), codes(1, [0, 0, 0], there),
                 column + (exceptions([1], [b"0"]) if mapped_exception else b""), columns=[dictionary(count), dictionary(a_count), A, A],
                 shapes=((3, 4),), size=12)


def codes_of_long(count):
    return craft(text(*[b"0"] * count), codes(0, [0, 0, 0], exceptions([1], [b"0"])), columns=[dictionary(count), A], shapes=((2,),))


def entries(*values, ids=None, names=(b"a",)):
    """One entry for each tuple of values."""
    return [(id, list(zip(names, value if isinstance(value, tuple) else (value,)))) for id, value in zip(ids or IDS, values)]


def of_columns(want, *payloads, columns, **other):
    """A craft whose size is that of the entries it should give."""
    size = sum(len(name) + len(value) for _, fields in want for name, value in fields)
    return craft(*payloads, columns=columns, size=size, **other), want


XYZ = entries(b"x", b"y", b"z")
A, SHARED = varint(1), [dictionary(2), varint(1)]
BASE62 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def branded(letters, ms, tail):
    number, out = ms - 1704067200000 << 22 | tail, b""
    for _ in range(11):
        number, digit = divmod(number, 62)
        out = BASE62[digit:digit + 1] + out
    return letters + out


OWN = [(id, [(b"id", branded(EVT, *id))]) for id in IDS]
ZEROS = entries((b"0", b"0"), (b"0", b"0"), (b"0", b"0"), names=(b"a", b"a"))
TWO = entries((b"x", b"x"), (b"y", b"y"), (b"z", b"z"), names=(b"a", b"a"))
FAR = [(0, 1), (MASK, 0), (MASK, MASK)]

CASES = [
    # What must be read.
    ("text", craft(), XYZ),
    ("no_fields", craft(b"", names=(), columns=[], shapes=((),), size=0), [(id, []) for id in IDS]),
    ("one_entry_as_sums", *of_columns(entries(b"5", ids=IDS[:1]), bytes([NUMBER]) + sums([5], 3, 2), columns=[A], ids=IDS[:1])),
    ("number_goes_round_2_64", *of_columns(entries(b"0", b"1", b"18446744073709551615"),
                                           bytes([NUMBER]) + integers([0, 1, MASK], -2, 8), columns=[A])),
    ("sums_go_round_2_64", *of_columns(entries(b"18446744073709551615", b"2", b"0"),
                                       bytes([NUMBER]) + sums([MASK, 2, 0], -9, 8), columns=[A])),
    ("base_lowest_and_highest", *of_columns(entries(b"9223372036854775808", b"9223372036854775809", b"9223372036854775808"),
                                            bytes([NUMBER]) + integers([1 << 63, (1 << 63) + 1, 1 << 63], -(1 << 63)), columns=[A])),
    ("wider_than_needed", *of_columns(XYZ, bytes([TEXT]) + integers([1, 1, 1], 0, 8) + b"xyz", columns=[A])),
    ("near_goes_round_2_64", *of_columns(entries(b"0", b"%d" % (MS + 1), b"5"), bytes([NEAR]) + integers([-MS & MASK, 1, -MS & MASK], 0, 8),
        columns=[A])),
    ("branded_ahead_of_its_entry", *of_columns(entries(*(branded(b"JOB", id[0] + 3, at) for at, id in enumerate(IDS))),
                                               bytes([BRANDED]) + b"JOB" + integers([-3 & MASK] * 3, -3, 0) + integers([0, 1, 2]), columns=[A])),
    ("near_with_an_exception", *of_columns(entries(b"%d" % (MS + 2), b"0", b"%d" % (MS + 5)), bytes([NEAR | EXCEPTIONS]) + integers([2, 0, 0])
                                           + exceptions([1], [b"0"]), columns=[A])),
    ("codes_with_an_exception", *of_columns(entries(b"q", b"", b"p"), text(b"p", b"q"), codes(0, [1, 0, 0], exceptions([1], [b""])),
                                            columns=SHARED, shapes=((2,),))),
    ("constant_empty", *of_columns(entries(b"", b"", b""), bytes([CONSTANT]) + varint(0), columns=[A])),
    ("codes_of_a_dictionary", *of_columns(entries(b"q", b"p", b"q"), text(b"p", b"q"), codes(0, [1, 0, 1]), columns=SHARED, shapes=((2,),))),
    ("dictionary_near_the_first_entry", *of_columns(entries(b"%d" % (MS + 9), b"%d" % (MS + 7), b"%d" % (MS + 9)),
                                                    bytes([NEAR]) + integers([7, 9]), codes(0, [1, 0, 1]), columns=SHARED, shapes=((2,),))),
    ("codes_of_a_value_that_is_an_exception", *of_columns(entries(b"q", b"7", b"q"), bytes([NUMBER | EXCEPTIONS]) + integers([7, 255]) + exceptions([1], [b"q"]),
                                                          codes(0, [1, 0, 1]), columns=SHARED, shapes=((2,),))),
    ("codes_of_a_field", *of_columns(TWO, text(b"x", b"y", b"z"), codes(0, [0, 1, 2]), columns=[A, A], shapes=((1, 2),))),
    ("one_column_twice_in_a_shape", *of_columns(entries((b"x", b"u"), (b"y", b"v"), (b"z", b"w"), names=(b"a", b"a")),
                                                text(b"x", b"y", b"z", b"u", b"v", b"w"), columns=[A], shapes=((1, 1),))),
    ("places_by_shape_not_by_entry", *of_columns(XYZ[:1] + [(IDS[1], [(b"a", b"y"), (b"a", b"v")])] + XYZ[2:], text(b"x", b"z", b"y", b"v"),
                                                 columns=[A], shapes=((1,), (1, 1)), shape_codes=[0, 1, 0])),
    ("mapped", *of_columns(entries((b"p", b"1"), (b"q", b"2"), (b"p", b"1"), names=(b"a", b"b")), text(b"p", b"q"), codes(0, [0, 1, 0]),
                           bytes([NUMBER]) + integers([2, 1]), mapped(1, 2, [1, 0]), names=(b"a", b"b"),
                           columns=[dictionary(2), varint(1), dictionary(2), varint(2)], shapes=((2, 4),))),
    ("mapped_from_exceptions", *of_columns(
        entries((b"!", b"2"), (b"q", b"2"), (b"?", b"1"), names=(b"a", b"b")), text(b"p", b"q"), codes(0, [0, 1, 1], exceptions([0, 2], [b"!", b"?"])),
        text(b"1", b"2"), mapped(1, 2, [0, 1, 1, 0]), names=(b"a", b"b"),
        columns=[dictionary(2), varint(1), dictionary(2), varint(2)], shapes=((2, 4),))),
    ("exceptions_everywhere", *of_columns(XYZ, bytes([NUMBER | EXCEPTIONS]) + integers([0, 0, 0]) + exceptions([0, 1, 2], [b"x", b"y", b"z"]),
        columns=[A])),
    ("derived_id", *of_columns(OWN, b"", columns=[], names=(), shapes=((0,),), namespace=EVT)),
    ("foreign", *of_columns(XYZ, text(b"x", b"y", b"z"), columns=[A], namespace=EVT, foreign=3)),
    ("ids_from_end_to_end", craft(ids=FAR), entries(b"x", b"y", b"z", ids=FAR)),
    ("ids_from_another_start", craft(ids_bytes=put_ids(IDS, 77)), XYZ),
    ("may_ignore_bits", craft(may=0xFFFFFFFF), XYZ),
    ("longer_header", craft(may=8, length=121, more=b"whatever!"), XYZ),
    ("dictionary_not_used", craft(text(b"p"), text(b"x", b"y", b"z"), columns=[dictionary(1), A], shapes=((2,),)), XYZ),
    ("name_twice", craft(text(b"x", b"y", b"z"), names=(b"a", b"a")), XYZ),
    ("name_not_used", craft(names=(b"a", b"b")), XYZ),
    ("shape_twice", craft(shapes=((1,), (1,)), shape_codes=[0, 1, 0], size=6), entries(b"x", b"z", b"y")),
    ("id_told_in_words_is_foreign", *of_columns(OWN, text(*(fields[0][1] for _, fields in OWN)),
        columns=[A], names=(b"id",), namespace=EVT, foreign=3)),
    ("names_of_no_bytes", many(names=200), entries(b"x", b"y", b"z", names=(b"",))),
    ("dictionaries_of_nothing", many(dictionaries=200), entries(b"x", b"y", b"z", names=(b"",))),
    ("exceptions_of_codes_of_four_times", codes_of_long(12), entries(b"0", b"0", b"0")),
    ("mapped_to_four_times_with_exceptions", of_long(12, 2, mapped_exception=True), ZEROS),
    ("mapped_to_more_without_exceptions", of_long(100, 2), ZEROS),
    ("mapped_from_four_times", of_long(2, 10, 2), ZEROS),
    # What must be refused.
    ("exceptions_of_codes_of_more_than_four_times", codes_of_long(13), DAMAGED),
    ("mapped_to_more_with_exceptions", of_long(13, 2, mapped_exception=True), DAMAGED),
    ("mapped_from_more_than_four_times", of_long(2, 13), DAMAGED),
    ("mapped_from_more_by_exceptions", of_long(2, 11, 2), DAMAGED),
    ("newer_version", craft(version=2), "newer"),
    ("newer_must_refuse", craft(must=0x80000000), "newer"),
    ("newer_and_shorter", header(IDS, 3, NONE, 0, 6, 9, b"", version=9), "newer"),
    ("magic", craft(magic=b"SSEg"), DAMAGED),
    ("zero_of_the_header", craft(zero=1), DAMAGED),
    ("namespace_of_four", craft(namespace=EVT, foreign=3, end=0x41), DAMAGED),
    ("namespace_of_small_letters", craft(namespace=b"EvT", foreign=3), DAMAGED),
    ("namespace_half", craft(namespace=b"EV\0", foreign=3), DAMAGED),
    ("foreign_in_a_plain_stream", craft(foreign=3), DAMAGED),
    ("foreign_too_few", craft(namespace=EVT, foreign=2), DAMAGED),
    ("size_wrong", craft(size=5), DAMAGED),
    ("raw_size_wrong", craft(raw_size=9), DAMAGED),
    ("raw_size_beyond_the_limit", craft(raw_size=(1 << 30) + 1), DAMAGED),
    ("two_frames", craft(body=lambda raw: zstandard.compress(raw[:9]) + zstandard.compress(raw[9:])), DAMAGED),
    ("frame_and_an_empty_one", craft(body=lambda raw: zstandard.compress(raw) + zstandard.compress(b"")), DAMAGED),
    ("frame_without_content_size", craft(body=lambda raw: zstandard.ZstdCompressor(write_content_size=False).compress(raw)), DAMAGED),
    ("frame_cut", craft(body=lambda raw: zstandard.compress(raw)[:-1]), DAMAGED),
    ("body_empty", craft(body=lambda raw: b""), DAMAGED),
    ("byte_behind", craft(behind=b"\0"), DAMAGED),
    ("varint_not_shortest", craft(b"\x00\x81\x00x", size=6), DAMAGED),
    ("varint_of_65_bits", craft(bytes([NUMBER, 0x10, 0]) + b"\xff" * 9 + b"\x02"), DAMAGED),
    ("integers_of_width_9", craft(bytes([NUMBER, 9, 0]) + bytes(27)), DAMAGED),
    ("integers_of_another_form", craft(bytes([NUMBER, 0x21, 0]) + b"123"), DAMAGED),
    ("ids_equal", craft(ids=[IDS[0], IDS[0], IDS[2]]), DAMAGED),
    ("ids_descending", craft(ids=[IDS[0], (MS - 1, 5), IDS[2]]), DAMAGED),
    ("first_id_not_the_headers_seq", craft(ids_bytes=put_ids([(MS, 0), *IDS[1:]])), DAMAGED),
    ("first_id_not_the_headers", craft(ids_bytes=put_ids([(MS + 1, 1), *IDS[1:]])), DAMAGED),
    ("kind_7", craft(b"\x07" + texts([b"x", b"y", b"z"])), DAMAGED),
    ("kind_with_another_bit", craft(b"\x21" + texts([b"x", b"y", b"z"])), DAMAGED),
    ("exceptions_of_a_constant", craft(bytes([CONSTANT | EXCEPTIONS]) + b"\x01x" + exceptions([1], [b"y"])), DAMAGED),
    ("exceptions_of_text", craft(bytes([TEXT | EXCEPTIONS]) + texts([b"x", b"y", b"z"]) + exceptions([1], [b"y"])), DAMAGED),
    ("exceptions_none", craft(bytes([NUMBER | EXCEPTIONS]) + integers([1, 2, 3]) + b"\0"), DAMAGED),
    ("exceptions_descending", craft(bytes([NUMBER | EXCEPTIONS]) + integers([1, 2, 3]) + exceptions([2, 1], [b"y", b"z"])), DAMAGED),
    ("exceptions_twice_at_one_place", craft(bytes([NUMBER | EXCEPTIONS]) + integers([1, 2, 3]) + exceptions([1, 1], [b"y", b"z"])), DAMAGED),
    ("exception_behind_the_last", craft(bytes([NUMBER | EXCEPTIONS]) + integers([1, 2, 3]) + exceptions([3], [b"y"])), DAMAGED),
    ("exceptions_more_than_values", craft(bytes([NUMBER | EXCEPTIONS]) + integers([1, 2, 3]) + exceptions([0, 1, 2, 3], [b"y"] * 4)), DAMAGED),
    ("branded_before_its_time", craft(bytes([BRANDED]) + b"JOB" + integers([MS - 1704067199999] * 3, 0, 8) + integers([0, 1, 2]), size=45), DAMAGED),
    ("branded_after_its_time", craft(bytes([BRANDED]) + b"JOB" + integers([MS - 3903090455552 & MASK] * 3, 0, 8) + integers([0, 1, 2]), size=45), DAMAGED),
    ("branded_tail_too_large", craft(bytes([BRANDED]) + b"JOB" + integers([0, 0, 0]) + integers([0, 1 << 22, 2], 0, 3), size=45), DAMAGED),
    ("branded_unsound_under_an_exception", craft(bytes([BRANDED | EXCEPTIONS]) + b"JOB" + integers([0, 0, 0]) + integers([0, 1 << 22, 2], 0, 3)
                                                 + exceptions([1], [b"!"]), size=32), DAMAGED),
    ("code_too_large_under_an_exception", craft(text(b"p", b"q"), codes(0, [1, 0, 2], exceptions([2], [b"!"])), columns=SHARED,
                                                shapes=((2,),)), DAMAGED),
    ("no_shape_for_id_of_no_branded_form", craft(b"", columns=[], names=(), shapes=((0,),), size=48, namespace=EVT, ids=FAR), DAMAGED),
    ("code_too_large", craft(text(b"p", b"q"), codes(0, [1, 0, 2]), columns=SHARED, shapes=((2,),)), DAMAGED),
    ("codes_of_itself", craft(codes(0, [0, 0, 0])), DAMAGED),
    ("codes_of_a_later_column", craft(codes(1, [0, 1, 0]), text(b"p", b"q"), columns=[varint(1), dictionary(2)]), DAMAGED),
    ("codes_of_codes", craft(text(b"p", b"q"), codes(0, [0, 1]), codes(1, [0, 1, 0]),
                             columns=[dictionary(2), dictionary(2), A], shapes=((3,),)), DAMAGED),
    ("mapped_of_text", craft(text(b"p", b"q"), text(b"x", b"y", b"z"), mapped(1, 0, [0, 1, 0]),
                             columns=[dictionary(2), A, A], shapes=((2, 3),), size=12), DAMAGED),
    ("mapped_from_fewer_values", craft(text(b"p", b"q"), codes(0, [0, 1]), mapped(1, 0, [0, 1]),
                                       columns=[dictionary(2), dictionary(2), A], shapes=((3,),)), DAMAGED),
    ("mapped_to_codes", craft(text(b"p", b"q"), codes(0, [0, 1, 0]), mapped(1, 1, [0, 1]),
                              columns=[dictionary(2), A, A], shapes=((2, 3),), size=12), DAMAGED),
    ("map_too_large", craft(text(b"p", b"q"), codes(0, [0, 1, 0]), mapped(1, 0, [0, 2]),
                            columns=[dictionary(2), A, A], shapes=((2, 3),), size=12), DAMAGED),
    ("map_too_large_but_not_used", craft(text(b"p", b"q"), codes(0, [0, 0, 0]), mapped(1, 0, [0, 2]),
                                         columns=[dictionary(2), A, A], shapes=((2, 3),), size=12), DAMAGED),
    ("dictionary_as_a_field", craft(text(b"x", b"y", b"z"), columns=[dictionary(3)]), DAMAGED),
    ("dictionary_of_no_values", craft(b"", text(b"x", b"y", b"z"), columns=[dictionary(0), A], shapes=((2,),)), DAMAGED),
    ("dictionary_too_large", craft(b"\0\1x", text(b"x", b"y", b"z"), columns=[dictionary(65537), A], shapes=((2,),)), DAMAGED),
    ("column_not_used", craft(text(b"x", b"y", b"z"), b"\0\1x", columns=[A, A]), DAMAGED),
    ("name_not_there", craft(columns=[varint(2)]), DAMAGED),
    ("column_not_there", craft(shapes=((2,),)), DAMAGED),
    ("shape_not_there", craft(shape_codes=[0, 1, 0]), DAMAGED),
    ("shape_without_entry", craft(shapes=((1,), ())), DAMAGED),
    ("no_shapes", craft(shapes=()), DAMAGED),
    ("derived_id_in_a_plain_stream", craft(b"", columns=[], names=(), shapes=((0,),), size=48), DAMAGED),
    ("derived_id_twice", craft(b"", columns=[], names=(), shapes=((0, 0),), size=96, namespace=EVT), DAMAGED),
    ("derived_id_of_an_id_without_one", craft(b"",
                                              columns=[], names=(), shapes=((0,),), size=48, namespace=EVT, ids=[(MS, 1), (MS, 1 << 22), (MS + 5, 0)]), DAMAGED),
    ("counts_without_end", craft(counts=(1, 1, MASK)), DAMAGED),
    ("names_beyond_the_limit", many(names=(1 << 20) + 1), DAMAGED),
    ("columns_beyond_the_limit", many(dictionaries=1 << 21), DAMAGED),
    ("values_of_dictionaries_beyond_the_limit", many(dictionaries=257, values=65536), DAMAGED),
    ("names_without_end", craft(counts=(MASK, 1, 1)), DAMAGED),
    ("columns_without_end", craft(counts=(1, MASK, 1)), DAMAGED),
]
