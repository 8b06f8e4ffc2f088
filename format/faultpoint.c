/* Counts passages of named points and does what SILT_FAULT asks at one of them. Nothing in a release build. */
#include "faultpoint.h"

#include <stddef.h>

#ifdef SILT_FAULTPOINTS
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINTS_MAX 256
#define NAME_MAX_BYTES 64

struct point {
    char name[NAME_MAX_BYTES];
    unsigned long passages;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct point points[POINTS_MAX];

/* A test that asks for something we cannot do must not pass for one that ran. */
static void give_up(const char *why, const char *what)
{
    fprintf(stderr, "faultpoint: %s: %s\n", why, what);
    abort();
}

static unsigned long count_passage(const char *name)
{
    unsigned long count = 0;
    if (strlen(name) >= NAME_MAX_BYTES) give_up("name too long", name);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < POINTS_MAX && count == 0; i++) {
        if (points[i].name[0] == '\0') memcpy(points[i].name, name, strlen(name) + 1);
        if (strcmp(points[i].name, name) == 0) count = ++points[i].passages;
    }
    pthread_mutex_unlock(&lock);
    if (count == 0) give_up("too many points", name);
    return count;
}

static void tell(const char *name, unsigned long count)
{
    const char *path = getenv("SILT_FAULT_LOG");
    char line[NAME_MAX_BYTES + 32];
    if (path == NULL || *path == '\0') return;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) give_up("cannot open SILT_FAULT_LOG", path);
    int len = snprintf(line, sizeof line, "%s %lu\n", name, count);
    if (write(fd, line, (size_t)len) != len) give_up("cannot write SILT_FAULT_LOG", path);
    close(fd);
}

static void wait_while_present(const char *path)
{
    while (access(path, F_OK) == 0)
        usleep(1000);
}

static int act(const char *action)
{
    if (strcmp(action, "fail") == 0) return 1;
    if (strcmp(action, "kill") == 0) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause(); /* the signal is on its way */
    }
    if (strncmp(action, "pause:", 6) == 0) {
        int fd = open(action + 6, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) give_up("cannot create", action + 6);
        close(fd);
        wait_while_present(action + 6);
        return 0;
    }
    if (strncmp(action, "hold:", 5) == 0) {
        wait_while_present(action + 5);
        return 0;
    }
    give_up("unknown action", action);
    return 0;
}

/* One "name[:n]=action"; true when it is meant for this passage. */
static int item_matches(char *item, const char *name, unsigned long count, const char **ret_action)
{
    char *equals = strchr(item, '=');
    if (equals == NULL) give_up("no '=' in SILT_FAULT", item);
    *equals = '\0';
    char *colon = strchr(item, ':');
    unsigned long nth = 1;
    if (colon != NULL) {
        *colon = '\0';
        nth = strtoul(colon + 1, NULL, 10);
        if (nth == 0) give_up("no number after ':' in SILT_FAULT", colon + 1);
    }
    *ret_action = equals + 1;
    return strcmp(item, name) == 0 && nth == count;
}

int silt_faultpoint(const char *name)
{
    unsigned long count = count_passage(name);
    int failed = 0;
    tell(name, count);
    const char *wanted = getenv("SILT_FAULT");
    if (wanted == NULL || *wanted == '\0') return 0;
    char *copy = strdup(wanted), *rest = NULL;
    if (copy == NULL) give_up("out of memory", name);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        const char *action;
        if (item_matches(item, name, count, &action)) failed |= act(action);
    }
    free(copy);
    return failed;
}
#endif
