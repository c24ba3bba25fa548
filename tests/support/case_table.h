/* Reads the table of op cases that gen/gen_cases.py writes (the format is described in
 * gen/case_table.py) and compares results with it. */
#pragma once

#include "graph/array.h"

#define CASE_INPUTS 6
#define CASE_PARAMS 6
#define CASE_OUTPUTS 8
#define CASE_INTS 32

struct case_array {
    enum dtype dtype;
    struct shp shape;
    const unsigned char *bytes; /* row-major, in the table */
};

enum case_view_kind { CASE_TRANSPOSE, CASE_SLICE, CASE_BROADCAST, CASE_RESHAPE };

struct case_view {
    enum case_view_kind kind;
    int n;
    int v[CASE_INTS]; /* SLICE: start, stop, step for every axis */
};

struct case_input { /* a dense array seen through up to two views */
    bool present;
    struct case_array base;
    int n_views;
    struct case_view view[2];
};

struct case_param {
    int n;
    int v[CASE_INTS];
    int64_t wide[CASE_INTS];
    double d;
    char text[32];
};

/* How a result is compared: within the dtype's tolerance; equal; equal with the sign of zeros; off
 * by as much as Vulkan allows a division. */
enum case_tolerance { CASE_CLOSE, CASE_EXACT, CASE_BITS, CASE_DIVISION };

struct case_row {
    char family[32], fn[48], note[512];
    int n_in, n_params, n_out;
    struct case_input in[CASE_INPUTS];
    struct case_param param[CASE_PARAMS];
    struct case_array out[CASE_OUTPUTS];
    enum case_tolerance tolerance;
    double scale; /* magnitude of what was summed up */
    bool cpu_only;
};

struct case_reader {
    unsigned char *table; /* unpacked */
    const unsigned char *at, *end;
    const unsigned char *data; /* of arrays */
    size_t data_size;
    uint32_t left;
};

/* False if the bytes of the file are no table. */
bool case_open(struct case_reader *r, const unsigned char *file, size_t size);
void case_close(struct case_reader *r);
/* The next row; false at the end, or where the table is broken. */
bool case_next(struct case_reader *r, struct case_row *row);

/* An evaluated array on the host. */
struct case_result {
    enum dtype dtype;
    struct shp shape;
    const int64_t *strides; /* in elements */
    const void *first;      /* element [0, ..., 0] */
};

struct case_rule {
    enum case_tolerance tolerance;
    double scale;
    bool on_gpu;  /* subnormals may become zero; a division need not be rounded correctly */
    double slack; /* multiplies the tolerance: 1, or 2 between two computed results */
};

/* "" if got holds what want does, else what is wrong with it. Borrowed until the next call. */
const char *case_compare(const struct case_result *got, const struct case_result *want,
                         const struct case_rule *rule);
