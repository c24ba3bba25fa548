/* The graph: arrays, the op nodes that make them, and the buffers that hold their bytes.
 *
 * One node is one application of an op: its inputs, its params and, embedded, its output arrays. A
 * user-visible array is a `struct arr`; it keeps its node alive, the node keeps its inputs alive. A
 * leaf is a node without op. After evaluation a node is detached: it forgets op and inputs, and its
 * arrays are leaves. Outputs of one node never reference each other, so there are no cycles. */
#pragma once

#include "base/common.h"
#include "base/err.h"
#include "base/mem.h"
#include "graph/dtype.h"
#include "graph/op_state.h"
#include "graph/shape.h"

struct be;
struct ev;
struct strm;

/* ---- buffers ---- */

/* Some bytes of a buffer: the first, and how many. */
struct span {
    size_t lo, size;
};

/* The bytes behind arrays, shared by all views of them. A buffer has a home: the backend that
 * allocated it and the only one that writes it. Another backend reads it through mirrors, copies of
 * some or all of it that are made on demand; memory that both can address (unified) needs none.
 * Written only while fresh or donated, so a mirror never goes stale while it exists (donation drops
 * it). */
struct buf {
    _Atomic uint64_t refs; /* see buffer.c; made with 1 */
    const struct be *home;
    size_t size;   /* usable bytes; what the memory API counts */
    void *host;    /* host address, NULL if the host cannot read it quickly */
    uint64_t addr; /* device address, 0 if the GPU cannot read it */
    void *priv;    /* the home backend's bookkeeping */
    /* Newest copy on the other side, owned; its own mirror is the one before. */
    _Atomic(struct buf *) mirror;
    struct span of;       /* a mirror: the bytes of its source that it holds */
    void (*dtor)(void *); /* adopted memory: called with dtor_arg when the bytes are released */
    void *dtor_arg;
};

/* While the steps of a run are recorded (backend.h), what they allocate is no memory but a place, a
 * number that the address holds. */
#define BUF_PLACE ((uint64_t)1 << 63)
#define BUF_PLACE_SHIFT 40
static inline bool buf_is_place(const struct buf *b)
{
    return b->addr & BUF_PLACE;
}
static inline uint32_t buf_place(const struct buf *b)
{
    return (uint32_t)((b->addr & ~BUF_PLACE) >> BUF_PLACE_SHIFT);
}

struct buf *buf_ref(struct buf *b);
int buf_refs(const struct buf *b);
void buf_unref(struct buf **b);
/* A reference for work in flight on a stream, and its end. Such references do not stand in the way
 * of a donation on that stream, because its work runs in order. Thread-safety: buf_hold belongs to
 * the stream's owner, buf_release is safe. */
struct buf *buf_hold(struct buf *b, int stream_index);
void buf_release(struct buf **b, int stream_index);
/* True if one owner and work of that stream hold all references. */
bool buf_is_only_held_by(const struct buf *b, int stream_index);
/* References that are not work in flight on that stream. */
int buf_owners(const struct buf *b, int stream_index);

/* Makes m, whose reference is taken over, the newest mirror of b. Thread-safety: safe. */
void buf_add_mirror(struct buf *b, struct buf *m);
/* Whether mirrors made before the host asks for them are likely to be of use: no longer after some
 * calls without a buf_host or buf_host_span of a buffer that needs one. Thread-safety: safe. */
bool buf_expects_reads(void);
/* A copy that holds at least these bytes of b, for the side that lacks them, made by
 * maker->buf_mirror on first use. Borrowed, lives as long as b. Thread-safety: safe. */
MUST_CHECK enum err buf_mirror(struct buf **out, struct buf *b, struct span want,
                               const struct be *maker);
/* Forgets the mirrors because the bytes are about to change. */
void buf_drop_mirror(struct buf *b);

/* A host pointer to the first of these bytes, for reading: in the buffer itself or in a mirror that
 * is made now (the work that writes the buffer must be complete). Borrowed, lives as long as b. */
