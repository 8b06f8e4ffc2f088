/* Check's results turned into clean TAP. Must not know what is tested. */
#include "runner.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rng.h"
#include "scratch.h"

/* What tests have skipped: in memory that their processes share with this one. */
enum { SKIPS_MAX = 64 };
static struct skips {
    unsigned count;
    struct {
        char test[100], reason[150];
    } list[SKIPS_MAX];
} * skips;

static bool running; /* under Check: a failure ends the test, not the program */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STRETCH 4
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define STRETCH 4
#endif
#endif
#ifndef STRETCH
#define STRETCH 1
#endif

void test_die(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (running) ck_abort_msg("%s", text);
    fprintf(stderr, "harness: %s\n", text);
    exit(99);
}

void test_skip(const char *function, const char *reason)
{
    size_t len = strlen(function);
    if (len > 3 && strcmp(function + len - 3, "_fn") == 0) len -= 3; /* as Check names it */
    if (!skips || skips->count == SKIPS_MAX) test_die("too much is skipped");
    snprintf(skips->list[skips->count].test, sizeof skips->list[0].test, "%.*s", (int)len,
             function);
    snprintf(skips->list[skips->count].reason, sizeof skips->list[0].reason, "%s", reason);
    skips->count++;
}

static const char *skip_reason(const char *name, size_t len)
{
    for (unsigned i = 0; i < skips->count; i++)
        if (strlen(skips->list[i].test) == len && memcmp(skips->list[i].test, name, len) == 0)
            return skips->list[i].reason;
    return NULL;
}

bool test_long(void)
{
    const char *text = getenv("SILT_TEST_LONG");
    return text && strcmp(text, "1") == 0;
}

const char *test_source_root(void)
{
    const char *root = getenv("SILT_SOURCE_ROOT");
    return root ? root : SILT_TEST_SOURCE_ROOT;
}

const char *test_build_root(void)
{
    static char dir[PATH_MAX];
    const char *root = getenv("SILT_BUILD_ROOT");
    if (root) return root;
    if (dir[0]) return dir;
    ssize_t len = readlink("/proc/self/exe", dir, sizeof dir - 32);
    if (len < 0) test_die("readlink /proc/self/exe: %s", strerror(errno));
    dir[len] = '\0';
    for (char *slash; (slash = strrchr(dir, '/')) && slash != dir;) {
        snprintf(slash, sizeof "/meson-info", "/meson-info"); /* room was left above */
        int found = access(dir, F_OK) == 0;
        *slash = '\0';
        if (found) return dir;
    }
    test_die("this program is not inside a build directory; set SILT_BUILD_ROOT");
}

long long test_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct test_deadline test_deadline(int ms)
{
    return (struct test_deadline){test_now_ms() + (long long)ms * STRETCH, 1};
}

int test_deadline_left(const struct test_deadline *deadline)
{
    long long left = deadline->end_ms - test_now_ms();
    return left > 0 ? (int)left : 0;
}

bool test_deadline_poll(struct test_deadline *deadline)
{
    if (test_deadline_left(deadline) == 0) return false;
    struct timespec step = {0, (long)deadline->step_ms * 1000000};
    nanosleep(&step, NULL);
    if (deadline->step_ms < 10) deadline->step_ms++;
    return true;
}

/* Gives the number of the TAP line that was printed, or -1. Check writes a test's message as it is, also over several lines
 * and with whatever stands in it: only the line that carries the next number is a result, the rest is talk. */
static int copy_line(FILE *to, const char *line, int next)
{
    char want[2][32];
    snprintf(want[0], sizeof want[0], "ok %d - ", next);
    snprintf(want[1], sizeof want[1], "not ok %d - ", next);
    for (int i = 0; i < 2; i++) {
        size_t len = strlen(want[i]);
        if (strncmp(line, want[i], len) != 0) continue;
        const char *text = line + len;
        const char *name = strchr(text, ':'); /* file:case:name: message */
        name = name ? strchr(name + 1, ':') : NULL;
        size_t shown = i == 0 && name ? strcspn(++name, ":") : 0; /* of a pass, the name alone */
        const char *skipped = shown ? skip_reason(name, shown) : NULL;
        if (shown)
            fprintf(to, "%s%.*s%s%s\n", want[i], (int)shown, name, skipped ? " # SKIP " : "",
                    skipped ? skipped : "");
        else
            fprintf(to, "%s%s\n", want[i], text);
        return next;
    }
    fprintf(to, "# %s\n", line);
    return -1;
}

static int report(const char *log, int out)
{
    FILE *from = fopen(log, "r");
    FILE *to = fdopen(out, "w");
    if (!from || !to) test_die("cannot read %s: %s", log, strerror(errno));
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int count = 0;
    int failed = 0;
    while ((len = getline(&line, &cap, from)) >= 0) {
        if (len > 0 && line[len - 1] == '\n') line[len - 1] = '\0';
        if (strncmp(line, "1..", 3) == 0 && atoi(line + 3) == count) break;
        if (copy_line(to, line, count + 1) < 0) continue;
        count++;
        failed += line[0] == 'n';
    }
    free(line);
    fclose(from);
    if (failed) fprintf(to, "# SILT_SEED=%s\n", getenv("SILT_SEED"));
    fprintf(to, "1..%d\n", count);
    fclose(to);
    return count == 0 ? 2 : failed ? 1 : 0;
}

static int run(SRunner *runner)
{
    /* Whatever a test prints goes to stderr: stdout belongs to TAP. */
    int out = dup(STDOUT_FILENO);
    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) test_die("dup: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN); /* as our programs do: a closed connection is an answer, not an end */
    test_seed();
    test_scratch_root_start();
    skips = mmap(NULL, sizeof *skips, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (skips == MAP_FAILED) test_die("mmap: %s", strerror(errno));
    const char *log = test_path("tap");
    srunner_set_tap(runner, log);
    running = true;
    srunner_run_all(runner, CK_SILENT);
    running = false;
    srunner_free(runner);
    return report(log, out);
}

int test_run_suite(Suite *suite)
{
    return run(srunner_create(suite));
}

int test_run(int argc, char **argv, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(argv[0]);
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 60.0 * STRETCH);
    for (size_t i = 0; i < count; i++)
        if (argc < 2 || strstr(tests[i]->name, argv[1])) tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
