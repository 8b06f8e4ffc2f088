/* Field report C9, with the program itself: under the user that docs/rights.md gives it lives a whole life; a right that is missing is said once, whatever the
 * number of streams and tries, nothing is lost, and all goes on when it is granted. */
#include "sent.h"
#include "siltd_help.h"

/* The user of the page, to the letter, with a password that the page does not have. */
static void make_documented_user(struct test_server *server)
{
    char path[300], *line, *end;
    snprintf(path, sizeof path, "%s/docs/rights.md", test_source_root());
    char *page = test_file_read(path, NULL);
    line = strstr(page, "ACL SETUSER silt on >PASSWORD ");
    ck_assert_ptr_nonnull(line);
    end = strchr(line, '\n');
    *end = '\0';
    memcpy(strchr(line, '>'), ">sesame00", 9); /* as long as PASSWORD */
    test_cmd(server, line);
    free(page);
    test_file_write(test_path("password"), "sesame00\n", 9);
}

static void write_login(struct daemon *d, const char *more, const char *streams)
{
    char text[2000];
    snprintf(d->config, sizeof d->config, "%s", test_path("silt.yaml"));
    int len = snprintf(text, sizeof text,
                       "valkey: { address: \"%s\", user: silt, password-file: %s }\n"
                       "archive: { path: %s }\ncontrol: %s\n%sstreams:\n%s",
                       d->server.address, test_path("password"), test_path("archive"),
                       test_path("c.sock"), more, streams);
    test_file_write(d->config, text, (size_t)len);
}

START_TEST(rights_siltd__the_documented_user_lives_a_whole_life)
{
    struct daemon d = {0};
    struct test_outcome o;
    test_server_start(&d.server, NULL);
    make_documented_user(&d.server);
    write_login(
        &d, "",
        "- { match: orders, keep: { entries: 5, age: 30d, bytes: 1MiB }, seam: best-effort, "
        "fold-delay: 20ms }\n");
    add_entries(&d, "orders", 50);
    test_cmd(&d.server, "XGROUP CREATE orders readers 0");
    test_cmd(&d.server, "XREADGROUP GROUP readers me COUNT 40 STREAMS orders >");
    run_siltd(&d, "--once", NULL, &o); /* first contact, folds, what the group lets go */
    ck_assert_msg(o.code == 0, "%s", o.err);
    test_outcome_release(&o);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN orders"), 50);
    test_cmd(&d.server, "XGROUP DESTROY orders readers");
    for (int life = 0; life < 2; life++) {
        start_siltd(&d);
        TEST_WAIT(test_cmd_int(&d.server, "XLEN orders") == 5, 20000);
        add_entries(&d, "orders", 20);
        TEST_WAIT(test_cmd_int(&d.server, "XLEN orders") == 5, 20000);
        test_cmd(&d.server, "CLIENT KILL USER silt");
        add_entries(&d, "orders", 20);
        TEST_WAIT(test_cmd_int(&d.server, "XLEN orders") == 5, 20000);
        ck_assert_str_eq(stream_text("orders", "state"), "ok");
        end_siltd(&d, life == 0 ? SIGKILL : SIGTERM);
    }
    ck_assert_int_eq(test_cmd_int(&d.server, "EXISTS {orders}:archived"), 1);
    TEST_PROGRAM(&o, "silt", "read", "orders", "--count", "--config", d.config);
    ck_assert_msg(o.code == 0 && atoi(o.out) == 130, "%s%s", o.out, o.err);
    test_outcome_release(&o);
    ck_assert_str_eq(test_server_info(&d.server, "errorstats", "errorstat_NOPERM"), "");
    test_server_release(&d.server);
}
END_TEST

/* ---- one right fewer ---- */

/* How often the user was denied a command since the last reset. */
static long long denials(struct test_server *server)
{
    const redisReply *log = test_cmd(server, "ACL LOG");
    long long sum = 0;
    for (size_t i = 0; i < log->elements; i++)
        for (size_t j = 0; j + 1 < log->element[i]->elements; j += 2)
            if (strcmp(log->element[i]->element[j]->str, "count") == 0)
                sum += log->element[i]->element[j + 1]->integer;
    return sum;
}

