/* The choice among kernel variants, and its bookkeeping: which are switched off, how often each was
 * taken or refused and why. Thread-safety: all functions are safe. */
#pragma once

#include <stdio.h>

#include "base/common.h"
#include "base/counter.h"
#include "base/err.h"

enum variant_id {
#define VARIANT_OWN(family, id) VARIANT_##id,
#define VARIANT_SHARED(family, id) VARIANT_##id,
#define VARIANT_LAST(family, id) VARIANT_##id,
#include "backend/vulkan/ops/variants.def"
#undef VARIANT_OWN
#undef VARIANT_SHARED
#undef VARIANT_LAST
    VARIANT_COUNT
};

enum variant_reason {
    VARIANT_FITS,
    VARIANT_OFF,    /* by a setting */
    VARIANT_DEVICE, /* which lacks something */
    VARIANT_DTYPE,
    VARIANT_LAYOUT, /* strides or alignment */
    VARIANT_SIZE,
    VARIANT_FAILED, /* once before: variant_gives_way */
    VARIANT_REASONS
};

#define VARIANT_SIZES 4

/* What is to be done. */
struct variant_problem {
    /* For log lines: writes dtypes and sizes. Called only where the family's rejects are logged. */
    void (*describe)(char *text, size_t size, const void *data);
    const void *data;
    /* The sizes that matter, from the first to one that is 0, and what they are called, such as
     * "m x n x k": hits are counted by their powers of two. Static; may be NULL. */
    const char *sizes;
    int64_t size[VARIANT_SIZES];
};

/* As in the settings, and of its family. Static. */
const char *variant_name(enum variant_id id);
const char *variant_family(enum variant_id id);

struct vk_pipe;
struct vk_kernel; /* encoder.h */

/* What a family chooses from. Static. */
struct variant_table {
    enum variant_id first, last; /* neighbours in variants.def */
    /* Whether a kernel fits the job; may write there how it would run it. */
    enum variant_reason (*judge)(void *job, enum variant_id id);
    /* Gets the pipeline for what was judged last; NULL: the family does so itself, later. */
    enum err (*build)(const struct vk_pipe **pipe, void *job, enum variant_id id);
    /* As in variant_problem, of a job. */
    void (*describe)(char *text, size_t size, const void *job);
    const char *sizes;
};

/* *k: the first of the table that variant_takes and that can be built, with its pipeline if the
 * table builds. The last one is not refused. */
MUST_CHECK enum err variant_pick(struct vk_kernel *k, const struct variant_table *t, void *job,
                                 const int64_t size[VARIANT_SIZES]);

/* A single one: true if it is to be used, because the family says that it fits, no setting of its
 * own switches it off and it has not failed. Counts a hit or a reject. */
bool variant_takes(enum variant_id id, enum variant_reason why, const struct variant_problem *p);
/* After building or dispatching the variant's kernel failed with err: true if the next row is to be
 * tried. The variant is then off for the rest of the process, which is logged once. False for the
 * last rows, for failures that are not the variant's (memory, a lost device) and for
 * VARIANT_COUNT. */
bool variant_gives_way(enum variant_id id, enum err err);

uint64_t variant_hits(enum variant_id id);
uint64_t variant_rejects(enum variant_id id, enum variant_reason why);
/* Hits of problems whose sizes lie between the same powers of two as these, which end with a 0
 * where they are fewer. */
uint64_t variant_hits_of(enum variant_id id, const int64_t size[VARIANT_SIZES]);
/* Zeroes the counters and forgets failures and what was logged. For tests. */
void variant_reset(void);
/* Counters that are not zero, a line each. Only families whose name contains family, where it is
 * not NULL. */
void variant_print(FILE *out, const char *family);
