/* archiver/control.c: the socket, its requests, and clients that behave badly. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "harness/harness.h"

struct desk {
    struct event_base *base;
    struct silt_control *control;
    size_t answer_bytes;
    uint64_t ticket;
    char key[64];
    size_t key_len;
    bool has_key;
    struct silt_control_request request; /* the last one; its key is gone */
};

static void note_key(struct desk *desk, const struct silt_view *key)
{
    desk->has_key = key != NULL;
    desk->key_len = key && key->len < sizeof desk->key ? key->len : 0;
    if (desk->key_len) memcpy(desk->key, key->at, desk->key_len);
}

static json_t *give_status(void *ctx, const struct silt_view *key, struct silt_err *err)
{
    struct desk *desk = ctx;
    note_key(desk, key);
    if (key && key->len == 4 && memcmp(key->at, "none", 4) == 0) {
        silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "no such stream: none");
        return NULL;
    }
    char *fill = calloc(1, desk->answer_bytes + 1);
    memset(fill, 'x', desk->answer_bytes);
    json_t *answer = json_pack("{s:s}", "fill", fill);
    free(fill);
    return answer;
}

static enum silt_status take_later(void *ctx, const struct silt_control_request *request,
                                   uint64_t ticket, struct silt_err *err)
{
    struct desk *desk = ctx;
    (void)err;
    note_key(desk, request->key);
    desk->request = *request;
    desk->ticket = ticket;
    return SILT_OK;
}

static enum silt_status open_desk(struct desk *desk, const char *path, struct silt_err *err)
{
    const struct silt_control_handler handler = {desk, give_status, take_later};
    if (!desk->base) desk->base = event_base_new();
    return silt_control_open(desk->base, path, &handler, &desk->control, err);
}

static void start(struct desk *desk)
{
    struct silt_err err = {0};
    memset(desk, 0, sizeof *desk);
    if (open_desk(desk, test_path("c.sock"), &err) != SILT_OK) test_die("%s", err.sentence);
}

static void stop(struct desk *desk)
{
    silt_control_close(desk->control);
    event_base_free(desk->base);
}

static int join(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        test_die("connect: %s", strerror(errno));
    return fd;
}

static void say(int fd, const char *text)
{
    size_t len = strlen(text);
    if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len) test_die("send: %s", strerror(errno));
}

/* The next line, or "" at the end. Freed with free(). */
static char *hear(struct desk *desk, int fd)
{
    char *line = calloc(1, 1u << 20);
    size_t len = 0;
    struct test_deadline deadline = test_deadline(5000);
    for (;;) {
        event_base_loop(desk->base, EVLOOP_NONBLOCK);
        ssize_t got = recv(fd, line + len, 1, MSG_DONTWAIT);
        if (got == 0) return line;
        if (got < 0 && errno != EAGAIN) return line;
        if (got < 0 && !test_deadline_poll(&deadline)) test_die("no answer");
        if (got == 1 && line[len++] == '\n') return line;
    }
}

static void check_answer(struct desk *desk, int fd, const char *request, const char *words)
{
    say(fd, request);
    char *line = hear(desk, fd);
    json_t *read = json_loads(line, 0, NULL);
    ck_assert_msg(read != NULL, "not JSON: %s", line);
    ck_assert_msg(strstr(line, words) != NULL, "no %s in %s", words, line);
    json_decref(read);
    free(line);
}

START_TEST(control__the_socket_is_for_its_user_alone_and_goes_with_siltd)
{
    struct desk desk;
    struct stat st;
    start(&desk);
    ck_assert_int_eq(stat(test_path("c.sock"), &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    stop(&desk);
    ck_assert_int_eq(stat(test_path("c.sock"), &st), -1);
}
END_TEST

START_TEST(control__a_stale_file_is_replaced_a_live_one_is_not)
{
    struct desk desk, second = {0};
    struct silt_err err = {0};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", test_path("c.sock"));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd); /* bound, then gone: as after kill -9 */
    start(&desk);
    ck_assert_int_eq(open_desk(&second, test_path("c.sock"), &err), SILT_ERR_HELD);
    ck_assert_ptr_nonnull(strstr(err.sentence, "c.sock"));
    fd = join(test_path("c.sock"));
    check_answer(&desk, fd, "{\"verb\":\"ping\"}\n", "\"ok\":true");
    close(fd);
    event_base_free(second.base);
    stop(&desk);
}
END_TEST

START_TEST(control__a_path_that_cannot_be_used_is_refused)
{
    struct desk desk = {0};
    struct silt_err err = {0};
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    test_file_write(test_path("file"), "kept", 4);
    ck_assert_int_eq(open_desk(&desk, test_path("file"), &err), SILT_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.sentence, "no socket"));
    char *kept = test_file_read(test_path("file"), NULL);
    ck_assert_str_eq(kept, "kept");
    free(kept);
    ck_assert_int_eq(open_desk(&desk, test_path("none/c.sock"), &err), SILT_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.sentence, "No such file"));
    ck_assert_int_eq(open_desk(&desk, longer, &err), SILT_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.sentence, "too long"));
    event_base_free(desk.base);
}
END_TEST

