/* What a power cut left of an archive is looked at, by a reader and by the next writer. */
#ifndef TEST_IMAGE_H
#define TEST_IMAGE_H

#include "work.h"

/* NULL when all is well with <image>/archive: every stream a prefix of its history that reaches at least to what may be gone from the server, verify
 * without a finding, folding and replacing go on. Else what is wrong; valid until the next call. Writes to the archive. */
const char *image_wrong(const char *image, const uint64_t trimmed[WORK_STREAMS],
                        struct test_rng *rng);
/* "trim <stream> <through>" of the journal, into trimmed; false: another note. */
bool image_take_note(const char *text, uint64_t trimmed[WORK_STREAMS]);

#endif
