/* Spawned servers. Nothing here waits a fixed time: each wait looks for its condition until a deadline. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"
#include "scratch.h"

#define START_MS 20000
#define END_MS 20000

void test_die_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(99); /* it died before the line above */
}

static bool in_path(const char *name)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : "/usr/bin:/bin");
    char *rest = copy;
    bool found = false;
    for (char *dir; !found && (dir = strsep(&rest, ":"));) {
        char full[4096];
        snprintf(full, sizeof full, "%s/%s", dir, name);
        found = access(full, X_OK) == 0;
    }
    free(copy);
    return found;
}

const char *test_server_binary(void)
{
    const char *chosen = getenv("SILT_TEST_SERVER");
    if (chosen && *chosen) return chosen;
    if (in_path("valkey-server")) return "valkey-server";
    if (in_path("redis-server")) return "redis-server";
    test_die("no server: neither valkey-server nor redis-server is installed (tools/setup test)");
}

bool test_server_is_valkey(const struct test_server *server)
{
    return strstr(server->binary, "valkey") != NULL;
}

static void add_arg(struct test_server *server, const char *arg)
{
    if (server->arg_count == TEST_SERVER_ARGS_MAX)
        test_die("more than %d arguments for a server", TEST_SERVER_ARGS_MAX);
    server->args[server->arg_count] = strdup(arg);
    if (!server->args[server->arg_count++]) test_die("out of memory");
}

/* A port nobody uses at this moment. Somebody may take it before the server does; then the start is tried again. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        test_die("no free port: %s", strerror(errno));
    close(fd);
    return ntohs(address.sin_port);
}

static void exec_server(const struct test_server *server, pid_t parent)
{
    test_die_with_parent(parent);
    int log = open(server->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int null = open("/dev/null", O_RDONLY);
    if (log < 0 || null < 0) _exit(98);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (int fd = 3; fd < 256; fd++) /* nobody's pipe is held open by a server */
        close(fd);
    execvp(server->binary, server->args);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", server->binary, strerror(errno));
    _exit(97);
}

static void hang_up(struct test_server *server)
{
    if (server->reply) freeReplyObject(server->reply);
    if (server->link) redisFree(server->link);
    server->reply = NULL;
    server->link = NULL;
}

static bool answers(struct test_server *server)
{
    struct timeval limit = {1, 0};
    redisContext *link = redisConnectUnixWithTimeout(server->socket, limit);
    if (!link) return false;
    bool good = false;
    if (!link->err) {
        redisSetTimeout(link, limit);
        redisReply *reply = redisCommand(link, "PING");
        /* LOADING: not yet. NOAUTH, NOPERM: it is there, and the test knows what it asked for. */
        good =
            reply && (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "LOADING", 7) != 0);
        if (reply) freeReplyObject(reply);
    }
    redisFree(link);
    return good;
}

/* False: it ended by itself. */
static bool launch(struct test_server *server)
{
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid < 0) test_die("fork: %s", strerror(errno));
    if (server->pid == 0) exec_server(server, parent);
    struct test_deadline deadline = test_deadline(START_MS);
    while (!answers(server)) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        if (!test_deadline_poll(&deadline))
            test_die("%s does not answer; log: %s", server->binary, server->log);
    }
    return true;
}

static void die_with_log(const struct test_server *server)
{
    size_t len = 0;
    char *text = access(server->log, R_OK) == 0 ? test_file_read(server->log, &len) : strdup("");
    test_die("%s did not start:\n%s", server->binary, len > 1500 ? text + len - 1500 : text);
}

static void start(struct test_server *server, bool tcp, va_list more)
{
    static unsigned number; /* of the servers of this test */
    memset(server, 0, sizeof *server);
    server->binary = test_server_binary();
    int len = snprintf(server->dir, sizeof server->dir, "%s/s%u", test_scratch(), ++number);
    if (len < 0 || (size_t)len >= sizeof server->dir)
        test_die("the path of the scratch directory is too long for a socket");
    if (mkdir(server->dir, 0700) != 0) test_die("mkdir %s: %s", server->dir, strerror(errno));
    snprintf(server->socket, sizeof server->socket, "%s/s.sock", server->dir);
    snprintf(server->address, sizeof server->address, "unix:%s", server->socket);
    snprintf(server->log, sizeof server->log, "%s/server.log", server->dir);

    const char *fixed[] = {server->binary,
                           "--unixsocket",
                           server->socket,
                           "--save",
                           "",
                           "--appendonly",
                           "no",
                           "--dir",
                           server->dir,
                           "--bind",
                           "127.0.0.1",
                           "--enable-debug-command",
                           "local",
                           "--port",
                           "0"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        add_arg(server, fixed[i]);
    size_t port_arg = server->arg_count - 1;
    for (const char *arg; (arg = va_arg(more, const char *));)
        add_arg(server, arg);
    for (int attempt = 0; attempt < 5; attempt++) {
        if (tcp) {
            char text[12];
            server->port = free_port();
            snprintf(text, sizeof text, "%d", server->port);
            free(server->args[port_arg]);
            server->args[port_arg] = strdup(text);
        }
        if (launch(server)) return;
        if (!tcp) break;
    }
    die_with_log(server);
}

void test_server_start(struct test_server *server, ...)
{
    va_list more;
    va_start(more, server);
    start(server, false, more);
    va_end(more);
}

void test_server_start_tcp(struct test_server *server, ...)
{
    va_list more;
    va_start(more, server);
    start(server, true, more);
    va_end(more);
}

static void end(struct test_server *server, int signal_number)
{
    hang_up(server);
    if (!server->pid) return;
    kill(server->pid, SIGCONT); /* a paused one cannot end in an orderly way */
    kill(server->pid, signal_number);
    struct test_deadline deadline = test_deadline(END_MS);
    pid_t gone;
    while ((gone = waitpid(server->pid, NULL, WNOHANG)) == 0)
        if (!test_deadline_poll(&deadline))
            test_die("%s (pid %d) does not end", server->binary, (int)server->pid);
    if (gone < 0) test_die("waitpid: %s", strerror(errno));
    server->pid = 0;
}

void test_server_stop(struct test_server *server)
{
    end(server, SIGTERM);
}

void test_server_kill(struct test_server *server)
{
    end(server, SIGKILL);
}

void test_server_restart(struct test_server *server)
{
    test_server_stop(server);
    if (!launch(server)) die_with_log(server);
}

void test_server_pause(struct test_server *server)
{
    int status;
    if (kill(server->pid, SIGSTOP) != 0 ||
        waitpid(server->pid, &status, WUNTRACED) != server->pid || !WIFSTOPPED(status))
        test_die("cannot pause the server: %s", strerror(errno));
}

void test_server_resume(struct test_server *server)
{
    if (kill(server->pid, SIGCONT) != 0) test_die("cannot resume the server: %s", strerror(errno));
}

void test_server_release(struct test_server *server)
{
    test_server_kill(server);
    for (size_t i = 0; i < server->arg_count; i++)
        free(server->args[i]);
    memset(server, 0, sizeof *server);
}
