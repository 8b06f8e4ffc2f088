/* Set-up that the tests of connection, look and page share. */
#ifndef TEST_CONN_HELP_H
#define TEST_CONN_HELP_H

#include "harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"

#define GREETING TEST_ALWAYS("INFO server", "$22\r\nredis_version:7.0.15\r\n\r\n")

/* Fails the test unless the call, which has `&err` for its last argument, gives that status. */
#define ck_gives(status_, call)                                                        \
    do {                                                                               \
        memset(&err, 0, sizeof err);                                                   \
        enum silt_status got_ = (call);                                                \
        ck_assert_msg(got_ == (status_), "%s: %s (%s)", #call, silt_status_name(got_), \
                      err.sentence);                                                   \
        if (got_ < 0) ck_assert_int_eq(err.code, got_);                                \
    } while (0)

static inline struct silt_conn_options options_for(const char *address)
{
    struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
    options.address = address;
    return options;
}

static inline struct silt_conn *new_conn(const struct silt_conn_options *options)
{
    struct silt_conn *conn = NULL;
    struct silt_err err = {0};
    if (silt_conn_new(options, &conn, &err) != SILT_OK) test_die("%s", err.sentence);
    return conn;
}

static inline struct silt_conn *conn_to(const char *address)
{
    struct silt_conn_options options = options_for(address);
    return new_conn(&options);
}

/* One command of words, and its reply. */
static inline enum silt_status call_words(struct silt_conn *conn, struct silt_reply *reply,
                                          struct silt_err *err, ...) __attribute__((sentinel));
static inline enum silt_status call_words(struct silt_conn *conn, struct silt_reply *reply,
                                          struct silt_err *err, ...)
{
    struct silt_view argv[16];
    size_t argc = 0;
    va_list words;
    va_start(words, err);
    for (const char *word; argc < 16 && (word = va_arg(words, const char *)) != NULL;)
        argv[argc++] = silt_view_str(word);
    va_end(words);
    return silt_conn_call(conn, argv, argc, reply, err);
}
#define CALL(...) call_words(conn, &reply, &err, __VA_ARGS__, (char *)NULL)

static inline bool text_is(const struct silt_reply *reply, size_t node, const char *text)
{
    return silt_reply_is_text(reply, node) &&
           silt_view_equal(silt_reply_text(reply, node), silt_view_str(text));
}

#endif
