/* Texts that people and programs hand us. The first byte chooses: ids, bounds, windows, instants, durations and keys; a cursor's position behind a right
 * checksum; a record of `silt load`; the name of a marker; requests on siltd's control socket. What is accepted is written again to a text that reads the same. */
#include "fuzz.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "cursor_priv.h"

#include "format/bound.h"
#include "format/instant.h"
#include "format/stream_key.h"
#include "look.h"
#include "records.h"

#define CHECK_SEED 0x73696c74706f7331ULL /* of mergeread/position.c */

/* ---- what people type ---- */

static void wire(struct silt_view text)
{
    struct silt_wire_id id, again;
    char shown[SILT_WIRE_ID_TEXT];
    if (silt_wire_id_parse(text, &id, NULL) != SILT_OK) return;
    size_t len = silt_wire_id_format(id, shown);
    if (silt_wire_id_parse(silt_view(shown, len), &again, NULL) != SILT_OK ||
        !silt_wire_id_equal(id, again))
        abort();
}

static void branded(struct silt_view text)
{
    struct silt_branded_id id;
    char shown[SILT_BRANDED_ID_LEN];
    uint64_t back;
    if (silt_branded_id_parse(text, &id, NULL) != SILT_OK) return;
    if (silt_branded_id_format(id, shown) != SILT_OK || memcmp(shown, text.at, sizeof shown) != 0)
        abort();
    if (!silt_snowflake_from_wire(silt_snowflake_to_wire(id.snowflake), &back) ||
        back != id.snowflake)
        abort();
}

static void bounds(struct silt_view text)
{
    static const struct silt_namespace evt = {"EVT"}, none = {{0}};
    struct silt_wire_id from, to;
    struct silt_range range;
    bool a = silt_bound_parse(text, SILT_EDGE_FROM, evt, &from, NULL) == SILT_OK;
    bool b = silt_bound_parse(text, SILT_EDGE_TO, none, &to, NULL) == SILT_OK;
    if (a && b && text.len != 0 && text.at[0] != '(' && silt_wire_id_less(to, from)) abort();
    if (silt_window_parse(text, evt, &range, NULL) == SILT_OK &&
        silt_wire_id_less(range.to, range.from))
        abort();
}

static void keys(struct silt_view text)
{
    struct silt_stream_key key;
    static struct silt_buf seam, claim;
    silt_buf_clear(&seam);
    silt_buf_clear(&claim);
    (void)silt_stream_key_parse(text, &key, NULL);
    (void)silt_glob_match(text, text);
    if (silt_key_seam(text, &seam, NULL) == SILT_OK &&
        (silt_key_slot(silt_buf_view(&seam)) != silt_key_slot(text) ||
         !silt_key_is_ours(silt_buf_view(&seam))))
        abort();
    if (silt_key_claim(text, &claim, NULL) == SILT_OK &&
        silt_key_slot(silt_buf_view(&claim)) != silt_key_slot(text))
        abort();
}

static void typed(struct silt_view text)
{
    struct silt_instant instant;
    uint64_t ms;
    char shown[64];
    wire(text);
    branded(text);
    bounds(text);
    keys(text);
    (void)silt_instant_parse(text, &instant, NULL);
    (void)silt_duration_parse(text, &ms, NULL);
    silt_escape(text, shown, sizeof shown);
    if (strlen(shown) >= sizeof shown) abort();
}

/* ---- positions and markers ---- */

static void position(struct silt_view body)
{
    static struct silt_buf text;
    struct silt_position place, back;
    char shown[SILT_POSITION_TEXT], again[SILT_POSITION_TEXT];
    (void)!silt_position_parse(body, &place, NULL);
    silt_buf_clear(&text);
    if (silt_buf_put(&text, body.at, body.len) != SILT_OK ||
        silt_buf_printf(&text, "%016" PRIx64, silt_checksum(body, CHECK_SEED)) != SILT_OK)
        abort();
    if (silt_position_parse(silt_buf_view(&text), &place, NULL) != SILT_OK) return;
    size_t len = silt_position_format(&place, shown);
    if (len >= sizeof shown) abort();
    if (silt_position_parse(silt_view(shown, len), &back, NULL) != SILT_OK) abort();
    if (silt_position_format(&back, again) != len || memcmp(shown, again, len) != 0) abort();
}

