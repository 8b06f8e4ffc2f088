/* The parser of a connection: bytes in, flat replies out. Bounded: what is announced is never allocated ahead. */
#ifndef SILT_CONN_PARSE_H
#define SILT_CONN_PARSE_H

#include "reply.h"

struct silt_parser;
/* limit: bytes of a reply, with its nodes. */
SILT_MUST_USE enum silt_status silt_parser_new(size_t limit, struct silt_parser **ret);
void silt_parser_free(struct silt_parser *parser);

/* The next reply goes into *reply, which is emptied; only between two replies. */
void silt_parser_begin(struct silt_parser *parser, struct silt_reply *reply);
/* Fails with SILT_ERR_MEMORY, SILT_ERR_SERVER_NONSENSE; then only silt_parser_why and silt_parser_free are left to call. */
SILT_MUST_USE enum silt_status silt_parser_feed(struct silt_parser *parser, const void *at,
                                                size_t len);
/* SILT_OK: the reply is whole. SILT_END: more bytes are needed. Fails as feed. */
SILT_MUST_USE enum silt_status silt_parser_next(struct silt_parser *parser);
/* What was wrong; borrowed from the parser. */
const char *silt_parser_why(const struct silt_parser *parser);
size_t silt_parser_waiting(const struct silt_parser *parser); /* bytes fed and not yet parsed */
bool silt_parser_is_midway(const struct silt_parser *parser); /* part of a reply has come */

#endif
