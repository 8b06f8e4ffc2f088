/* What a server's error text means: class, sentence, remedy (protocol.md §9). One table; the first row that fits decides. Knows nothing of
 * connections. */
#include "conn.h"

struct row {
    const char *start; /* the text begins so; a word ends there unless it ends in a blank */
    enum silt_status status;
    const char *sentence;
    const char *hint; /* NULL: none */
};

/* Rows of "ERR ..." stand before "ERR" itself. */
static const struct row rows[] = {
    {"LOADING", SILT_ERR_SERVER_BUSY, "the server is still loading its data", NULL},
    {"BUSY", SILT_ERR_SERVER_BUSY, "the server is busy with a script of somebody's",
     "SCRIPT KILL ends a script that has written nothing yet"},
    {"TRYAGAIN", SILT_ERR_SERVER_BUSY, "the key's slot is being moved to another node", NULL},
    {"CLUSTERDOWN", SILT_ERR_SERVER_BUSY, "the cluster is down", NULL},
    {"MASTERDOWN", SILT_ERR_SERVER_BUSY, "the server is a replica that has lost its master", NULL},
    {"NOMASTERLINK", SILT_ERR_SERVER_BUSY, "the server is a replica that has lost its master",
     NULL},
    {"NOREPLICAS", SILT_ERR_SERVER_BUSY,
     "the server has fewer replicas than it needs before it accepts writes",
     "see min-replicas-to-write of the server"},
    {"MISCONF", SILT_ERR_SERVER_REFUSED,
     "the server refuses writes because it cannot save its own data",
     "the server's log says why its last save failed"},
    {"READONLY", SILT_ERR_SERVER_READONLY, "the server is a read-only replica",
     "name the master's address, or wait until this one is promoted"},
    {"OOM", SILT_ERR_SERVER_OOM, "the server's memory is full",
     "it needs a higher maxmemory or fewer data"},
    {"MOVED", SILT_ERR_SERVER_MOVED, "the key's slot lives on another node of the cluster",
     "name the address of the node that the server's answer ends with"},
    {"ASK", SILT_ERR_SERVER_MOVED, "the key is on its way to another node of the cluster",
     "name the address of the node that the server's answer ends with, once the move is over"},
    {"CROSSSLOT", SILT_ERR_SERVER_REFUSED,
     "the keys of one command lie in different slots of the cluster", NULL},
    {"EXECABORT", SILT_ERR_SERVER_REFUSED,
     "the server dropped a transaction because it refused one of its commands", NULL},
    {"NOPERM", SILT_ERR_SERVER_DENIED, "the server's user has no right to this",
     "the rights that silt needs stand in the manual, under Rights"},
    {"NOAUTH", SILT_ERR_SERVER_DENIED, "the server wants a password",
     "set password-file, and user if it is not the default one"},
    {"WRONGPASS", SILT_ERR_SERVER_DENIED, "the server does not accept the user or the password",
     "check user and the content of password-file"},
    {"DENIED", SILT_ERR_SERVER_DENIED, "the server is in protected mode",
     "it takes connections of its own machine only, until it has a password"},
    {"ERR invalid password", SILT_ERR_SERVER_DENIED, "the server does not accept the password",
     "check the content of password-file"},
    {"ERR ACL failure in script", SILT_ERR_SERVER_DENIED,
     "the server's user has no right to a command of the script",
     "the rights that silt needs stand in the manual, under Rights"},
    {"ERR The user executing the script", SILT_ERR_SERVER_DENIED,
     "the server's user has no right to a command of the script",
     "the rights that silt needs stand in the manual, under Rights"},
    {"ERR AUTH ", SILT_ERR_SERVER_DENIED, "the server does not accept the login",
     "check user and password-file"},
    {"NOSCRIPT", SILT_ERR_NO_SCRIPT, "the server does not know the script", NULL},
    {"WRONGTYPE", SILT_ERR_WRONG_TYPE, "the key holds another type than a stream", NULL},
    {"BUSYGROUP", SILT_ERR_STALE, "the consumer group is there already", NULL},
    {"BUSYKEY", SILT_ERR_STALE, "the key is there already", NULL},
    {"NOGROUP", SILT_ERR_STALE, "the key or its consumer group is gone", NULL},
    {"STALE", SILT_ERR_STALE, "the stream changed since the look", NULL},
    {"ERR no such key", SILT_ERR_UNKNOWN_STREAM, "there is no such key", NULL},
    {"ERR The XGROUP subcommand requires the key to exist", SILT_ERR_UNKNOWN_STREAM,
     "there is no such key", NULL},
    {"ERR The ID specified in XADD is equal or smaller", SILT_ERR_NONMONOTONIC,
     "the id is not above the stream's top", NULL},
    {"ERR max number of clients reached", SILT_ERR_SERVER_BUSY,
     "the server has no room for another client", "see maxclients of the server"},
    {"ERR unknown command", SILT_ERR_SERVER_REFUSED, "the server does not know the command",
     "silt needs Valkey 7.2 or later, or Redis 7.0 or later, with its commands not renamed"},
    {"ERR unknown subcommand", SILT_ERR_SERVER_REFUSED, "the server does not know the subcommand",
     "silt needs Valkey 7.2 or later, or Redis 7.0 or later"},
    {"ERR", SILT_ERR_SERVER_REFUSED, "the server refuses the command", NULL},
};

static bool starts(struct silt_view text, const char *with)
{
    size_t len = strlen(with);
    if (text.len < len || memcmp(text.at, with, len) != 0) return false;
    /* A whole word: "BUSY" must not take "BUSYGROUP" for its own. */
    return text.len == len || with[len - 1] == ' ' || strchr(" .,:'`-\r\n", text.at[len]) != NULL;
}

/* Some refusals repeat what the command carried: values, or a password. */
static struct silt_view without_arguments(struct silt_view text)
{
    static const char mark[] = ", with args beginning with";
    const uint8_t *at = text.len > 0 ? memmem(text.at, text.len, mark, sizeof mark - 1) : NULL;
    if (at != NULL) text.len = (size_t)(at - text.at);
    return text;
}

enum silt_status silt_reply_error_class(struct silt_view text, struct silt_err *err)
{
    /* EXEC itself refused (memory full, demoted, no right to EXEC): the reason stands behind. */
    static const char because[] = "EXECABORT Transaction discarded because of: ";
    if (text.len >= sizeof because - 1 && memcmp(text.at, because, sizeof because - 1) == 0)
        text = silt_view(text.at + sizeof because - 1, text.len - (sizeof because - 1));
    char words[200];
    silt_escape(without_arguments(text), words, sizeof words);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!starts(text, rows[i].start)) continue;
        enum silt_status status =
            silt_fail(err, rows[i].status, "%s (%s)", rows[i].sentence, words);
        if (rows[i].hint != NULL) silt_hint(err, "%s", rows[i].hint);
        return status;
    }
    if (text.len == 0)
        return silt_fail(err, SILT_ERR_SERVER_REFUSED,
                         "the server refuses the command without a word");
    return silt_fail(err, SILT_ERR_SERVER_REFUSED, "the server refuses the command (%s)", words);
}
