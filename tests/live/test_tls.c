/* TLS to a real server: the certificate and the name in it are checked, replies larger than a record come whole, and a server that hangs up ends nothing
 * but the connection. */
#include "conn_help.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static struct test_server server;
static struct silt_err err;
static struct silt_reply reply;

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

static void add_extension(X509 *to, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, to, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (extension == NULL || X509_add_ext(to, extension, -1) != 1)
        test_die("no extension %s", value);
    X509_EXTENSION_free(extension);
}

/* A certificate with that alternative name, signed by `by`; by NULL: an authority that signs itself. It holds until `seconds` from now. */
static struct identity make_until(const char *name, const char *names, const struct identity *by,
                                  long seconds)
{
    static long serial;
    struct identity made = {EVP_EC_gen("P-256"), X509_new()};
    if (made.key == NULL || made.certificate == NULL) test_die("no key");
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), -86400);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), seconds);
    X509_set_pubkey(made.certificate, made.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    const struct identity *issuer = by != NULL ? by : &made;
    X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer->certificate));
    add_extension(made.certificate, issuer->certificate, NID_basic_constraints,
                  by != NULL ? "CA:FALSE" : "critical,CA:TRUE");
    if (names != NULL)
        add_extension(made.certificate, issuer->certificate, NID_subject_alt_name, names);
    if (X509_sign(made.certificate, issuer->key, EVP_sha256()) == 0) test_die("not signed");
    return made;
}

static struct identity make(const char *name, const char *names, const struct identity *by)
{
    return make_until(name, names, by, 86400);
}

static void write_files(const struct identity *of, const char *certificate, const char *key)
{
    FILE *file = fopen(test_path("%s", certificate), "w");
    if (file == NULL || PEM_write_X509(file, of->certificate) != 1 || fclose(file) != 0)
        test_die("no %s", certificate);
    file = fopen(test_path("%s", key), "w");
    if (file == NULL || PEM_write_PrivateKey(file, of->key, NULL, NULL, 0, NULL, NULL) != 1 ||
        fclose(file) != 0)
        test_die("no %s", key);
}

static void release(struct identity *identity)
{
    EVP_PKEY_free(identity->key);
    X509_free(identity->certificate);
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        test_die("no free port");
    close(fd);
    return ntohs(address.sin_port);
}

/* New files: an authority (ca.pem), and a server's certificate with these alternative names that it signed (server.pem). */
static void certify(const char *names, long seconds)
{
    struct identity authority = make("test authority", NULL, NULL);
    struct identity one = make_until("server", names, &authority, seconds);
    write_files(&authority, "ca.pem", "ca.key");
    write_files(&one, "server.pem", "server.key");
    release(&authority);
    release(&one);
}

/* A server with these files; gives its port. */
static int start_with(const char *clients)
{
    char port[8];
    int number = free_port();
    snprintf(port, sizeof port, "%d", number);
    test_server_start(&server, "--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file",
                      test_path("server.pem"), "--tls-key-file", test_path("server.key"),
                      "--tls-ca-cert-file", test_path("ca.pem"), "--tls-auth-clients", clients,
                      NULL);
    return number;
}

static int start(const char *names)
{
    certify(names, 86400);
    return start_with("no");
}

/* Built without TLS it does not know the setting; built with it, it misses the file. */
static bool server_has_tls(void)
{
    struct test_outcome outcome;
    TEST_PROGRAM(&outcome, test_server_binary(), "--port", "0", "--tls-port", "1",
                 "--tls-cert-file", test_path("none.pem"));
    bool knows = strstr(outcome.out, "Bad directive") == NULL &&
                 strstr(outcome.err, "Bad directive") == NULL;
    test_outcome_release(&outcome);
    return knows;
}

#define NEEDS_TLS \
    if (!server_has_tls()) TEST_SKIP("this server was built without TLS")

static struct silt_conn *tls_conn(const char *host, int port, const char *ca)
{
    char address[128];
    snprintf(address, sizeof address, "tls:%s:%d", host, port);
    struct silt_conn_options options = options_for(address);
    options.tls_ca_file = ca != NULL ? test_path("%s", ca) : NULL;
    return new_conn(&options);
}

static void end(struct silt_conn *conn)
{
    silt_conn_free(conn);
    silt_reply_release(&reply);
    test_server_release(&server);
}

START_TEST(tls__a_server_with_the_right_certificate_is_served)
{
    NEEDS_TLS;
    int port = start("DNS:localhost,IP:127.0.0.1");
    const char *const hosts[] = {"localhost", "127.0.0.1"};
    for (size_t i = 0; i < 2; i++) {
        struct silt_conn *conn = tls_conn(hosts[i], port, "ca.pem");
        ck_gives(SILT_OK, CALL("PING"));
        ck_assert(text_is(&reply, 0, "PONG"));
        ck_gives(SILT_OK, CALL("PING"));
        ck_assert_uint_eq(silt_conn_generation(conn), 1);
        silt_conn_free(conn);
    }
    end(NULL);
}
END_TEST