START_TEST(control__requests_are_answered_in_turn)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    say(fd, "{\"verb\":\"ping\"}\n{\"verb\":\"status\"}\n{\"verb\":\"status\",\"key\":\"none\"}\n");
    char *line = hear(&desk, fd);
    ck_assert_str_eq(line, "{\"ok\":true}\n");
    free(line);
    line = hear(&desk, fd);
    ck_assert_ptr_nonnull(strstr(line, "\"fill\":\"\""));
    free(line);
    line = hear(&desk, fd);
    ck_assert_ptr_nonnull(strstr(line, "\"code\":\"SILT_ERR_UNKNOWN_STREAM\",\"exit\":2"));
    ck_assert_ptr_nonnull(strstr(line, "\"ok\":false"));
    free(line);
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__bad_requests_are_refused_and_the_next_is_served)
{
    static const char *const bad[] = {"garbage\n",
                                      "[1]\n",
                                      "\n",
                                      "{}\n",
                                      "{\"verb\":5}\n",
                                      "{\"verb\":\"drop\"}\n",
                                      "{\"verb\":\"sync\",\"key\":7}\n",
                                      "{\"verb\":\"sync\",\"key\":{\"b64\":\"!!\"}}\n",
                                      "{\"verb\":\"ping\",\"verb\":\"ping\"}\n",
                                      "{\"verb\":\"ping\"\n",
                                      "\xff\xfe\n"};
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_answer(&desk, fd, bad[i], "\"code\":\"SILT_ERR_USAGE\",\"exit\":2");
    check_answer(&desk, fd, "{\"verb\":\"ping\"}\n", "\"ok\":true");
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__keys_of_any_bytes_are_understood)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    check_answer(&desk, fd, "{\"verb\":\"status\",\"key\":\"a\\u0000b\"}\n", "\"ok\":true");
    ck_assert_uint_eq(desk.key_len, 3);
    ck_assert_mem_eq(desk.key, "a\0b", 3);
    check_answer(&desk, fd, "{\"verb\":\"status\",\"key\":{\"b64\":\"/wBh\"}}\n", "\"ok\":true");
    ck_assert_uint_eq(desk.key_len, 3);
    ck_assert_mem_eq(desk.key, "\xff\0a", 3);
    check_answer(&desk, fd, "{\"verb\":\"status\",\"key\":null}\n", "\"ok\":true");
    ck_assert(!desk.has_key);
    json_t *back = silt_json_bytes(silt_view("\xff\0a", 3));
    ck_assert_str_eq(json_string_value(json_object_get(back, "b64")), "/wBh");
    json_decref(back);
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__adopt_and_release_are_asked_by_name)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    say(fd, "{\"verb\":\"adopt\",\"key\":\"a\",\"dry_run\":true}\n");
    TEST_WAIT((event_base_loop(desk.base, EVLOOP_NONBLOCK), desk.ticket != 0), 5000);
    ck_assert_int_eq(desk.request.verb, SILT_CONTROL_ADOPT);
    ck_assert(desk.request.dry_run);
    ck_assert_str_eq(desk.key, "a");
    silt_control_answer(desk.control, desk.ticket, SILT_OK, json_pack("{s:i}", "epoch", 7), NULL);
    char *line = hear(&desk, fd);
    ck_assert_ptr_nonnull(strstr(line, "\"epoch\":7"));
    free(line);
    say(fd, "{\"verb\":\"release\",\"key\":\"a\"}\n");
    TEST_WAIT((event_base_loop(desk.base, EVLOOP_NONBLOCK), desk.ticket != 0), 5000);
    ck_assert_int_eq(desk.request.verb, SILT_CONTROL_RELEASE);
    ck_assert(!desk.request.dry_run);
    silt_control_answer(desk.control, desk.ticket, SILT_OK, json_object(), NULL);
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__a_sync_is_answered_when_it_is_done)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock")), other = join(test_path("c.sock"));
    say(fd, "{\"verb\":\"sync\",\"key\":\"a\"}\n{\"verb\":\"ping\"}\n");
    TEST_WAIT((event_base_loop(desk.base, EVLOOP_NONBLOCK), desk.ticket != 0), 5000);
    check_answer(&desk, other, "{\"verb\":\"ping\"}\n",
                 "\"ok\":true"); /* others are served meanwhile */
    char byte;
    ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    silt_control_answer(desk.control, desk.ticket, SILT_OK, json_pack("{s:i}", "n", 1), NULL);
    char *line = hear(&desk, fd);
    ck_assert_ptr_nonnull(strstr(line, "\"n\":1"));
    free(line);
    line = hear(&desk, fd); /* the request behind it */
    ck_assert_str_eq(line, "{\"ok\":true}\n");
    free(line);
    say(fd, "{\"verb\":\"sync\"}\n");
    uint64_t before = desk.ticket;
    TEST_WAIT((event_base_loop(desk.base, EVLOOP_NONBLOCK), desk.ticket != before), 5000);
    struct silt_err err = {0};
    silt_fail(&err, SILT_ERR_DOUBT, "in doubt");
    silt_control_answer(desk.control, desk.ticket, SILT_ERR_DOUBT, NULL, &err);
    line = hear(&desk, fd);
    ck_assert_ptr_nonnull(strstr(line, "\"exit\":8,\"sentence\":\"in doubt\""));
    free(line);
    close(fd);
    close(other);
    stop(&desk);
}
END_TEST

