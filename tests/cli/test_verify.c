/* silt verify on a sound archive, on one with a gap, and on a damaged one. */
#include "cli.h"

static struct cli cli;

static void start_folded(void)
{
    cli_start(&cli, "  - match: orders\n    keep: { entries: 5 }\n  - match: others\n");
    cli_add(&cli, "orders", 1, 200);
    cli_add(&cli, "others", 1, 3);
    cli_fold();
}

/* Turns one bit in every compressed block of the archive's file. */
static void damage(void)
{
    char *name = test_file_read(test_path("archive/current"), NULL);
    name[strcspn(name, "\n")] = '\0';
    const char *path = test_path("archive/%s", name);
    size_t len, blocks = 0;
    char *bytes = test_file_read(path, &len);
    for (size_t at = 0; at + 8 < len; at++) {
        if (memcmp(bytes + at, "\x28\xb5\x2f\xfd", 4) != 0) continue;
        bytes[at + 7] ^= 1;
        blocks++;
    }
    if (blocks == 0) test_die("no compressed block in %s", path);
    test_file_write(path, bytes, len);
    free(bytes);
    free(name);
}

START_TEST(verify__proves_a_sound_archive)
{
    start_folded();
    CK_SILT(0, "203 entries in 2 segments of 2 streams read and decoded", "", "verify");
    CK_SILT(0, "no damage", "", "verify");
    CK_SILT(0, "200 entries", "", "verify", "orders");
    CK_SILT(0, "{\"summary\":{\"streams\":2,\"segments\":2,\"entries\":203,", "", "verify",
            "--json");
    CK_SILT(0, "no damage", "", "verify", "orders", "--from", "10", "--to", "20-0");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(verify__a_gap_is_a_finding_and_no_damage)
{
    start_folded();
    cli_add(&cli, "orders", 201, 210);
    test_cmd(&cli.server, "XTRIM orders MINID 206-0");
    cli_fold();
    CK_SILT(1, "recorded gaps: 1", "", "verify");
    CK_SILT(1, "\"damage\":false,\"stream\":\"orders\"", "", "verify", "--json");
    CK_SILT(0, "recorded gaps: 0", "", "verify", "others");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(verify__names_what_damage_costs)
{
    start_folded();
    damage();
    CK_SILT(5, "1-0 to ", "", "verify");
    CK_SILT(5, "damage found: ", "", "verify");
    CK_SILT(5, "\"damage\":true,\"stream\":\"orders\"", "", "verify", "--json");
    CK_SILT(5, "", "1-0", "read", "orders", "--archive-only");
    CK_SILT(1, "", "damage: the segment of 1-0 to ", "read", "orders", "--archive-only",
            "--skip-damaged");
    CK_SILT(1, "{\"damage\":{\"first\":\"1-0\"", "", "read", "orders", "--archive-only",
            "--skip-damaged", "--json");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(verify__refusals)
{
    start_folded();
    CK_SILT(2, "", "--from and --to need a KEY", "verify", "--from", "1");
    CK_SILT(2, "", "the window is inverted", "verify", "orders", "--from", "2", "--to", "1");
    CK_SILT(2, "", "nokey", "verify", "nokey");
    CK_SILT(5, "", "none", "verify", "--archive", test_path("none"));
    test_file_write(test_path("file"), "x", 1);
    CK_SILT(5, "", "file", "verify", "--archive", test_path("file"));
    test_server_release(&cli.server);
}
END_TEST

TEST_MAIN(verify__proves_a_sound_archive, verify__a_gap_is_a_finding_and_no_damage,
          verify__names_what_damage_costs, verify__refusals)
