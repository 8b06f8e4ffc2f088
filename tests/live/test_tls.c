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

/* A certificate with that alternative name, signed by `by`; by NULL: an authority that signs itself. */
static struct identity make(const char *name, const char *names, const struct identity *by)
{
    static long serial;
    struct identity made = {EVP_EC_gen("P-256"), X509_new()};
    if (made.key == NULL || made.certificate == NULL) test_die("no key");
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), 86400);
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

/* A server whose certificate has these alternative names, signed by the authority in ca.pem; gives its port. */
static int start(const char *names)
{
    char port[8];
    int number = free_port();
    struct identity authority = make("test authority", NULL, NULL);
    struct identity one = make("server", names, &authority);
    write_files(&authority, "ca.pem", "ca.key");
    write_files(&one, "server.pem", "server.key");
    release(&authority);
    release(&one);
    snprintf(port, sizeof port, "%d", number);
    test_server_start(&server, "--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file",
                      test_path("server.pem"), "--tls-key-file", test_path("server.key"),
                      "--tls-ca-cert-file", test_path("ca.pem"), "--tls-auth-clients", "no", NULL);
    return number;
}

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

START_TEST(tls__replies_around_the_size_of_a_record_come_without_further_traffic)
{
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
          tls__replies_around_the_size_of_a_record_come_without_further_traffic,
          tls__much_in_both_directions, tls__a_server_that_hangs_up_ends_only_the_connection,
          tls__the_time_limit_holds, tls__a_server_without_tls_is_away)
