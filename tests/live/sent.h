/* The rights of docs/rights.md, and what a line of MONITOR may be: a command of that page, with a bound. For the tests of rights and of the good neighbour. */
#ifndef TEST_SENT_H
#define TEST_SENT_H

#include <hiredis/hiredis.h>
#include <string.h>
#include <strings.h>

#include "format/status.h"
#include "harness/harness.h"

static const struct right {
    const char *name;
    enum silt_status without; /* SILT_OK: all goes on */
} rights[] = {
    {"xrange", SILT_ERR_SERVER_DENIED},
    {"xrevrange", SILT_OK},
    {"xtrim", SILT_ERR_SERVER_DENIED},
    {"xdel", SILT_OK},
    {"xinfo|stream", SILT_ERR_SERVER_DENIED},
    {"xinfo|groups", SILT_ERR_SERVER_DENIED},
    {"xpending", SILT_ERR_SERVER_DENIED},
    {"xgroup|create", SILT_ERR_SERVER_DENIED},
    {"xgroup|setid", SILT_ERR_SERVER_DENIED},
    {"xgroup|destroy", SILT_OK},
    {"eval", SILT_ERR_SERVER_DENIED},
    {"evalsha", SILT_ERR_SERVER_DENIED},
    {"script|load", SILT_OK},
    {"info", SILT_ERR_SERVER_DENIED},
    {"ping", SILT_OK},
    {"time", SILT_ERR_SERVER_DENIED},
    {"select", SILT_OK},
    {"get", SILT_OK},
    {"set", SILT_OK},
    {"multi", SILT_ERR_SERVER_DENIED},
    {"exec", SILT_ERR_SERVER_DENIED},
};
enum { RIGHTS = sizeof rights / sizeof rights[0] };
/* What patterns, `siltd --plan` and `silt read --follow` send besides. */
static const char *const rights_beside[] = {"scan", "memory|usage", "xread"};
enum { RIGHTS_BESIDE = sizeof rights_beside / sizeof rights_beside[0] };

/* The words of a MONITOR line from the command on: name -> "xinfo", second -> "STREAM". */
struct sent {
    char words[12][128];
    size_t count;
    bool by_script;
};

static inline void parse_line(const char *line, struct sent *sent)
{
    memset(sent, 0, sizeof *sent);
    sent->by_script = strstr(line, " lua] ") != NULL;
    const char *at = strchr(line, ']');
    while (at != NULL && (at = strchr(at, '"')) != NULL && sent->count < 12) {
        size_t len = 0;
        for (at++; *at != 0 && *at != '"'; at++) {
            if (*at == '\\' && at[1] != 0) at++;
            if (len + 1 < sizeof sent->words[0]) sent->words[sent->count][len++] = *at;
        }
        sent->count++;
        if (*at == '"') at++;
    }
}

static inline bool has(const struct sent *sent, const char *word)
{
    for (size_t i = 1; i < sent->count; i++)
        if (strcasecmp(sent->words[i], word) == 0) return true;
    return false;
}

static inline bool is_documented(const struct sent *sent)
{
    char whole[260];
    snprintf(whole, sizeof whole, "%s|%s", sent->words[0], sent->words[1]);
    if (strcasecmp(sent->words[0], "auth") == 0) return true; /* everybody may */
    for (size_t i = 0; i < RIGHTS; i++)
        if (strcasecmp(rights[i].name, sent->words[0]) == 0 ||
            strcasecmp(rights[i].name, whole) == 0)
            return true;
    for (size_t i = 0; i < RIGHTS_BESIDE; i++)
        if (strcasecmp(rights_beside[i], sent->words[0]) == 0 ||
            strcasecmp(rights_beside[i], whole) == 0)
            return true;
    return false;
}

static inline void check_line(const char *line, const struct sent *sent)
{
    const char *name = sent->words[0];
    ck_assert_msg(is_documented(sent), "not in docs/rights.md: %s", line);
    bool range = strcasecmp(name, "xrange") == 0 || strcasecmp(name, "xrevrange") == 0;
    bool one = range && strcmp(sent->words[2], sent->words[3]) == 0; /* from an id to itself */
    ck_assert_msg(!range || one || has(sent, "COUNT"), "without a bound: %s", line);
    ck_assert_msg(!has(sent, "MAXLEN"), "by count: %s", line);
    ck_assert_msg(!has(sent, "FULL"), "too much asked: %s", line);
    if (strcasecmp(name, "xtrim") == 0)
        ck_assert_msg(sent->by_script && has(sent, "MINID") && !has(sent, "~") &&
                          !has(sent, "LIMIT"),
                      "not the exact trim of the script: %s", line);
    if (strcasecmp(name, "scan") == 0 || strcasecmp(name, "xread") == 0)
        ck_assert_msg(has(sent, "COUNT"), "without a bound: %s", line);
    if (strcasecmp(name, "memory") == 0)
        ck_assert_msg(has(sent, "SAMPLES"), "all of it is measured: %s", line);
    if (strcasecmp(name, "xpending") == 0)
        ck_assert_msg(sent->count == 3 || sent->count == 6, "%s", line);
}

#endif
