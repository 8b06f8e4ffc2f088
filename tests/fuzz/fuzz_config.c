/* The settings file. What is accepted is used as the programs use it. */
#include "fuzz.h"

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_config *config;
    struct silt_err err = {0};
    enum silt_status status = silt_config_parse("fuzz", silt_view(data, size), &config, &err);
    if (status != SILT_OK) {
        if (err.code != status || err.sentence[0] == 0) abort();
        return 0;
    }
    (void)silt_config_check_archiver(config, &err);
    silt_config_free(config);
    return 0;
}