START_TEST(control__a_client_that_goes_while_it_waits_is_forgotten)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    say(fd, "{\"verb\":\"sync\"}\n");
    TEST_WAIT((event_base_loop(desk.base, EVLOOP_NONBLOCK), desk.ticket != 0), 5000);
    close(fd);
    event_base_loop(desk.base, EVLOOP_NONBLOCK);
    silt_control_answer(desk.control, desk.ticket, SILT_OK, json_object(), NULL);
    event_base_loop(desk.base, EVLOOP_NONBLOCK);
    silt_control_answer(desk.control, desk.ticket, SILT_OK, json_object(), NULL); /* nobody */
    stop(&desk);
}
END_TEST

START_TEST(control__a_client_that_ends_its_half_still_gets_its_answer)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    say(fd, "{\"verb\":\"ping\"}\n");
    shutdown(fd, SHUT_WR);
    char *line = hear(&desk, fd);
    ck_assert_str_eq(line, "{\"ok\":true}\n");
    free(line);
    line = hear(&desk, fd);
    ck_assert_str_eq(line, ""); /* then it is closed */
    free(line);
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__an_endless_request_is_refused_and_closed)
{
    struct desk desk;
    start(&desk);
    int fd = join(test_path("c.sock"));
    char *flood = malloc(SILT_CONTROL_REQUEST_MAX);
    memset(flood, ' ', SILT_CONTROL_REQUEST_MAX);
    for (size_t sent = 0; sent < SILT_CONTROL_REQUEST_MAX;) {
        ssize_t done =
            send(fd, flood, SILT_CONTROL_REQUEST_MAX - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done > 0) sent += (size_t)done;
        event_base_loop(desk.base, EVLOOP_NONBLOCK);
    }
    char *line = hear(&desk, fd);
    ck_assert_ptr_nonnull(strstr(line, "at most 65536 bytes"));
    free(line);
    line = hear(&desk, fd);
    ck_assert_str_eq(line, "");
    free(line);
    free(flood);
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__a_client_that_does_not_read_harms_nobody)
{
    struct desk desk;
    start(&desk);
    desk.answer_bytes = 1u << 19;
    int slow = join(test_path("c.sock")), fd = join(test_path("c.sock"));
    for (int i = 0; i < 200; i++)
        say(slow, "{\"verb\":\"status\"}\n");
    for (int i = 0; i < 20; i++)
        event_base_loop(desk.base, EVLOOP_NONBLOCK);
    check_answer(&desk, fd, "{\"verb\":\"ping\"}\n", "\"ok\":true");
    close(slow);
    check_answer(&desk, fd, "{\"verb\":\"ping\"}\n", "\"ok\":true");
    close(fd);
    stop(&desk);
}
END_TEST

START_TEST(control__clients_above_the_limit_wait_for_a_place)
{
    struct desk desk;
    int fds[SILT_CONTROL_CLIENTS_MAX + 1];
    start(&desk);
    for (size_t i = 0; i <= SILT_CONTROL_CLIENTS_MAX; i++) {
        fds[i] = join(test_path("c.sock"));
        if (i < SILT_CONTROL_CLIENTS_MAX)
            check_answer(&desk, fds[i], "{\"verb\":\"ping\"}\n", "\"ok\":true");
    }
    say(fds[SILT_CONTROL_CLIENTS_MAX], "{\"verb\":\"ping\"}\n");
    char byte;
    for (int i = 0; i < 5; i++)
        event_base_loop(desk.base, EVLOOP_NONBLOCK);
    ck_assert_int_eq(recv(fds[SILT_CONTROL_CLIENTS_MAX], &byte, 1, MSG_DONTWAIT), -1);
    close(fds[0]);
    char *line = hear(&desk, fds[SILT_CONTROL_CLIENTS_MAX]);
    ck_assert_str_eq(line, "{\"ok\":true}\n");
    free(line);
    for (size_t i = 1; i <= SILT_CONTROL_CLIENTS_MAX; i++)
        close(fds[i]);
    stop(&desk);
}
END_TEST

TEST_MAIN(control__the_socket_is_for_its_user_alone_and_goes_with_siltd,
          control__a_stale_file_is_replaced_a_live_one_is_not,
          control__a_path_that_cannot_be_used_is_refused, control__requests_are_answered_in_turn,
          control__bad_requests_are_refused_and_the_next_is_served,
          control__keys_of_any_bytes_are_understood, control__a_sync_is_answered_when_it_is_done,
          control__adopt_and_release_are_asked_by_name,
          control__a_client_that_goes_while_it_waits_is_forgotten,
          control__a_client_that_ends_its_half_still_gets_its_answer,
          control__an_endless_request_is_refused_and_closed,
          control__a_client_that_does_not_read_harms_nobody,
          control__clients_above_the_limit_wait_for_a_place)
