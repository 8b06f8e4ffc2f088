/* archiver/custody.c: every row of the decision table (protocol.md §3), without a server. */
#include "../harness/harness.h"
#include "custody.h"

#define UUID "0190c4a2-0000-7000-8000-000000000001"
#define OTHER_UUID "0190c4a2-0000-7000-8000-000000000002"

static struct silt_wire_id id(uint64_t ms)
{
    return (struct silt_wire_id){ms, 0};
}

struct scene {
    struct silt_stream_row row;
    bool has_row;
    struct silt_look look;
    struct silt_look_group groups[4];
    char names[4][SILT_MARKER_TEXT];
    uint64_t epoch;
};

static void put_group(struct scene *scene, const char *uuid, uint64_t epoch, uint64_t number,
                      struct silt_wire_id at)
{
    size_t n = scene->look.group_count++;
    struct silt_marker marker = {.epoch = epoch, .number = number};
    memcpy(marker.uuid, uuid, sizeof marker.uuid);
    size_t len = silt_marker_format(&marker, scene->names[n]);
    scene->groups[n] = (struct silt_look_group){
        .name = silt_view(scene->names[n], len), .last_delivered = at, .is_silt = true};
    scene->look.groups = scene->groups;
}

/* Ten folded (1-0 to 10-0), twelve live (1-0 to 12-0), our marker at 10-0. */
static void calm(struct scene *scene)
{
    *scene = (struct scene){.has_row = true, .epoch = 1};
    struct silt_facts facts = {.entries_added = 10,
                               .length = 10,
                               .last = {10, 0},
                               .has_first = true,
                               .first = {1, 0},
                               .first_digest = 77,
                               .max_deleted = {2, 0}};
    memcpy(facts.replid, "0123456789012345678901234567890123456789", 41);
    scene->row = (struct silt_stream_row){.number = 1,
                                          .life = 1,
                                          .folded_any = true,
                                          .watermark = {10, 0},
                                          .custody = {10, 0},
                                          .custody_added = 10,
                                          .marker_number = 5,
                                          .marker_seen = true,
                                          .marker_found = {4, 0},
                                          .has_facts = true,
                                          .facts = facts};
    facts.entries_added = 12;
    facts.length = 12;
    facts.last = id(12);
    scene->look = (struct silt_look){.state = SILT_LOOK_STREAM, .facts = facts};
}

static void calm_with_marker(struct scene *scene, struct silt_wire_id at)
{
    calm(scene);
    put_group(scene, UUID, 1, 5, at);
}

static struct silt_custody decide(struct scene *scene)
{
    struct silt_custody_input input = {.row = scene->has_row ? &scene->row : NULL,
                                       .highest_watermark = scene->row.watermark,
                                       .look = &scene->look,
                                       .uuid = UUID,
                                       .epoch = scene->epoch};
    return silt_custody_decide(&input);
}

static void check_row(struct scene *scene, enum silt_custody_row row, const char *word)
{
    struct silt_custody custody = decide(scene);
    ck_assert_msg(custody.row == row, "row %d (%s)", custody.row, custody.reason);
    ck_assert_msg(strstr(custody.reason, word) != NULL, "'%s' has no '%s'", custody.reason, word);
}

START_TEST(custody__continues_with_the_marker_at_custody)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    check_row(&scene, SILT_CUSTODY_CONTINUES, "");
    ck_assert(decide(&scene).marker_present);
}
END_TEST

START_TEST(custody__moves_the_marker_only_from_where_the_commit_found_it)
{
    struct scene scene;
    calm_with_marker(&scene, id(4));
    check_row(&scene, SILT_CUSTODY_MOVE_MARKER, "4-0");
    calm_with_marker(&scene, id(5));
    check_row(&scene, SILT_CUSTODY_DOUBT, "5-0");
    ck_assert_int_eq(decide(&scene).cause, SILT_AUDIT_OURS_ELSEWHERE);
}
END_TEST

START_TEST(custody__first_contact_without_row_or_marker)
{
    struct scene scene;
    calm(&scene);
    scene.has_row = false;
    check_row(&scene, SILT_CUSTODY_FIRST_CONTACT, "");
}
END_TEST

START_TEST(custody__first_contact_again_after_a_crash)
{
    struct scene scene;
    calm(&scene); /* the number is committed, the marker not yet made */
    scene.row.folded_any = scene.row.has_facts = false;
    scene.row.watermark = id(0);
    check_row(&scene, SILT_CUSTODY_FIRST_CONTACT, "");
    put_group(&scene, UUID, 1, 5, id(0));
    check_row(&scene, SILT_CUSTODY_FIRST_CONTACT, "");
    ck_assert(decide(&scene).marker_present);
}
END_TEST

