/* What the program says: results on stdout (text, table or JSON), talk on stderr, a progress bar on a terminal. */
#ifndef SILT_OUT_H
#define SILT_OUT_H

#include <stdio.h>

#include "entry.h"

/* Results are gathered and written in large pieces. A failure to gather or write is kept and told by silt_out_flush. {0} is empty. */
struct silt_out {
    struct silt_buf buf;
    enum silt_status status; /* the first failure */
    int write_errno;
    bool after_value; /* JSON: a comma is due before the next value */
};
/* Writes what is gathered. Fails with SILT_ERR_MEMORY, or the code of the write's errno. */
SILT_MUST_USE enum silt_status silt_out_flush(struct silt_out *out, struct silt_err *err);
/* Writes what was gathered, so that a word on stderr stands behind it on a terminal; a failure is told by the flush at the end. */
void silt_out_catch_up(struct silt_out *out);
void silt_out_release(struct silt_out *out);
/* Writes when much is gathered; call it after each line. */
void silt_out_line_done(struct silt_out *out);

void silt_out_text(struct silt_out *out, const char *text);
void silt_out_printf(struct silt_out *out, const char *format, ...) SILT_PRINTF(2, 3);
/* Any bytes for a person: UTF-8 as it is, control and broken bytes as \xHH. `word`: in quotes where it would not read as one word. */
void silt_out_bytes(struct silt_out *out, struct silt_view bytes, bool word);

/* ---- JSON ---- */
void silt_json_open(struct silt_out *out, char bracket);  /* '{' or '[' */
void silt_json_close(struct silt_out *out, char bracket); /* '}' or ']' */
void silt_json_name(struct silt_out *out, const char *name);
void silt_json_bytes(struct silt_out *out,
                     struct silt_view bytes);               /* {"b64": ...} where not UTF-8 */
void silt_json_str(struct silt_out *out, const char *text); /* NULL: null */
void silt_json_u64(struct silt_out *out, uint64_t value);
void silt_json_bool(struct silt_out *out, bool value);
void silt_json_null(struct silt_out *out);
void silt_json_wire_id(struct silt_out *out, struct silt_wire_id id);
/* An end of line; the next value starts afresh. */
void silt_json_end_line(struct silt_out *out);
bool silt_is_utf8(struct silt_view bytes);

/* {"id": "ms-seq", "branded": "..."|null, "instant": "..."|null} */
void silt_json_id(struct silt_out *out, struct silt_wire_id id, struct silt_namespace ns);
/* The entry as design.md §8 has it, without its closing brace, so that a caller may add fields. */
void silt_json_entry(struct silt_out *out, const struct silt_entry *entry,
                     struct silt_namespace ns);
/* "EVT...  2026-...Z  name=value ..." in one line. */
void silt_out_entry(struct silt_out *out, const struct silt_entry *entry, struct silt_namespace ns);
/* The branded form where there is one, else the wire id. At least SILT_WIRE_ID_TEXT bytes. */
void silt_id_text(struct silt_wire_id id, struct silt_namespace ns, char ret[SILT_WIRE_ID_TEXT]);
/* The id's instant, or "" beyond what can be written. At least SILT_INSTANT_TEXT bytes. */
void silt_id_instant(struct silt_wire_id id, char ret[32]);
/* "1,234,567" and "12.3 MiB". */
const char *silt_count_text(uint64_t count, char ret[32]);
const char *silt_bytes_text(uint64_t bytes, char ret[32]);

/* ---- a table: cells are gathered, columns are as wide as they need to be ---- */
struct silt_table {
    struct silt_buf cells; /* each terminated */
    size_t column_count;
    const char *right; /* a letter per column: 'r' right-aligned, else left */
};
void silt_table_cell(struct silt_out *out, struct silt_table *table, const char *format, ...)
    SILT_PRINTF(3, 4);
void silt_table_print(struct silt_out *out, struct silt_table *table); /* and releases it */

/* ---- talk ---- */
/* "silt: ..." on stderr. */
void silt_say(const char *format, ...) SILT_PRINTF(1, 2);
/* A failure: the sentence, the stream where it is known, the hint on a line of its own. */
void silt_say_err(const struct silt_err *err);

/* A bar on stderr, if that is a terminal, from the first second on. {0} starts. total 0: unknown. */
struct silt_progress {
    long long begun_ms, shown_ms;
    const char *what;
};
void silt_progress(struct silt_progress *progress, const char *what, uint64_t done, uint64_t total);
void silt_progress_end(struct silt_progress *progress); /* wipes it */
long long silt_clock_ms(void);                          /* monotonic */
uint64_t silt_wall_ms(void);

#endif