MUST_CHECK enum err buf_host_span(const void **out, struct buf *b, struct span want);
/* The same for all of them. */
MUST_CHECK enum err buf_host(const void **out, struct buf *b);

/* ---- arrays ---- */

enum arr_status { ARR_UNSCHEDULED, ARR_EVALUATED, ARR_AVAILABLE };

struct arr {
    refcount rc;
    uint8_t dtype; /* enum dtype */
    uint8_t ndim;
    uint8_t flags;          /* enum layout_flags, valid once evaluated */
    _Atomic uint8_t status; /* enum arr_status */
    bool tracer;            /* depends on what a transformed function was given (graph/tracing.h) */
    int64_t offset;         /* bytes from the buffer start to element [0, ..., 0] */
    size_t size;            /* elements, product of the shape */
    size_t data_size;       /* elements of the buffer that the array spans */
    struct buf *buf;        /* NULL until evaluated, and for empty arrays */
    struct ev *ev;          /* attached by async eval until the work is complete */
    struct node *node;
    int32_t *shape;   /* ndim entries, in the node's allocation */
    int64_t *strides; /* likewise; in elements, may be 0 or negative */
};

struct node {
    refcount rc; /* outputs with references, plus eval's own */
    uint16_t op; /* enum op_id; OP_NONE: leaf or detached */
    int32_t n_in, n_out;
    uint32_t params_size;
    uint32_t bytes;         /* of the node with all that is embedded */
    struct strm *strm;      /* borrowed: streams live for the process */
    void *params;           /* padding-free struct of the op, in the node's allocation */
    struct op_state *state; /* owned, NULL for most ops */
    struct arr **in;        /* owned references */
    struct arr *out;        /* n_out embedded arrays */
    struct node *link;      /* work list of the iterative free */
    uint64_t mark;          /* eval's scratch: epoch and index of the walk in progress */
};

/* Whether two nodes of one op have equal parameters and states. */
static inline bool node_same_params(const struct node *a, const struct node *b)
{
    return a->params_size == b->params_size && memcmp(a->params, b->params, a->params_size) == 0 &&
           op_state_equal(a->state, b->state);
}
/* Equal where node_same_params is true. */
uint64_t node_params_hash(const struct node *n);
/* The parameters as text, then the state. Returns buf. */
const char *node_params_print(const struct node *n, char *buf, size_t size);

/* Written only where it changes: threads that build on a shared graph read it meanwhile. */
static inline void arr_set_tracer(struct arr *a, bool tracer)
{
    if (a->tracer != tracer)
        a->tracer = tracer;
}

struct out_desc {
    struct shp shape;
    enum dtype dtype;
};

/* Makes a node with n_out outputs; outs[i] receives one reference each. Takes a reference on every
 * input in `in`; of those in `given` the node takes over the caller's, and NULL is left there
 * unless it fails. params are copied, of a list as much as it uses. A float64 array on a GPU stream
 * is ERR_ARG. */
struct node_params {
    uint16_t op;
    struct strm *strm;
    struct arr *const *in;
    struct arr **given; /* instead of in */
    size_t n_in;
    const void *params;     /* the op's struct, or NULL */
    struct op_state *state; /* the node takes its own reference; may be NULL */
    const struct out_desc *out;
    size_t n_out;
};
MUST_CHECK enum err node_new(struct arr **outs, const struct node_params *p);

/* The same node again, which was not evaluated yet, on other inputs; outs[i] receive one reference
 * each. */
MUST_CHECK enum err node_copy(struct arr **outs, const struct node *n, struct arr *const *in);

/* The common case: one output. */
#define arr_new_op(out_, ...) node_new(out_, &(struct node_params){ .n_out = 1, __VA_ARGS__ })

/* A leaf without storage (placeholder, scratch). */
MUST_CHECK enum err arr_new_empty(struct arr **out, const struct shp *s, enum dtype t);
/* A leaf with host memory copied from data (row-major); data NULL leaves the bytes unset. */
MUST_CHECK enum err arr_new_data(struct arr **out, const void *data, const struct shp *s,
                                 enum dtype t);
