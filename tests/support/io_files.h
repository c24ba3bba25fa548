/* The files that tests/gen/io_files.py writes: right ones with their arrays, wrong ones with their
 * errors. */
#pragma once

#include "support/io_content.h"

/* Opens one of the files. */
MUST_CHECK enum err io_files_open(struct source **out, const char *file);
/* Opens one of the files, loads it and evaluates its arrays. */
MUST_CHECK enum err io_files_load(struct io_content *out, const char *file, struct strm *s);

/* Fails the running test unless the right files give the arrays that NumPy put into them; without
 * those that hold float64 on a GPU stream. each: called for every array, may be NULL. */
void io_files_check_right(struct strm *s, void (*each)(const struct arr *a));

struct io_bad_file {
    const char *file, *error;
};
struct io_good_text {
    const char *file, *key, *value;
};
extern const struct io_bad_file *const io_bad_files;
extern const size_t io_bad_file_count;
extern const struct io_good_text *const io_good_texts; /* all of one file */
extern const size_t io_good_text_count;
