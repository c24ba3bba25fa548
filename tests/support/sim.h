/* A simulated device for tests of graph, plan and eval.
 *
 * It computes no elements: a buffer holds one digest, and an op's result is a digest of the op and
 * of what it read. A test works out the digest it expects while it builds a graph, so that wrong
 * order, wrong wiring, a lost buffer or a missing wait show up as a wrong number.
 *
 * Work is queued and runs as late as it may: when the host waits, and on other streams only as far
 * as a wait asks for. Freed buffers are kept aside, so that work which still uses one is noticed.
 * What a real device would do wrong or hang on is counted as a violation.
 *
 * Thread-safety: one thread. */
#pragma once

#include "backend/backend.h"

extern const struct be be_sim;

/* Forgets everything; sim_end checks and releases: nothing leaks, nothing was violated. */
void sim_begin(void);
void sim_end(void);
/* The same around a cmocka test; no allocation fails afterwards. */
int sim_setup(void **state);
int sim_teardown(void **state);

/* Violations so far; the first one is described in sim_violation_text. */
int sim_violations(void);
const char *sim_violation_text(void);

/* The n-th step from now on fails when it is encoded (1 = the next), the n-th task when it runs.
 * 0 switches the failure off. */
void sim_fail_step(int n);
void sim_fail_task(int n);
/* The n-th hold from now on fails. */
void sim_fail_hold(int n);

/* What the device says to groups from now on; it takes them all at first. */
void sim_answer_groups(enum group_reason why);

struct strm *sim_strm_new(void);
void sim_strm_free(struct strm **s);
/* Tasks queued on s that have not run. */
size_t sim_pending(const struct strm *s);

/* ---- the log: what core asked for, in order ---- */

enum sim_call { SIM_STEP, SIM_HOLD, SIM_STEP_END, SIM_FLUSH, SIM_SYNC, SIM_RECORD, SIM_WAIT };

struct sim_entry {
    enum sim_call call;
    const struct strm *strm;
    const struct node *node;     /* STEP */
    int n_ins;                   /* STEP of a program: its instructions, else 0 */
    int n_in, n_out;             /* STEP; HOLD: buffers in n_in */
    const struct strm *producer; /* WAIT */
};
size_t sim_log(const struct sim_entry **entries);
void sim_log_clear(void);
/* Number of entries of a kind. */
size_t sim_count(enum sim_call call);

/* ---- arrays with a known digest ---- */

struct sim_arr {
    struct arr *a;   /* one reference, or NULL once dropped */
    uint64_t digest; /* expected of its buffer */
    int64_t offset;  /* expected of the array, in bytes */
};

/* An evaluated array. */
struct sim_arr sim_leaf(const struct shp *s, enum dtype t, uint64_t seed);
/* One node of an op over in[0..n); outs receives n_out arrays of this shape and type. Views share
 * the first input's buffer. */
struct sim_node {
    enum op_id op;
    struct strm *strm;
    struct shp shape;
    enum dtype dtype;
    size_t n_out; /* 0 means 1 */
};
void sim_node(struct sim_arr *outs, const struct sim_node *n, const struct sim_arr *in,
              size_t n_in);
/* The common case: one output. */
struct sim_arr sim_op(const struct sim_node *n, const struct sim_arr *in, size_t n_in);
/* The same with params of the op's size. */
struct sim_arr sim_op_params(const struct sim_node *n, const void *params, const struct sim_arr *in,
                             size_t n_in);

/* Whether an evaluated, complete array holds what it should. */
bool sim_is_right(const struct sim_arr *s);
void sim_drop(struct sim_arr *s);
