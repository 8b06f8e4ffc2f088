/* What look.c and page.c share. */
#ifndef SILT_LOOK_PRIV_H
#define SILT_LOOK_PRIV_H

#include "look.h"

/* One MULTI with the facts that this connection's user may ask for; with a range before them if `range` is not NULL. */
SILT_MUST_USE enum silt_status silt_look_send(struct silt_conn *conn, struct silt_view key,
                                              enum silt_look_what what,
                                              const struct silt_page_request *range,
                                              struct silt_err *err);
/* Receives it and reads the facts. *ret_range is the node of the range's reply in look->reply, 0 without one. */
SILT_MUST_USE enum silt_status silt_look_take(struct silt_conn *conn,
                                              const struct silt_page_request *range,
                                              struct silt_look *look, size_t *ret_range,
                                              struct silt_err *err);
/* Reads [id, [name, value, ...]]; the fields go to fields[*used...], which has room for half of the node's subtree. false: another shape. */
bool silt_look_read_entry(const struct silt_reply *reply, size_t node, struct silt_field *fields,
                          size_t *used, struct silt_entry *ret);

#endif
