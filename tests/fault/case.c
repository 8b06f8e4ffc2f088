/* See case.h. */
#include "case.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *note; /* shared with the children */

bool case_wanted(const char *text)
{
    const char *only = getenv("SILT_FAULT_CASE");
    return !only || !*only || strcmp(only, text) == 0;
}

unsigned case_price(void)
{
    const char *sanitize = getenv("SILT_TEST_SANITIZE");
    return sanitize && strstr(sanitize, "address") ? 4 : 1;
}

const char *case_shim(void)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/tests/fault/libsilt_fault_shim.so", test_build_root());
    if (access(path, R_OK) != 0) test_die("%s is not built", path);
    return path;
}

const char *const *case_env(const char *root, const char *journal, ...)
{
    static char text[CASE_ENV_MAX][512];
    static const char *env[CASE_ENV_MAX + 1];
    const char *asan = getenv("ASAN_OPTIONS");
    int n = 0;
    snprintf(text[n++], sizeof text[0], "LD_PRELOAD=%s", case_shim());
    snprintf(text[n++], sizeof text[0], "SILT_SHIM_ROOT=%s", root);
    if (journal) snprintf(text[n++], sizeof text[0], "SILT_SHIM_JOURNAL=%s", journal);
    snprintf(text[n++], sizeof text[0], "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
             asan ? asan : "", asan ? ":" : "");
    va_list more;
    va_start(more, journal);
    for (const char *one; (one = va_arg(more, const char *)) && n < CASE_ENV_MAX;)
        snprintf(text[n++], sizeof text[0], "%s", one);
    va_end(more);
    for (int i = 0; i < n; i++)
        env[i] = text[i];
    env[n] = NULL;
    return env;
}

void case_note(const char *format, ...)
{
    va_list more;
    if (!note) return;
    va_start(more, format);
    vsnprintf(note, 400, format, more);
    va_end(more);
}

bool case_isolated(void (*function)(void *context), void *context, char ret_note[400])
{
    int status;
    if (!note) note = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (note == MAP_FAILED) test_die("no memory");
    note[0] = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) test_die("fork: %s", strerror(errno));
    if (pid == 0) {
        function(context);
        fflush(NULL);
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) test_die("waitpid: %s", strerror(errno));
    if (status == 0) return true;
    snprintf(ret_note, 400, "%.300s (%s %d, SILT_SEED=%llu)", note,
             WIFSIGNALED(status) ? "ended by signal" : "ended with",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             (unsigned long long)test_seed());
    return false;
}

void *case_shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) test_die("no memory");
    return at;
}

int case_main(int argc, char **argv, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(argv[0]);
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, test_long() ? 7200.0 : 240.0);
    for (size_t i = 0; i < count; i++)
        if (argc < 2 || strstr(tests[i]->name, argv[1])) tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