START_TEST(custody__a_moved_marker_on_an_unfolded_stream_is_another_copy)
{
    struct scene scene;
    calm_with_marker(&scene, id(3));
    scene.row.folded_any = false;
    check_row(&scene, SILT_CUSTODY_OTHER_COPY, "moved");
}
END_TEST

START_TEST(custody__our_marker_without_a_row_is_another_copy)
{
    struct scene scene;
    calm_with_marker(&scene,
                     id(0)); /* the row is committed before the marker is made, so it was not us */
    scene.has_row = false;
    check_row(&scene, SILT_CUSTODY_OTHER_COPY, UUID);
}
END_TEST

START_TEST(custody__another_archives_marker_is_named)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    put_group(&scene, OTHER_UUID, 1, 9, id(7));
    check_row(&scene, SILT_CUSTODY_CLAIMED, OTHER_UUID);
    scene.has_row = false;
    check_row(&scene, SILT_CUSTODY_CLAIMED, OTHER_UUID);
}
END_TEST

START_TEST(custody__an_unreadable_claim_is_a_claim)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    scene.groups[1] =
        (struct silt_look_group){.name = silt_view_str("silt:future-form"), .is_silt = true};
    scene.look.group_count = 2;
    check_row(&scene, SILT_CUSTODY_CLAIMED, "silt:future-form");
}
END_TEST

START_TEST(custody__above_every_watermark_is_a_newer_copy)
{
    struct scene scene;
    calm_with_marker(&scene, id(11));
    check_row(&scene, SILT_CUSTODY_OTHER_COPY, "11-0");
}
END_TEST

START_TEST(custody__another_number_or_higher_epoch_is_another_copy)
{
    struct scene scene;
    calm(&scene);
    put_group(&scene, UUID, 1, 6, id(10));
    check_row(&scene, SILT_CUSTODY_OTHER_COPY, ":1:6");
    calm(&scene);
    put_group(&scene, UUID, 2, 5, id(10));
    check_row(&scene, SILT_CUSTODY_OTHER_COPY, ":2:5");
}
END_TEST

START_TEST(custody__a_lower_epoch_is_left_to_adopt)
{
    struct scene scene;
    calm(&scene);
    scene.epoch = 3;
    put_group(&scene, UUID, 2, 5, id(10));
    check_row(&scene, SILT_CUSTODY_OTHER_COPY, "earlier epoch");
}
END_TEST

START_TEST(custody__a_pending_audit_outweighs_everything)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    scene.row.verdict = SILT_VERDICT_AUDIT_PENDING;
    scene.row.verdict_reason = silt_view_str("because of then");
    check_row(&scene, SILT_CUSTODY_AUDIT, "because of then");
    ck_assert_str_eq(decide(&scene).claim, "");
    put_group(&scene, OTHER_UUID, 1, 9, id(7));
    check_row(&scene, SILT_CUSTODY_AUDIT, "because of then");
    ck_assert_ptr_nonnull(strstr(decide(&scene).claim, OTHER_UUID));
    scene.look.state = SILT_LOOK_GONE;
    check_row(&scene, SILT_CUSTODY_AUDIT, "because of then");
    ck_assert_str_eq(decide(&scene).claim, "");
}
END_TEST

START_TEST(custody__a_pending_audit_waits_where_a_newer_copy_is_at_work)
{
    struct scene scene;
    calm_with_marker(&scene, id(11));
    scene.row.verdict = SILT_VERDICT_AUDIT_PENDING;
    check_row(&scene, SILT_CUSTODY_AUDIT, "");
    ck_assert_ptr_nonnull(strstr(decide(&scene).claim, "11-0"));
    calm(&scene);
    scene.row.verdict = SILT_VERDICT_AUDIT_PENDING;
    put_group(&scene, UUID, 1, 6, id(10));
    ck_assert_ptr_nonnull(strstr(decide(&scene).claim, ":1:6"));
}
END_TEST

START_TEST(custody__gone_or_of_another_type_waits)
{
    struct scene scene;
    calm(&scene);
    scene.look.state = SILT_LOOK_GONE;
    check_row(&scene, SILT_CUSTODY_WAIT, "gone");
    scene.look.state = SILT_LOOK_WRONG_TYPE;
    check_row(&scene, SILT_CUSTODY_WAIT, "type");
    scene.has_row = false;
    check_row(&scene, SILT_CUSTODY_WAIT, "type");
}
END_TEST

START_TEST(custody__absent_marker_on_an_empty_stream_waits)
{
    struct scene scene;
    calm(&scene);
    scene.look.facts.has_first = false;
    check_row(&scene, SILT_CUSTODY_WAIT, "empty");
}
END_TEST

