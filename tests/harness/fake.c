/* The scripted server: a child that plays its steps in order and reports the first thing that was not as written. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"
#include "scratch.h"
#include "server.h"

#define WORDS_MAX 4096
#define FINISH_MS 10000

/* The child's own state. */
struct player {
    int listener;
    int link; /* -1: none */
    int go;
    int told;
    unsigned *step; /* shared with the test: the one being played, from 1 */
    char *bytes;    /* received, not yet used, and a NUL after them: the numbers are read as text */
    size_t len;
    size_t cap;
    char *words[WORDS_MAX];
    size_t word_count;
    struct test_step always[16];
    size_t always_count;
};

static void tell(struct player *player, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
static void tell(struct player *player, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vdprintf(player->told, format, args);
    va_end(args);
    _exit(1);
}

static void accept_link(struct player *player)
{
    if (player->link >= 0) return;
    player->len = 0;
    do
        player->link = accept(player->listener, NULL, NULL);
    while (player->link < 0 && errno == EINTR);
    if (player->link < 0) tell(player, "accept: %s", strerror(errno));
}

static void hang_up(struct player *player)
{
    if (player->link >= 0) close(player->link);
    player->link = -1;
}

/* Gives the number of bytes of one whole command at the front and fills words, or 0: not all there yet. */
static size_t parse(struct player *player)
{
    char *at = player->bytes;
    char *end = player->bytes + player->len;
    char *line_end = memchr(at, '\n', player->len);
    if (!line_end) return 0;
    if (*at != '*') tell(player, "not a command: %.*s", (int)(line_end - at), at);
    size_t count = strtoul(at + 1, NULL, 10);
    if (count > WORDS_MAX) tell(player, "a command of %zu words", count);
    at = line_end + 1;
    for (player->word_count = 0; player->word_count < count; player->word_count++) {
        line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!line_end) break;
        if (*at != '$') tell(player, "not a word of a command: %.*s", (int)(line_end - at), at);
        size_t len = strtoul(at + 1, NULL, 10);
        if ((size_t)(end - line_end - 1) < len + 2) break;
        player->words[player->word_count] = strndup(line_end + 1, len);
        at = line_end + 1 + len + 2;
    }
    if (player->word_count == count) return (size_t)(at - player->bytes);
    while (player->word_count > 0)
        free(player->words[--player->word_count]);
    return 0;
}

/* False: the other side closed before a whole command was there. */
static bool read_command(struct player *player)
{
    size_t used;
    while (player->word_count > 0)
        free(player->words[--player->word_count]);
    while (player->len == 0 || (used = parse(player)) == 0) {
        if (player->cap - player->len < 4096)
            player->bytes = realloc(player->bytes, player->cap = player->cap * 2 + 16384);
        ssize_t got =
            read(player->link, player->bytes + player->len, player->cap - player->len - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        player->len += (size_t)got;
        player->bytes[player->len] = '\0';
    }
    memmove(player->bytes, player->bytes + used, player->len - used);
    player->len -= used;
    return true;
}

static bool matches(const struct player *player, const char *pattern)
{
    char copy[1024];
    char *rest = copy;
    size_t i = 0;
    snprintf(copy, sizeof copy, "%s", pattern);
    for (char *word; (word = strsep(&rest, " ")); i++) {
        if (strcmp(word, "**") == 0 && !rest) return true;
        if (i >= player->word_count ||
            fnmatch(word, player->words[i], i == 0 ? FNM_CASEFOLD : 0) != 0)
            return false;
    }
    return i == player->word_count;
}

static void send_bytes(struct player *player, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t done = send(player->link, at, len, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return; /* it closed; the next expectation will say so */
        at += done;
        len -= (size_t)done;
    }
}

/* One byte each time the other side has taken the byte before. */
static void send_slowly(struct player *player, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        send_bytes(player, at + i, 1);
        sched_yield();
    }
}

static const char *command_text(const struct player *player)
{
    static char text[512];
    size_t len = 0;
    for (size_t i = 0; i < player->word_count && len < sizeof text; i++)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "", player->words[i]);
    return text;
}

static bool answer_always(struct player *player)
{
    for (size_t i = 0; i < player->always_count; i++)
        if (matches(player, player->always[i].pattern)) {
            send_bytes(player, player->always[i].bytes, player->always[i].len);
            return true;
        }
    return false;
}

static void expect(struct player *player, const char *pattern)
{
    do {
        accept_link(player);
        if (!read_command(player)) {
            /* Closed between commands: it may come back. In the middle of one: it will too, or the test says so. */
            hang_up(player);
            player->word_count = 0;
            continue;
        }
        if (matches(player, pattern)) return;
        if (!answer_always(player))
            tell(player, "due was \"%s\", came \"%s\"", pattern, command_text(player));
    } while (true);
}

