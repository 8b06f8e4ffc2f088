/* A siltd under the preload library beside a server of the test's own. Entry n of any stream is n-1, and its fields follow from n. Sets up; checks nothing. */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include "harness/harness.h"

struct rig {
    struct test_server server;
    struct test_child child;
    char root[160], archive[176], journal[176], config[176], control[108];
};

/* Starts the server; writes the settings: `more` further lines, streams: the YAML list, one item a line. */
void rig_start(struct rig *rig, const char *more, const char *streams);
void rig_settings(struct rig *rig, const char *more, const char *streams);
void rig_release(struct rig *rig);

/* siltd under the library, or bare (under: false); `fault` is one variable of its environment or NULL. The journal is begun anew. */
void rig_siltd(struct rig *rig, bool under, const char *fault);
void rig_once(struct rig *rig, bool under, const char *fault, struct test_outcome *ret);
int rig_end(struct rig *rig, int signal); /* its exit code; -1: the signal; -2: it did not end */
bool rig_has_said(const struct rig *rig, const char *words);
char *rig_log(const struct rig *rig); /* freed with free() */

void rig_add(struct rig *rig, const char *key, uint64_t from, uint64_t to);
long long rig_length(struct rig *rig, const char *key);
/* The number of the first live entry; 0: none. */
uint64_t rig_first(struct rig *rig, const char *key);

/* How many entries (1 to n) the archive holds of the key, each as it should be; "" in ret_wrong. No archive, no stream: 0. */
uint64_t rig_archived(const char *archive, const char *key, char ret_wrong[200]);
/* Archive and live together are entries 1 to n, once each: "" ; else what is wrong. siltd must not run. */
const char *rig_history(struct rig *rig, const char *key, uint64_t n);

/* The commands in the bytes that were about to leave: calls take for each trim (not for a marker alone) with key and threshold. */
typedef void rig_trim(void *context, const char *key, uint64_t threshold);
void rig_trims(const char *bytes, size_t len, rig_trim *take, void *context);

#endif