START_TEST(tls__a_certificate_of_another_host_or_authority_is_refused)
{
    NEEDS_TLS;
    int port = start("DNS:elsewhere.example");
    struct identity stranger = make("another authority", NULL, NULL);
    write_files(&stranger, "stranger.pem", "stranger.key");
    release(&stranger);
    static const struct {
        const char *host, *ca, *says;
    } cases[] = {{"localhost", "ca.pem", "ostname mismatch"},
                 {"127.0.0.1", "ca.pem", "IP address mismatch"},
                 {"localhost", "stranger.pem", "certificate chain"},
                 {"localhost", NULL, "certificate chain"},
                 {"localhost", "none.pem", "none.pem"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct silt_conn *conn = tls_conn(cases[i].host, port, cases[i].ca);
        ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
        ck_assert_msg(strstr(err.sentence, cases[i].says) != NULL, "%s", err.sentence);
        ck_assert(!silt_conn_is_open(conn));
        silt_conn_free(conn);
    }
    end(NULL);
}
END_TEST

START_TEST(tls__a_certificate_that_has_expired_is_refused_until_it_is_renewed)
{
    NEEDS_TLS;
    certify("DNS:localhost", -60);
    int port = start_with("no");
    struct silt_conn *conn = tls_conn("localhost", port, "ca.pem");
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_msg(strstr(err.sentence, "certificate has expired") != NULL, "%s", err.sentence);
    ck_assert(!silt_conn_is_open(conn));
    certify("DNS:localhost", 86400); /* another authority, too: the file is read at every connect */
    test_cmd(&server, "CONFIG SET tls-cert-file %s tls-key-file %s", test_path("server.pem"),
             test_path("server.key"));
    ck_gives(SILT_OK, CALL("PING"));
    test_file_write(test_path("ca.pem"), "-----BEGIN rubbish", 18);
    ck_gives(SILT_OK, CALL("PING")); /* connected is connected */
    silt_conn_close(conn);
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "ca.pem"));
    end(conn);
}
END_TEST

static struct silt_conn *conn_with_identity(int port, const char *cert, const char *key)
{
    char address[64];
    snprintf(address, sizeof address, "tls:localhost:%d", port);
    struct silt_conn_options options = options_for(address);
    options.tls_ca_file = test_path("ca.pem");
    options.tls_cert_file = cert;
    options.tls_key_file = key;
    return new_conn(&options);
}

/* As a server is by default: it asks its clients for a certificate. */
START_TEST(tls__a_server_that_asks_for_a_certificate_gets_ours)
{
    NEEDS_TLS;
    certify("DNS:localhost", 86400);
    int port = start_with("yes");
    struct silt_conn *conn = conn_with_identity(port, NULL, NULL);
    enum silt_status status = CALL("PING");
    ck_assert_msg(status == SILT_ERR_SERVER_AWAY && strstr(err.sentence, "certificate") != NULL,
                  "%s", err.sentence);
    silt_conn_free(conn);
    conn = conn_with_identity(port, test_path("server.pem"), test_path("server.key"));
    ck_gives(SILT_OK, CALL("PING"));
    silt_conn_free(conn);
    const struct {
        const char *cert, *key, *says;
    } bad[] = {{test_path("server.pem"), NULL, "server.pem"}, /* no key in it */
               {test_path("none.pem"), NULL, "none.pem"},
               {NULL, test_path("server.key"), "goes with a tls-cert-file"},
               {test_path("server.pem"), test_path("ca.key"), "ca.key"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        conn = conn_with_identity(port, bad[i].cert, bad[i].key);
        ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
        ck_assert_msg(strstr(err.sentence, bad[i].says) != NULL, "%s", err.sentence);
        silt_conn_free(conn);
    }
    end(NULL);
}
END_TEST

/* The programs, with a private authority from the settings: archived, trimmed and read as one; after a change of all files, too. */
START_TEST(tls__siltd_and_silt_work_through_it)
{
    NEEDS_TLS;
    char text[1024];
    struct test_outcome outcome;
    certify("DNS:localhost", 86400);
    int port = start_with("yes");
    int len =
        snprintf(text, sizeof text,
                 "valkey:\n  address: tls:localhost:%d\n  tls-ca-file: \"%s\"\n"
                 "  tls-cert-file: \"%s\"\n  tls-key-file: \"%s\"\narchive: { path: \"%s\" }\n"
                 "streams:\n- { match: s, keep: { entries: 3 } }\n",
                 port, test_path("ca.pem"), test_path("server.pem"), test_path("server.key"),
                 test_path("archive"));
    test_file_write(test_path("silt.yaml"), text, (size_t)len);
    for (int i = 1; i <= 20; i++)
        test_cmd(&server, "XADD s %d-0 n %d", i, i);
    TEST_PROGRAM(&outcome, "siltd", "--config", test_path("silt.yaml"), "--once");
    ck_assert_msg(outcome.code == 0, "%s", outcome.err);
    test_outcome_release(&outcome);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), 3);
    TEST_PROGRAM(&outcome, "silt", "read", "s", "--count", "--config", test_path("silt.yaml"));
    ck_assert_msg(outcome.code == 0 && strncmp(outcome.out, "20", 2) == 0, "%d %s%s", outcome.code,
                  outcome.out, outcome.err);
    test_outcome_release(&outcome);
    end(NULL);
}
END_TEST