static void silence(struct player *player)
{
    char dropped[4096];
    accept_link(player);
    while (read(player->link, dropped, sizeof dropped) > 0 || errno == EINTR)
        errno = 0;
    hang_up(player);
}

static void hold(struct player *player)
{
    char byte;
    while (read(player->go, &byte, 1) < 0 && errno == EINTR)
        ;
}

static void play(struct player *player, const struct test_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct test_step *step = &steps[i];
        *player->step = (unsigned)i + 1;
        switch (step->kind) {
        case TEST_STEP_EXPECT: expect(player, step->pattern); break;
        case TEST_STEP_ANSWER: send_bytes(player, step->bytes, step->len); break;
        case TEST_STEP_SLOWLY: send_slowly(player, step->bytes, step->len); break;
        case TEST_STEP_HOLD: hold(player); break;
        case TEST_STEP_SILENCE: silence(player); break;
        case TEST_STEP_CLOSE: hang_up(player); break;
        case TEST_STEP_ALWAYS:
            if (player->always_count < 16) player->always[player->always_count++] = *step;
            break;
        case TEST_STEP_AGAIN:
            player->always_count = 0;
            i = (size_t)-1;
            break;
        }
    }
}

/* After the script: greetings are still answered, anything else is one command too many. */
static void stay(struct player *player)
{
    if (write(player->told, "", 1) < 0) _exit(1); /* played to the end */
    while (true) {
        accept_link(player);
        if (!read_command(player))
            hang_up(player);
        else if (!answer_always(player))
            tell(player, "after the script came \"%s\"", command_text(player));
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 16) != 0)
        test_die("cannot listen at %s: %s", path, strerror(errno));
    return fd;
}

void test_fake_start(struct test_fake *fake, const struct test_step *steps, size_t count)
{
    static unsigned number;
    int go[2], told[2];
    memset(fake, 0, sizeof *fake);
    snprintf(fake->socket, sizeof fake->socket, "%s", test_path("f%u.sock", ++number));
    snprintf(fake->address, sizeof fake->address, "unix:%s", fake->socket);
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(told, O_CLOEXEC) != 0)
        test_die("pipe: %s", strerror(errno));
    fake->step =
        mmap(NULL, sizeof *fake->step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fake->step == MAP_FAILED) test_die("mmap: %s", strerror(errno));
    for (size_t i = 0; i < count; i++)
        fake->for_ever |= steps[i].kind == TEST_STEP_AGAIN;
    struct player player = {.step = fake->step,
                            .listener = listen_at(fake->socket),
                            .link = -1,
                            .go = go[0],
                            .told = told[1]};
    pid_t parent = getpid();
    fake->pid = fork();
    if (fake->pid < 0) test_die("fork: %s", strerror(errno));
    if (fake->pid == 0) {
        test_die_with_parent(parent);
        play(&player, steps, count);
        stay(&player);
    }
    close(player.listener);
    close(go[0]);
    close(told[1]);
    fake->go = go[1];
    fake->told = told[0];
}

void test_fake_go(struct test_fake *fake)
{
    if (write(fake->go, "g", 1) != 1) test_die("the fake server is gone: %s", strerror(errno));
}

/* Adds what the child has to say. False: it has said its last. */
static bool listen_to(struct test_fake *fake, bool *played)
{
    char said[1000];
    ssize_t got = read(fake->told, said, sizeof said - 1);
    if (got <= 0) return got < 0 && errno == EINTR;
    said[got] = '\0';
    bool mark = said[0] == '\0'; /* the script was played to its end; trouble may follow */
    *played |= mark;
    if (got > mark)
        snprintf(fake->trouble, sizeof fake->trouble, "step %u: %s", *fake->step, said + mark);
    return true;
}

const char *test_fake_finish(struct test_fake *fake)
{
    struct test_deadline deadline = test_deadline(FINISH_MS);
    struct pollfd told = {.fd = fake->told, .events = POLLIN};
    bool played = fake->for_ever;
    while (!played && !fake->trouble[0] && poll(&told, 1, test_deadline_left(&deadline)) != 0)
        if (!listen_to(fake, &played)) break;
    kill(fake->pid, SIGKILL);
    waitpid(fake->pid, NULL, 0);
    while (listen_to(fake, &played)) /* to the end of the pipe */
        ;
    if (!played && !fake->trouble[0])
        snprintf(fake->trouble, sizeof fake->trouble, "the script stands at step %u", *fake->step);
    close(fake->go);
    close(fake->told);
    munmap(fake->step, sizeof *fake->step);
    unlink(fake->socket);
    return fake->trouble;
}
