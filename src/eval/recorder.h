/* The data of recordings. Internal to recording*.c. */
#pragma once

#include "backend/backend.h"
#include "base/counter.h"
#include "eval/recording.h"

#define NO_PLACE UINT32_MAX

/* How an array lies. Shape and strides stand in the recording's dims. */
struct layout {
    uint32_t place;
    uint32_t dims; /* where its shape begins, then its strides; ndim each */
    uint8_t ndim, flags;
    int64_t offset;
    size_t data_size;
};

/* What of an array from outside decides whether a step may write over it, but for who else has its
 * buffer. */
enum {
    OUTSIDE_PRIVATE = 1,  /* only the run's nodes hold it */
    OUTSIDE_WRITABLE = 2, /* its memory is the device's, and ours */
    OUTSIDE_SMALL = 4,    /* not a big buffer under a small array */
};

struct outside {
    struct layout l;
    uint8_t traits;
};

struct recorded_node {
    uint32_t params, params_size;
    uint32_t first_out;     /* of its outputs, in order */
    struct op_state *state; /* owned */
};

/* What a step asked: may this array be written over? */
struct donation {
    uint32_t id;
    bool answer;
    bool is_told; /* again, to the step that is recorded again */
};

struct span_of {
    uint32_t first, n;
};

struct kept_output {
    uint16_t node, out;
};

struct recording {
    struct recording *next;
    const struct be *be;
    struct be_recording *work;
    uint32_t gates; /* gate_changes() */
    size_t n_node, n_outside, n_step;
    struct recorded_node *node;
    VEC(struct layout) out;
    VEC(int64_t) dims;
    VEC(char) params;
    VEC(struct outside) outside;
    VEC(bool) sole; /* place -> no array but the run's has its buffer; those from outside */
    uint32_t n_place;
    struct buf **buf; /* by place, of the run that is looked at; borrowed */
    int *sharers;     /* arrays of that run that have it */
    VEC(struct donation) donation;
    struct span_of *donations; /* of every step */
    VEC(struct kept_output) kept;
    VEC(uint32_t) written;   /* places from outside that steps write over */
    struct span_of *members; /* of every step, in the list of nodes */
    uint16_t *member;
    VEC(uint16_t) several; /* nodes with more than one output */
    struct counter_notes counts;
};

/* Recording under way. Arrays have numbers: the outputs of the nodes, then those from outside. */
struct recorder {
    struct recording *r;
    struct open_stream *os;
    struct node *const *nodes;
    const struct plan_outside *outside;
    uint32_t *left;   /* by number: edges from steps that are still to come */
    uint32_t *ghosts; /* by place: arrays from outside that would be gone by now */
    size_t step;
    bool again; /* steps are recorded again: they are told what they were told before */
};

/* OUTSIDE_* of an array that so many edges of the run read. */
uint8_t recording_traits(const struct arr *a, uint32_t uses, const struct strm *s);
/* Number of an array that a node of the run reads or makes. */
uint32_t recorder_number(const struct recorder *c, const struct arr *a);
/* Notes how a lies. */
MUST_CHECK enum err recording_set_layout(struct recording *r, struct layout *l,
                                         const struct arr *a);
bool layout_is(const struct recording *r, const struct layout *l, const struct arr *a);
void layout_apply(const struct recording *r, const struct layout *l, struct arr *a);
/* The place of an array's storage, NO_PLACE if it has none. */
MUST_CHECK enum err recording_place_of(struct recording *r, uint32_t *place, const struct arr *a);

/* Records all steps of a run. */
MUST_CHECK enum err recording_make(struct recording **out, struct open_stream *os,
                                   struct node *const *nodes, size_t n);
/* Records the steps again whose nodes are not as they were. *fits: the recording holds now. */
MUST_CHECK enum err recording_refresh(bool *fits, struct recording *r, struct open_stream *os,
                                      struct node *const *nodes);
void recordings_free(struct recording **r);
