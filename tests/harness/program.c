/* Child programs. Their output goes to files, so that nobody blocks on a full pipe and it can be read while they run. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"
#include "scratch.h"
#include "server.h"

#define SANITIZER_EXIT 66 /* tests/run tells the sanitizers to end with it */

const char *test_program_path(const char *name)
{
    static const char *const folders[] = {"archiver", "tools", "mergeread", "tests/bench"};
    static char path[PATH_MAX];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", test_build_root(), folders[i], name);
        if (access(path, X_OK) == 0) return path;
    }
    snprintf(path, sizeof path, "%s", name);
    return path;
}

static void exec_child(const struct test_child *child, int in, const char *const *argv,
                       const char *const *env, pid_t parent)
{
    test_die_with_parent(parent);
    int out = open(child->out_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    int err = open(child->err_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (out < 0 || err < 0) _exit(98);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (; env && *env; env++) {
        char *text = strdup(*env);
        char *value = strchr(text, '=');
        if (value) *value++ = '\0';
        if (value)
            setenv(text, value, 1);
        else
            unsetenv(text);
    }
    signal(SIGPIPE, SIG_DFL);
    const char *path = strchr(argv[0], '/') ? argv[0] : test_program_path(argv[0]);
    char **copy = calloc(TEST_SERVER_ARGS_MAX + 1, sizeof *copy);
    for (size_t i = 0; argv[i] && i < TEST_SERVER_ARGS_MAX; i++)
        copy[i] = strdup(argv[i]);
    execvp(path, copy);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

void test_child_start(struct test_child *child, const char *const *argv, const char *const *env)
{
    static unsigned number;
    int ends[2];
    number++;
    snprintf(child->out_path, sizeof child->out_path, "%s/p%u.out", test_scratch(), number);
    snprintf(child->err_path, sizeof child->err_path, "%s/p%u.err", test_scratch(), number);
    /* Made here, so that they can be read before the child has come that far. */
    test_file_write(child->out_path, "", 0);
    test_file_write(child->err_path, "", 0);
    if (pipe2(ends, O_CLOEXEC) != 0) test_die("pipe: %s", strerror(errno));
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid < 0) test_die("fork: %s", strerror(errno));
    if (child->pid == 0) exec_child(child, ends[0], argv, env, parent);
    close(ends[0]);
    child->in = ends[1];
}

void test_child_signal(struct test_child *child, int signal_number)
{
    if (child->pid == 0 || kill(child->pid, signal_number) != 0)
        test_die("cannot signal the child: %s", strerror(errno));
}

bool test_child_running(struct test_child *child)
{
    siginfo_t info = {0};
    if (child->pid == 0) return false;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
    return info.si_pid == 0;
}

char *test_child_out(const struct test_child *child)
{
    return test_file_read(child->out_path, NULL);
}

char *test_child_err(const struct test_child *child)
{
    return test_file_read(child->err_path, NULL);
}

void test_child_wait(struct test_child *child, int ms, struct test_outcome *ret)
{
    int status;
    memset(ret, 0, sizeof *ret);
    if (child->in >= 0) close(child->in);
    child->in = -1;
    struct test_deadline deadline = test_deadline(ms);
    while (test_child_running(child) && test_deadline_poll(&deadline))
        ;
    if (test_child_running(child)) {
        ret->timed_out = true;
        kill(child->pid, SIGKILL);
    }
    if (waitpid(child->pid, &status, 0) != child->pid) test_die("waitpid: %s", strerror(errno));
    child->pid = 0;
    ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ret->out = test_file_read(child->out_path, &ret->out_len);
    ret->err = test_file_read(child->err_path, &ret->err_len);
    if (ret->code == SANITIZER_EXIT) test_die("the sanitizer's report:\n%.1900s", ret->err);
}

void test_program(struct test_outcome *ret, const char *const *argv, const char *const *env,
                  const char *input, int ms)
{
    struct test_child child = {0};
    test_child_start(&child, argv, env);
    for (size_t left = input ? strlen(input) : 0; left > 0;) {
        ssize_t done = write(child.in, input, left);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) break; /* it ended without reading */
        left -= (size_t)done;
        input += done;
    }
    test_child_wait(&child, ms, ret);
}

void test_outcome_release(struct test_outcome *result)
{
    free(result->out);
    free(result->err);
    memset(result, 0, sizeof *result);
}
