/* The list of fault points that a run passed. */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"
#include "scratch.h"

bool test_faults_built_in(void)
{
#ifdef SILT_FAULTPOINTS
    return true;
#else
    return false;
#endif
}

void test_faults_learn(struct test_faults *faults, const char *log, unsigned passages)
{
    char *text = test_file_read(log, NULL);
    char *rest = text;
    memset(faults, 0, sizeof *faults);
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct test_fault point;
        if (!*line) continue;
        if (sscanf(line, "%63s %u", point.name, &point.passage) != 2)
            test_die("%s: not a fault point: %s", log, line);
        if (passages && point.passage > passages) continue;
        struct test_fault *grown = realloc(faults->points, (faults->count + 1) * sizeof *grown);
        if (!grown) test_die("out of memory");
        faults->points = grown;
        faults->points[faults->count++] = point;
    }
    free(text);
    if (faults->count == 0)
        test_die("%s names no fault point: was the program built with -Dfaultpoints=true?", log);
}

void test_faults_release(struct test_faults *faults)
{
    free(faults->points);
    memset(faults, 0, sizeof *faults);
}

const char *test_faults_setting(const struct test_faults *faults, size_t index, const char *action)
{
    static char text[160];
    const struct test_fault *point = &faults->points[index];
    snprintf(text, sizeof text, "SILT_FAULT=%s:%u=%s", point->name, point->passage, action);
    return text;
}
