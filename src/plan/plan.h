/* The plan: what the backend is asked to do for a run of the tape.
 *
 * A run is a stretch of the tape on one stream. Planning turns it into steps: elementwise nodes are
 * merged into programs, and steps that do not depend on each other are placed side by side so that
 * they can share a barrier. A plan depends on structure only (ops, dtypes, wiring, equality of
 * shapes, who else holds an array), so the second run of the same structure takes it from a cache.
 *
 * Every rewrite has a gate. With all of them off a plan is the tape, one node per step, and gives
 * the same bits. */
#pragma once

#include "graph/array.h"
#include "plan/elem_program.h"

/* Longest run: bounds planning time and lets the device start early on long tapes. A step of a
 * language model with some thirty layers fits, so that no group is cut. */
#define PLAN_MAX_NODES 2048

#define PLAN_NO_NODE UINT16_MAX

/* eval numbers the nodes of a run in the low bits of node->mark. */
#define PLAN_MARK_MASK 0xffffu

/* Input `arg` of node `node` of the run. */
struct plan_input {
    uint16_t node, arg;
};

struct recording;
struct rewrite_match;

struct plan_step {
    uint16_t node;                /* the op; of a program the last one, of a group its anchor */
    uint8_t n_in, n_out, n_nodes; /* of programs and groups; else the node says */
    const struct elem_program *program; /* elementwise program, or NULL */
    const struct rewrite_match *group;  /* nodes of different ops as one step, or NULL */
    uint32_t first_in, first_out;       /* into plan->inputs and plan->outputs, likewise */
};

struct plan {
    refcount rc;
    struct plan *next; /* hash chain */
    struct plan *then; /* what came after it the last time; of the same cache */
    uint64_t hash;
    uint64_t *key;
    size_t n_key;
    bool *held; /* by node of the run: somebody outside the run needs its first output */
    struct plan_step *step;
    size_t n_step;
    struct plan_input *inputs;
    uint16_t *outputs; /* nodes */
    uint16_t *step_of; /* by node of the run: where it is a member */
    /* What runs of the plan encoded, newest first; eval's (eval/recording.h). */
    struct recording *recordings;
    void (*free_recordings)(struct recording **);
    struct arena arena;
};

/* Array i that a program or group reads, and the node whose first output is the i-th it makes. */
static inline struct arr *plan_step_in(const struct plan *p, const struct plan_step *step,
                                       struct node *const *nodes, int i)
{
    const struct plan_input *in = &p->inputs[step->first_in + (uint32_t)i];

    return nodes[in->node]->in[in->arg];
}

static inline struct node *plan_step_out(const struct plan *p, const struct plan_step *step,
                                         struct node *const *nodes, int i)
{
    return nodes[p->outputs[step->first_out + (uint32_t)i]];
}

struct plan_cache;

/* The plan for nodes[0..n), in tape order, all on stream s; borrowed until the next call on s. */
MUST_CHECK enum err plan_get(struct plan **out, struct strm *s, struct node *const *nodes,
                             size_t n);

/* Arrays from outside of a run, in the order in which its nodes come to them; edges of the run that
 * read each. */
struct plan_outside {
    struct arr *a; /* borrowed from the graph */
    uint32_t uses;
};
/* Those of the run that plan_get saw last on s; all of them, or NULL if they are too many or the
 * run is traced. */
const struct plan_outside *plan_outside(const struct strm *s, size_t *n);
/* Which of them a is; it is one. */
uint32_t plan_outside_number(const struct strm *s, const struct arr *a);

struct plan *plan_ref(struct plan *p);
void plan_unref(struct plan **p);

/* Drops all plans of a stream. */
void plan_cache_clear(struct strm *s);
