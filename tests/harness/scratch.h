/* A directory of its own for each test, gone when the test's process ends (KEEP=1 keeps it and says where). */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stddef.h>

/* The directory of the running test, made at the first call. Borrowed, valid until the process ends. */
const char *test_scratch(void);
/* "<scratch>/<name>", from printf-like arguments. Owns: the harness; valid until the process ends. */
const char *test_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whole file as text with a terminator (not counted in *ret_len, which may be NULL). Freed with free(). */
char *test_file_read(const char *path, size_t *ret_len);
void test_file_write(const char *path, const void *at, size_t len);
void test_file_copy(const char *from, const char *to);
/* A directory with the files in it (no deeper): enough for an archive. */
void test_dir_copy(const char *from, const char *to);
void test_remove_all(const char *path);

/* For good: this test goes on as the user nobody, who owns the scratch directory. A test that needs an unprivileged user calls it and
 * so means the same for root and for others. What it then may not write is as good as missing. */
void test_become_nobody(void);

/* For the runner: the parent of all tests' directories. */
void test_scratch_root_start(void);

#endif