/* Warnings and errors, but for those of a connection that this test has cut. */
static unsigned warnings(const struct daemon *d)
{
    unsigned count = 0;
    char *rest, *err = test_child_err(&d->child);
    for (char *line = strtok_r(err, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        count += (strstr(line, "level=warn") || strstr(line, "level=error")) &&
                 !strstr(line, "SILT_ERR_SERVER_AWAY") && !strstr(line, "event=archive-place");
    free(err);
    return count;
}

/* A fresh connection, a server that has to be told the script again, and everything due at once. */
static void provoke(struct daemon *d)
{
    test_cmd(&d->server, "SCRIPT FLUSH");
    test_cmd(&d->server, "CLIENT KILL USER silt");
    test_child_signal(&d->child, SIGHUP);
}

static bool within_keep(struct daemon *d, const char *const keys[2])
{
    return test_cmd_int(&d->server, "XLEN %s", keys[0]) == 5 &&
           test_cmd_int(&d->server, "XLEN %s", keys[1]) == 5;
}

static void take_away(struct daemon *d, const char *name)
{
    char line[100];
    snprintf(line, sizeof line, "ACL SETUSER silt -%s", name);
    test_cmd(&d->server, line);
    test_cmd(&d->server, "ACL LOG RESET");
}

/* Twelve entries, of which a group has acknowledged all but the last five. */
static void new_stream(struct daemon *d, const char *key)
{
    for (int i = 1; i <= 12; i++)
        test_cmd(&d->server, "XADD %s %d-0 n %d", key, i, i);
    test_cmd(&d->server, "XGROUP CREATE %s readers 0", key);
    test_cmd(&d->server, "XREADGROUP GROUP readers me COUNT 12 STREAMS %s >", key);
    test_cmd(&d->server, "XACK %s readers 1-0 2-0 3-0 4-0 5-0 6-0 7-0", key);
}

/* Two streams that are new, while the right is missing. Gives how many warnings were written. */
static unsigned live_without(struct daemon *d, const struct right *right, const char *const keys[2])
{
    unsigned before = warnings(d);
    take_away(d, right->name);
    for (int i = 0; i < 2; i++)
        new_stream(d, keys[i]);
    for (int round = 0; round < 3; round++) {
        long long seen = denials(&d->server);
        provoke(d);
        if (right->without != SILT_OK) TEST_WAIT(denials(&d->server) > seen, 20000);
    }
    if (right->without == SILT_OK) {
        TEST_WAIT(within_keep(d, keys), 20000);
        return warnings(d) - before;
    }
    TEST_WAIT(warnings(d) > before, 20000);
    ck_assert_msg(!within_keep(d, keys), "%s", right->name);
    return warnings(d) - before;
}

static void check_all_there(const struct daemon *d, const char *const keys[2])
{
    struct test_outcome o;
    for (int i = 0; i < 2; i++) {
        TEST_PROGRAM(&o, "silt", "read", keys[i], "--count", "--config", d->config);
        ck_assert_msg(o.code == 0 && atoi(o.out) == 12, "%s: %s%s", keys[i], o.out, o.err);
        test_outcome_release(&o);
    }
}

START_TEST(rights_siltd__c9_a_missing_right_is_said_once_and_nothing_is_lost)
{
    struct daemon d = {0};
    char key[2][16];
    const char *const keys[2] = {key[0], key[1]};
    test_server_start(&d.server, NULL);
    make_documented_user(&d.server);
    test_cmd(&d.server, "ACL SETUSER silt ~s* ~{s*}:archived +scan");
    write_login(&d, "idle-look: 1s\n",
                "- { match: 's*', keep: { entries: 5 }, seam: best-effort, fold-delay: 10ms }\n");
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    for (size_t i = 0; i < RIGHTS; i++) {
        snprintf(key[0], sizeof key[0], "s%zua", i);
        snprintf(key[1], sizeof key[1], "s%zub", i);
        unsigned said = live_without(&d, &rights[i], keys);
        if (said > 1) {
            char *log = test_child_err(&d.child);
            fputs(log, stderr); /* Check's own message has no room for it */
            free(log);
        }
        ck_assert_msg(said <= 1, "without %s: %u lines", rights[i].name, said);
        char grant[100];
        snprintf(grant, sizeof grant, "ACL SETUSER silt +%s", rights[i].name);
        test_cmd(&d.server, grant);
        provoke(&d);
        TEST_WAIT(within_keep(&d, keys), 20000);
        check_all_there(&d, keys);
    }
    /* scan: said once too, and exact keys would go on; SCAN … TYPE asks for no right to TYPE, which this user never had */
    unsigned before = warnings(&d);
    take_away(&d, "scan");
    provoke(&d);
    TEST_WAIT(has_said(&d, "event=patterns-not-searched"), 20000);
    provoke(&d);
    add_entries(&d, "s0a", 12);
    test_cmd(&d.server, "XGROUP DESTROY s0a readers");
    TEST_WAIT(test_cmd_int(&d.server, "XLEN s0a") == 5, 20000);
    ck_assert_uint_eq(warnings(&d) - before, 1);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

TEST_MAIN(rights_siltd__the_documented_user_lives_a_whole_life,
          rights_siltd__c9_a_missing_right_is_said_once_and_nothing_is_lost)
