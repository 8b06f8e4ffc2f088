/* silt release: let a stream go. */
#include "takeover.h"

static const struct silt_option options[] = {
    {"dry-run", NULL, "say what would be done; change nothing"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_release = {
    .options = options,
    .about =
        "The running siltd lets the stream go: its marker is destroyed, and it leaves the stream alone, also after a restart, until silt adopt takes it up again. What is archived "
        "stays, and is read as before; what arrives from now on is not archived, and nothing is trimmed. Another archive "
        "whose siltd has the stream in its settings may then take it up of itself, without an adopt: it finds no marker, compares, and goes on.\n\n"
        "A stream that is another archive's is refused (exit code 6): that archive releases it. siltd does it, asked over the control socket of the settings.",
    .examples = "silt release orders",
};

enum silt_status silt_cmd_release(struct silt_call *call)
{
    return silt_takeover(call, "release");
}