/* A 0-d leaf. value points to one element of type t. */
MUST_CHECK enum err arr_new_scalar(struct arr **out, const void *value, enum dtype t);
/* A 0-d leaf of type t with the value converted from double; what an integer type cannot hold
 * becomes what MLX makes of it on x86. */
MUST_CHECK enum err arr_new_number(struct arr **out, double value, enum dtype t);

static inline struct arr *arr_ref(struct arr *a)
{
    ref_inc(&a->rc);
    return a;
}

/* Drops a reference and nulls the pointer. Iterative: a graph of a million nodes does not recurse.
 */
void arr_lose(struct arr *a);
static inline void arr_unref(struct arr **pa)
{
    struct arr *a = *pa;

    *pa = NULL;
    if (a)
        arr_lose(a);
}

static inline size_t arr_nbytes(const struct arr *a)
{
    return a->size * dt_size((enum dtype)a->dtype);
}

static inline void arr_shape(struct shp *out, const struct arr *a)
{
    out->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++)
        out->d[i] = a->shape[i];
}

static inline bool arr_same_shape(const struct arr *a, const struct arr *b)
{
    return a->ndim == b->ndim && shp_same_dims(a->shape, b->shape, a->ndim);
}

static inline bool arr_is_scheduled(const struct arr *a)
{
    return atomic_load_explicit(&a->status, memory_order_acquire) != ARR_UNSCHEDULED;
}

/* The bytes of its buffer between the first and the last that an evaluated array reaches. */
struct span arr_strided_span(const struct arr *a);
static inline struct span arr_span(const struct arr *a)
{
    if (!(a->flags & LAYOUT_CONTIGUOUS) || !a->size)
        return arr_strided_span(a);
    return (struct span){ (size_t)a->offset, a->data_size * dt_size((enum dtype)a->dtype) };
}

/* ---- storage, for backends; called while the node is being evaluated ---- */

/* Gives a its own storage on the stream's device: offset 0, row-major, data_size = size. */
MUST_CHECK enum err arr_alloc(struct arr *a, const struct be *home);
/* Storage with explicit layout (an output that inherits its input's strides). */
MUST_CHECK enum err arr_alloc_like(struct arr *a, const struct arr *layout, const struct be *home);
/* Leaves a without storage; work in flight keeps the bytes as long as it needs them. */
void arr_give_back(struct arr *a);
/* Takes over row-major bytes of somebody else; dtor(arg) runs when they are no longer needed. */
MUST_CHECK enum err arr_adopt(struct arr *a, void *data, void (*dtor)(void *), void *arg);
/* How an array lies in the buffer of another. */
struct arr_layout {
    const int64_t *strides;
    unsigned flags; /* enum layout_flags */
    size_t data_size;
    int64_t offset; /* elements, relative to the other array */
};
/* Shares src's buffer; the rest are the fields of an arr_layout. */
#define arr_share(a, src, ...) arr_share_as(a, src, &(struct arr_layout){ __VA_ARGS__ })
void arr_share_as(struct arr *a, const struct arr *src, const struct arr_layout *l);
/* Shares buffer and layout of an array with the same shape. */
void arr_share_all(struct arr *a, const struct arr *src);

/* A donated or shared buffer may exceed what the array needs by this much; beyond it a small array
 * would pin a big buffer (docs/runtime.md, Donation). */
#define ARR_DONATION_SLACK 16384

/* True if only the consumer's input list holds a, and nothing else its bytes but work in flight on
 * s, the stream that will write them. */
bool arr_is_donatable(const struct arr *a, const struct strm *s);
/* arr_is_donatable, same item size as out, and not a big buffer under a small array. */
bool arr_can_donate_to(const struct arr *a, const struct arr *out, const struct strm *s);

/* Keeps a node and its outputs alive while it is evaluated, outputs without references included. */
void node_pin(struct node *n);
void node_unpin(struct node *n);

/* Takes back the storage of outputs that were not evaluated after all: they are as node_new made
 * them. */
void node_reset(struct node *n);
/* Forgets op, state and inputs: the outputs become leaves. */
void node_detach(struct node *n);
