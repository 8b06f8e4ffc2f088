/* SHA-1 as the server's scripts have it (redis.sha1hex): names the script, and names an entry's bytes where the script compares them. entry_sha1.c is the only sha1.h user
 * of the library libmd. Not a seal against malice: whoever may write the stream may remove from it anyway. */
#ifndef SILT_ENTRY_SHA1_H
#define SILT_ENTRY_SHA1_H

#include "entry.h"

#define SILT_SHA1_TEXT 41 /* 40 hex digits and a terminator */

void silt_sha1_hex(struct silt_view bytes, char ret[SILT_SHA1_TEXT]);
/* Of the form that trim.lua builds: the id, then for each name and value in order a comma, its length, a colon, its bytes. */
void silt_sha1_entry(const struct silt_entry *entry, char ret[SILT_SHA1_TEXT]);

#endif