START_TEST(custody__absent_marker_is_doubt)
{
    struct scene scene;
    calm(&scene);
    check_row(&scene, SILT_CUSTODY_DOUBT, "at or below the watermark 10-0");
    ck_assert_int_eq(decide(&scene).cause, SILT_AUDIT_MARKER_ABSENT);
    scene.look.facts.first = id(11);
    check_row(&scene, SILT_CUSTODY_DOUBT, "above the watermark 10-0");
}
END_TEST

/* Each fact alone, with what breaks it. */
static void check_break(void (*change)(struct silt_facts *), const char *fact)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    change(&scene.look.facts);
    ck_assert_str_eq(silt_custody_break(&scene.row.facts, &scene.look.facts), fact);
    check_row(&scene, SILT_CUSTODY_DOUBT, fact);
    bool failover = strcmp(fact, "master_replid") == 0;
    ck_assert_int_eq(decide(&scene).cause, failover ? SILT_AUDIT_OURS_REPL : SILT_AUDIT_OURS_BACK);
    scene.look.facts.replid[0] = 'f'; /* a failover and a fact that went back: the fact counts */
    ck_assert_int_eq(decide(&scene).cause, failover ? SILT_AUDIT_OURS_REPL : SILT_AUDIT_OURS_BACK);
    calm_with_marker(&scene, id(4)); /* a crash between commit and marker excuses none of them */
    change(&scene.look.facts);
    check_row(&scene, SILT_CUSTODY_DOUBT, fact);
}
static void other_replid(struct silt_facts *facts)
{
    facts->replid[0] = 'f';
}
static void added_back(struct silt_facts *facts)
{
    facts->entries_added = 9;
}
static void last_back(struct silt_facts *facts)
{
    facts->last = id(9);
}
static void last_stands(struct silt_facts *facts)
{
    facts->last = id(10);
}
static void too_long(struct silt_facts *facts)
{
    facts->length = 13;
}
static void max_deleted_back(struct silt_facts *facts)
{
    facts->max_deleted = id(1);
}
static void first_back(struct silt_facts *facts)
{
    facts->first = (struct silt_wire_id){0, 9};
}
static void first_bytes(struct silt_facts *facts)
{
    facts->first_digest = 78;
}

START_TEST(custody__every_fact_that_goes_back_is_doubt)
{
    check_break(other_replid, "master_replid");
    check_break(added_back, "entries-added");
    check_break(last_back, "last-generated-id");
    check_break(last_stands, "last-generated-id");
    check_break(too_long, "length");
    check_break(max_deleted_back, "max-deleted-entry-id");
    check_break(first_back, "first-entry");
    check_break(first_bytes, "first entry's bytes");
}
END_TEST

START_TEST(custody__what_may_happen_by_itself_continues)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    struct silt_facts *later = &scene.look.facts;
    later->first = id(8); /* trimmed */
    later->length = 4;
    ck_assert_ptr_null(silt_custody_break(&scene.row.facts, later));
    later->has_first = false; /* emptied */
    later->length = 0;
    ck_assert_ptr_null(silt_custody_break(&scene.row.facts, later));
    later->max_deleted = id(12);
    ck_assert_ptr_null(silt_custody_break(&scene.row.facts, later));
    ck_assert_ptr_null(silt_custody_break(&scene.row.facts, &scene.row.facts));
}
END_TEST

START_TEST(custody__an_emptied_stream_shows_only_ids_above_its_last)
{
    struct scene scene;
    calm_with_marker(&scene, id(10));
    scene.row.facts.has_first = false;
    scene.row.facts.length = 0;
    scene.look.facts.length = 2;
    scene.look.facts.first = id(9);
    ck_assert_str_eq(silt_custody_break(&scene.row.facts, &scene.look.facts), "first-entry");
    scene.look.facts.first = id(11);
    ck_assert_ptr_null(silt_custody_break(&scene.row.facts, &scene.look.facts));
}
END_TEST

TEST_MAIN(custody__continues_with_the_marker_at_custody,
          custody__moves_the_marker_only_from_where_the_commit_found_it,
          custody__first_contact_without_row_or_marker, custody__first_contact_again_after_a_crash,
          custody__a_moved_marker_on_an_unfolded_stream_is_another_copy,
          custody__our_marker_without_a_row_is_another_copy,
          custody__another_archives_marker_is_named, custody__an_unreadable_claim_is_a_claim,
          custody__above_every_watermark_is_a_newer_copy,
          custody__another_number_or_higher_epoch_is_another_copy,
          custody__a_lower_epoch_is_left_to_adopt, custody__a_pending_audit_outweighs_everything,
          custody__a_pending_audit_waits_where_a_newer_copy_is_at_work,
          custody__gone_or_of_another_type_waits, custody__absent_marker_on_an_empty_stream_waits,
          custody__absent_marker_is_doubt, custody__every_fact_that_goes_back_is_doubt,
          custody__what_may_happen_by_itself_continues,
          custody__an_emptied_stream_shows_only_ids_above_its_last)