static void marker(struct silt_view name)
{
    struct silt_marker parsed;
    char again[SILT_MARKER_TEXT];
    if (!silt_marker_parse(name, &parsed)) return;
    size_t len = silt_marker_format(&parsed, again);
    if (!silt_view_equal(silt_view(again, len), name)) abort();
}

/* ---- records ---- */

static void record(struct silt_view line, bool branded_stream)
{
    static struct silt_record parsed;
    struct silt_record_ids ids = {.shift_ms = 0};
    struct silt_err err = {0};
    if (branded_stream) {
        memcpy(ids.ns.letters, "EVT", 3);
        if (silt_mint_init(&ids.mint, 0, &err) != SILT_OK) abort();
    }
    enum silt_status status = silt_record_parse(&parsed, &ids, line, 1, &err);
    if (status != SILT_OK) {
        if (strncmp(err.sentence, "line 1: ", 8) != 0) abort();
        return;
    }
    size_t at;
    if (branded_stream && !silt_entry_is_ours(&parsed.entry, ids.ns, &at)) abort();
    volatile uint64_t sink = silt_entry_digest(&parsed.entry, 0);
    (void)sink;
}

/* ---- the control socket ---- */

static struct event_base *base;
static struct silt_control *control;
static struct sockaddr_un address;
static uint64_t due; /* the ticket of a request that waits */

static json_t *give_status(void *ctx, const struct silt_view *key, struct silt_err *err)
{
    (void)ctx;
    if (!key || key->len != 4) return json_object();
    silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "no such stream");
    return NULL;
}

static enum silt_status take_later(void *ctx, const struct silt_control_request *request,
                                   uint64_t ticket, struct silt_err *err)
{
    (void)ctx;
    if (request->key && request->key->len == 4)
        return silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "no such stream");
    due = ticket;
    return SILT_OK;
}

static void remove_socket(void)
{
    silt_control_close(control);
    event_base_free(base);
}

static void open_control(void)
{
    static const struct silt_control_handler handler = {NULL, give_status, take_later};
    const char *dir = getenv("TMPDIR");
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/silt-fuzz-%d.sock",
             dir ? dir : "/tmp", (int)getpid());
    address.sun_family = AF_UNIX;
    base = event_base_new();
    if (!base || silt_control_open(base, address.sun_path, &handler, &control, NULL) != SILT_OK)
        abort();
    atexit(remove_socket);
}

/* Each line of an answer is JSON and says whether it is ok. */
static void check_answers(const char *text, size_t len)
{
    const char *end;
    for (; (end = memchr(text, '\n', len)) != NULL;
         len -= (size_t)(end + 1 - text), text = end + 1) {
        json_t *line = json_loadb(text, (size_t)(end - text), JSON_ALLOW_NUL, NULL);
        if (!json_is_boolean(json_object_get(line, "ok"))) abort();
        json_decref(line);
    }
    if (len > 0) abort();
}

static void requests(struct silt_view text)
{
    static char answers[1 << 20];
    size_t got = 0;
    if (!base) open_control();
    if (text.len > SILT_CONTROL_REQUEST_MAX) return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) abort();
    if (text.len > 0 && send(fd, text.at, text.len, MSG_NOSIGNAL) != (ssize_t)text.len) abort();
    shutdown(fd, SHUT_WR);
    for (int rounds = 0, quiet = 0; rounds < 20000 && quiet < 3; rounds++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        if (due != 0) silt_control_answer(control, due, SILT_OK, json_object(), NULL);
        due = 0;
        ssize_t more = recv(fd, answers + got, sizeof answers - got, 0);
        if (more == 0) break;
        if (more > 0) got += (size_t)more;
        quiet = more > 0 ? 0 : quiet + 1;
    }
    close(fd);
    event_base_loop(base, EVLOOP_NONBLOCK);
    check_answers(answers, got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct silt_view text = silt_view(data + 1, size - 1);
    switch (data[0] % 8) {
    case 1: position(text); break;
    case 2: record(text, false); break;
    case 3: record(text, true); break;
    case 4: marker(text); break;
    case 5: requests(text); break;
    default: typed(text);
    }
    return 0;
}
