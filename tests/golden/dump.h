/* A decoded segment as text, for comparison with what is kept and with what the second decoder says. One line of header, then one per entry:
 *     <id> <f or -> <name>=<value> ...
 * Bytes outside 0x21 to 0x7e, the backslash and the equals sign are \xHH. */
#ifndef TEST_GOLDEN_DUMP_H
#define TEST_GOLDEN_DUMP_H

#include "format/segment.h"

/* Appends. Dies when there is no memory. */
void golden_dump(struct silt_segment *segment, struct silt_buf *ret);

#endif
