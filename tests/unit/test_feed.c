/* The sample must be what it says before anything is measured or proven with it (contract.md §6.5). */
#include <stdlib.h>

#include "harness/feed.h"
#include "harness/harness.h"

static struct silt_view value_of(const struct silt_entry *entry, const char *name)
{
    for (size_t f = 0; f < entry->field_count; f++)
        if (silt_view_equal(entry->fields[f].name, silt_view_str(name)))
            return entry->fields[f].value;
    return silt_view(NULL, 0);
}

static bool is_event(const struct silt_entry *entry, const char *event)
{
    return silt_view_equal(value_of(entry, "event"), silt_view_str(event));
}

static uint64_t number_of(const struct silt_entry *entry, const char *name)
{
    uint64_t number = 0;
    ck_assert_msg(silt_parse_u64(value_of(entry, name), &number), "no number %s", name);
    return number;
}

static uint64_t digest_of(struct test_feed *feed)
{
    struct silt_entry entry;
    uint64_t digest = 0;
    while (test_feed_next(feed, &entry))
        digest = silt_entry_digest(&entry, digest);
    test_feed_free(feed);
    return digest;
}

START_TEST(feed__repeats_with_its_seed)
{
    uint64_t first = digest_of(test_feed_new(1, 3000));
    ck_assert_uint_eq(first, digest_of(test_feed_new(1, 3000)));
    ck_assert_uint_ne(first, digest_of(test_feed_new(2, 3000)));
    ck_assert_uint_eq(digest_of(test_feed_new_odd(1)), digest_of(test_feed_new_odd(1)));
}
END_TEST

START_TEST(feed__ids_ascend_and_are_its_own)
{
    struct test_feed *feed = test_feed_new(3, 60000);
    struct silt_entry entry;
    struct silt_wire_id last = SILT_WIRE_ID_MIN;
    size_t count = 0, field, same = 0, nodes = 0;
    uint64_t run = 1, longest = 1, node = 0;
    for (; test_feed_next(feed, &entry); count++) {
        ck_assert(silt_wire_id_less(last, entry.id));
        ck_assert(silt_entry_is_ours(&entry, TEST_FEED_NAMESPACE, &field));
        run = entry.id.ms == last.ms ? run + 1 : 1;
        longest = run > longest ? run : longest;
        same += run == 2;
        nodes += entry.id.seq >> 12 != node;
        node = entry.id.seq >> 12;
        last = entry.id;
    }
    ck_assert_uint_eq(count, 60000);
    ck_assert_uint_eq(longest, 4096); /* a burst that carries into the next millisecond */
    ck_assert_uint_eq(nodes, 4);      /* three deploys */
    ck_assert_uint_gt(same, 100);
    test_feed_free(feed);
}
END_TEST

struct board {
    uint8_t game[14], player[14];
    uint64_t best;
};

static bool is_text(const uint8_t at[14], struct silt_view value)
{
    return value.len == 14 && memcmp(at, value.at, 14) == 0;
}

/* eff is the running maximum of a player's points in a game; pct is of this guess alone. */
START_TEST(feed__scores_are_running_maxima)
{
    static struct board boards[4096];
    size_t count = 0, scored = 0, raised = 0;
    struct test_feed *feed = test_feed_new(4, 8000);
    for (struct silt_entry entry; test_feed_next(feed, &entry);) {
        if (!is_event(&entry, "scored")) continue;
        struct silt_view game = value_of(&entry, "game"), player = value_of(&entry, "player");
        size_t at = 0;
        while (at < count &&
               !(is_text(boards[at].game, game) && is_text(boards[at].player, player)))
            at++;
        if (at == count) {
            ck_assert_uint_lt(count, 4096);
            memcpy(boards[count].game, game.at, 14);
            memcpy(boards[count++].player, player.at, 14);
        }
        uint64_t points = (number_of(&entry, "pct") * 6 + 10) / 20 * 20;
        raised += points > boards[at].best;
        boards[at].best = points > boards[at].best ? points : boards[at].best;
        ck_assert_uint_eq(number_of(&entry, "eff"), boards[at].best);
        scored++;
    }
    ck_assert_uint_gt(scored, 3000);
    ck_assert_uint_gt(raised, 500);
    test_feed_free(feed);
}
END_TEST

/* Each scored has exactly one earlier guessed of its job; each settled comes after its opened, with the right count. */
START_TEST(feed__events_follow_from_each_other)
{
    struct silt_entry_list list;
    struct test_feed *feed = test_feed_new(5, 6000);
    test_feed_list(feed, &list);
    size_t settled = 0;
    for (size_t i = 0; i < list.count; i++) {
        const struct silt_entry *entry = &list.entries[i];
        bool scored = is_event(entry, "scored"), end = is_event(entry, "settled");
        if (!(scored && i % 16 == 0) && !end) continue;
        struct silt_view key = value_of(entry, scored ? "job" : "game");
        size_t guesses = 0, opened = 0;
        for (size_t k = 0; k < i; k++) {
            const struct silt_entry *old = &list.entries[k];
            if (!silt_view_equal(value_of(old, scored ? "job" : "game"), key)) continue;
            guesses += is_event(old, "guessed");
            opened += is_event(old, "opened");
        }
        if (scored) ck_assert_uint_eq(guesses, 1);
        if (!end) continue;
        ck_assert_uint_eq(guesses, number_of(entry, "guesses"));
        ck_assert_uint_eq(opened, 1);
        settled++;
    }
    ck_assert_uint_gt(settled, 3);
    silt_entry_list_release(&list);
    test_feed_free(feed);
}
END_TEST

START_TEST(feed__odd_shard_holds_what_it_says)
{
    struct test_feed *feed = test_feed_new_odd(1);
    struct silt_wire_id last = SILT_WIRE_ID_MIN;
    size_t count = 0, foreign = 0, bare = 0, wide = 0, huge = 0, early = 0, tails = 0, field;
    for (struct silt_entry entry; test_feed_next(feed, &entry); count++) {
        ck_assert(silt_wire_id_less(last, entry.id));
        last = entry.id;
        foreign += !silt_entry_is_ours(&entry, TEST_FEED_NAMESPACE, &field);
        bare += entry.field_count == 0;
        wide += entry.field_count >= 200;
        huge += value_of(&entry, "long").len == 65536;
        early += entry.id.ms < SILT_EPOCH_MS;
        tails += entry.id.seq > SILT_TAIL_MAX;
    }
    ck_assert_uint_eq(count, TEST_FEED_ODD_COUNT);
    ck_assert(foreign > 500 && bare > 50 && wide > 50 && huge > 5 && early == 200 && tails > 50);
    test_feed_free(feed);
}
END_TEST

TEST_MAIN(feed__repeats_with_its_seed, feed__ids_ascend_and_are_its_own,
          feed__scores_are_running_maxima, feed__events_follow_from_each_other,
          feed__odd_shard_holds_what_it_says)