START_TEST(tls__replies_around_the_size_of_a_record_come_without_further_traffic)
{
    NEEDS_TLS;
    int port = start("DNS:localhost");
    struct silt_conn *conn = tls_conn("localhost", port, "ca.pem");
    char sizes[8];
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    for (int size = 16380; size < 16384 + 600; size += 7) {
        char *value = calloc(1, (size_t)size);
        snprintf(sizes, sizeof sizes, "%d", size);
        struct silt_view echo[2] = {silt_view_str("ECHO"), silt_view(value, (size_t)size)};
        for (int i = 0; i < 3; i++)
            ck_gives(SILT_OK, silt_conn_append(conn, echo, 2, &err));
        for (int i = 0; i < 3; i++) {
            ck_gives(SILT_OK, silt_conn_receive(conn, &reply, &err));
            ck_assert_uint_eq(reply.nodes[0].size, (unsigned)size);
        }
        free(value);
    }
    end(conn);
}
END_TEST

START_TEST(tls__much_in_both_directions)
{
    enum { BYTES = 6 << 20 };
    NEEDS_TLS;
    int port = start("DNS:localhost");
    struct silt_conn *conn = tls_conn("localhost", port, "ca.pem");
    uint8_t *value = malloc(BYTES);
    struct test_rng rng = test_rng(3);
    test_rng_bytes(&rng, value, BYTES);
    struct silt_view set[3] = {silt_view_str("SET"), silt_view_str("k"), silt_view(value, BYTES)};
    ck_gives(SILT_OK, silt_conn_call(conn, set, 3, &reply, &err));
    for (int i = 0; i < 2; i++)
        ck_gives(SILT_OK, silt_conn_append_words(conn, &err, "GET", "k", (char *)NULL));
    for (int i = 0; i < 2; i++) {
        ck_gives(SILT_OK, silt_conn_receive(conn, &reply, &err));
        ck_assert(silt_view_equal(silt_reply_text(&reply, 0), silt_view(value, BYTES)));
    }
    free(value);
    end(conn);
}
END_TEST

START_TEST(tls__a_server_that_hangs_up_ends_only_the_connection)
{
    NEEDS_TLS;
    int port = start("DNS:localhost");
    struct silt_conn *conn = tls_conn("localhost", port, "ca.pem");
    signal(SIGPIPE, SIG_DFL); /* so that one would end this test */
    ck_gives(SILT_OK, CALL("PING"));
    test_cmd(&server, "CLIENT KILL TYPE normal SKIPME yes");
    ck_gives(SILT_OK, CALL("PING")); /* idle: made again */
    ck_assert_uint_eq(silt_conn_generation(conn), 2);
    ck_gives(SILT_OK, silt_conn_append_words(conn, &err, "PING", (char *)NULL));
    test_server_kill(&server);
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_receive(conn, &reply, &err));
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err));
    test_server_restart(&server);
    ck_gives(SILT_OK, CALL("PING"));
    end(conn);
}
END_TEST

START_TEST(tls__the_time_limit_holds)
{
    NEEDS_TLS;
    int port = start("DNS:localhost");
    char address[64];
    snprintf(address, sizeof address, "tls:localhost:%d", port);
    struct silt_conn_options options = options_for(address);
    options.tls_ca_file = test_path("ca.pem");
    options.command_timeout_ms = options.connect_timeout_ms = 300;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_OK, CALL("PING"));
    test_server_pause(&server);
    ck_gives(SILT_ERR_SERVER_TIMEOUT, CALL("PING"));
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err)); /* no hand is shaken */
    test_server_resume(&server);
    ck_gives(SILT_OK, CALL("PING"));
    end(conn);
}
END_TEST

START_TEST(tls__a_server_without_tls_is_away)
{
    char address[64];
    test_server_start_tcp(&server, NULL);
    snprintf(address, sizeof address, "tls:127.0.0.1:%d", server.port);
    struct silt_conn_options options = options_for(address);
    options.connect_timeout_ms = 1000;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "no TLS"));
    end(conn);
}
END_TEST

TEST_MAIN(tls__a_server_with_the_right_certificate_is_served,
          tls__a_certificate_of_another_host_or_authority_is_refused,
          tls__a_certificate_that_has_expired_is_refused_until_it_is_renewed,
          tls__a_server_that_asks_for_a_certificate_gets_ours, tls__siltd_and_silt_work_through_it,
          tls__replies_around_the_size_of_a_record_come_without_further_traffic,
          tls__much_in_both_directions, tls__a_server_that_hangs_up_ends_only_the_connection,
          tls__the_time_limit_holds, tls__a_server_without_tls_is_away)
