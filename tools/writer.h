/* Appending to a stream as contract.md §1.4 to §1.6 asks: key grammar and fields are checked before any wire, ids are explicit on a branded stream,
 * and an append whose outcome is unknown is settled by reading the exact id back. Never `*` in place of an id, never a second id for one entry. */
#ifndef SILT_WRITER_H
#define SILT_WRITER_H

#include "conn.h"
#include "entry.h"
#include "mint.h"

struct silt_writer {
    struct silt_conn *conn; /* borrowed */
    struct silt_view key;   /* borrowed */
    struct silt_namespace ns;
    struct silt_mint mint;
    struct silt_buf argv; /* silt_view structs */
    struct silt_reply reply;
    char id_text[SILT_WIRE_ID_TEXT];
};

/* Fails with SILT_ERR_KEY (a branded stream's key outside the grammar), SILT_ERR_USAGE (node). Sends nothing. */
SILT_MUST_USE enum silt_status silt_writer_init(struct silt_writer *writer, struct silt_conn *conn,
                                                struct silt_view key, struct silt_namespace ns,
                                                uint32_t node, struct silt_err *err);
void silt_writer_release(struct silt_writer *writer);
/* Makes every later mint greater than the stream's last id. */
SILT_MUST_USE enum silt_status silt_writer_seed(struct silt_writer *writer, struct silt_err *err);

/* Sends an XADD without waiting; silt_writer_receive takes its answer. id NULL: `*`, for plain streams alone. The entry's fields are sent as they are. */
SILT_MUST_USE enum silt_status silt_writer_send(struct silt_writer *writer,
                                                const struct silt_entry *entry, bool server_id,
                                                struct silt_err *err);
/* The answer to one send, in order. Fails with SILT_ERR_NONMONOTONIC and the server's codes; of these AWAY, TIMEOUT, NONSENSE and CANCELLED leave the outcome open. */
SILT_MUST_USE enum silt_status silt_writer_receive(struct silt_writer *writer,
                                                   struct silt_wire_id *ret_id,
                                                   struct silt_err *err);
bool silt_writer_is_open_outcome(enum silt_status status);

/* Is this very entry there? SILT_OK: yes, byte for byte. SILT_END: nothing under its id. SILT_ERR_CONFLICT: other bytes. */
SILT_MUST_USE enum silt_status silt_writer_look_back(struct silt_writer *writer,
                                                     const struct silt_entry *entry,
                                                     struct silt_err *err);
/* One entry with an id of its own, settled. Fails with SILT_ERR_NONMONOTONIC (nothing written), SILT_ERR_CONFLICT, the server's codes. */
SILT_MUST_USE enum silt_status silt_writer_put(struct silt_writer *writer,
                                               const struct silt_entry *entry,
                                               struct silt_err *err);
/* The same after a send whose outcome is open. */
SILT_MUST_USE enum silt_status silt_writer_settle(struct silt_writer *writer,
                                                  const struct silt_entry *entry,
                                                  struct silt_err *err);

#endif
