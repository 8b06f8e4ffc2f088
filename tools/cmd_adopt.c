/* silt adopt: take a stream over. */
#include "takeover.h"

static const struct silt_option options[] = {
    {"dry-run", NULL, "say whose stream it is and what would be done; change nothing"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_adopt = {
    .options = options,
    .about =
        "Makes the archive of the running siltd the one that this stream belongs to. Which archive a stream belongs to is said by its marker, an empty consumer group "
        "silt:<archive uuid>:<epoch>:<number> inside the stream; an archive that finds another's there refuses the stream, and so does an older or another copy of an "
        "archive, and one that was restored or imported, until somebody decides. This is how.\n\n"
        "In one step on the server the new marker is made and every other one destroyed, if they still stand where they were seen: the archiver that had the stream "
        "can then trim nothing more of it, even one that was paused meanwhile, and says who has it. The epoch goes up by one. Nothing is copied from the other archive: what it "
        "alone holds stays there, and is a gap here. Before anything is folded or trimmed, an audit compares what is live with the archive and decides whether the "
        "stream goes on in the same life.\n\n"
        "siltd does it, asked over the control socket of the settings. Exit code 6 or 8: refused, and why.",
    .examples = "silt adopt orders --dry-run\n"
                "silt adopt orders",
};

enum silt_status silt_cmd_adopt(struct silt_call *call)
{
    return silt_takeover(call, "adopt");
}
