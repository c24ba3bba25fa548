#include "graph/array.h"

#include "backend/backend.h"
#include "base/hash.h"
#include "graph/memory.h"
#include "graph/tracing.h"

/* ---- making nodes ---- */

struct block { /* offsets of the parts of a node's single allocation */
    size_t out, in, params, strides, shape, size;
};

static inline struct block node_layout(const struct node_params *p, size_t params_size)
{
    struct block b;
    size_t dims = 0;

    for (size_t i = 0; i < p->n_out; i++)
        dims += (size_t)p->out[i].shape.ndim;
    b.out = align_up(sizeof(struct node), 16);
    b.in = b.out + p->n_out * sizeof(struct arr);
    b.params = align_up(b.in + p->n_in * sizeof(struct arr *), 16);
    b.strides = align_up(b.params + params_size, 16);
    b.shape = b.strides + dims * sizeof(int64_t);
    b.size = b.shape + dims * sizeof(int32_t);
    return b;
}

static enum err no_float64(const struct node_params *p)
{
    return err_set(ERR_ARG, "[%s] float64 is not supported on the GPU.",
                   op_name((enum op_id)p->op));
}

static enum err too_large(const struct shp *s)
{
    return err_set(ERR_OVERFLOW, "[array] The size of shape %s does not fit 64 bits.", shp_text(s));
}

static inline enum err check_outputs(const struct node_params *p)
{
    bool gpu = p->strm && p->strm->dev.type == DEV_GPU;
    struct arr *const *in = p->given ? p->given : p->in;
    bool has_f64 = false;

    for (size_t i = 0; i < p->n_out; i++) {
        int64_t volume, bytes;
        has_f64 |= p->out[i].dtype == DT_FLOAT64;
        if (!shp_volume_checked(&p->out[i].shape, &volume) ||
            MUL_OVERFLOWS(volume, (int64_t)dt_size(p->out[i].dtype), &bytes))
            return too_large(&p->out[i].shape);
    }
    for (size_t i = 0; i < p->n_in; i++)
        has_f64 |= in[i]->dtype == DT_FLOAT64;
    return gpu && has_f64 ? no_float64(p) : ERR_OK;
}

/* The layout of an array that has none yet. */
static void init_layout(struct arr *a)
{
    int64_t size = 1;

    for (int i = a->ndim - 1; i >= 0; i--) {
        a->strides[i] = size;
        size *= a->shape[i];
    }
    a->flags = LAYOUT_ALL;
    a->offset = 0;
    a->size = a->data_size = (size_t)size;
}

static void init_output(struct node *n, size_t i, const struct out_desc *d, bool tracer)
{
    struct arr *a = &n->out[i];

    atomic_init(&a->rc, 1);
    a->dtype = (uint8_t)d->dtype;
    a->ndim = (uint8_t)d->shape.ndim;
    a->tracer = tracer;
    a->node = n;
    for (int k = 0; k < a->ndim; k++)
        a->shape[k] = d->shape.d[k];
    init_layout(a);
}

enum err node_new(struct arr **outs, const struct node_params *p)
{
    enum err err = check_outputs(p);
    if (err)
        return err;

    size_t params_size = p->params ? op_params_size(op_table[p->op].params, p->params) : 0;
    struct block b = node_layout(p, params_size);
    char *base = mem_pool_alloc(b.size);
    if (!base)
        return ERR_NO_MEMORY;

    struct node *n = (struct node *)base;
    int64_t *strides = (int64_t *)(base + b.strides);
    int32_t *shape = (int32_t *)(base + b.shape);
    bool tracer = false;

    atomic_init(&n->rc, (int)p->n_out);
    n->op = p->op;
    n->n_in = (int32_t)p->n_in;
    n->n_out = (int32_t)p->n_out;
    n->strm = p->strm;
    n->state = op_state_ref(p->state);
    n->params_size = (uint32_t)params_size;
    n->bytes = (uint32_t)MIN(b.size, UINT32_MAX);
    n->params = base + b.params;
    n->in = (struct arr **)(base + b.in);
    n->out = (struct arr *)(base + b.out);
    if (params_size)
        memcpy(n->params, p->params, params_size);
    for (size_t i = 0; i < p->n_in; i++) {
        struct arr *a;
        if (p->given) {
            a = p->given[i];
            p->given[i] = NULL;
        } else {
            a = arr_ref(p->in[i]);
        }
        n->in[i] = a;
        tracer |= a->tracer;
    }
    tracer = tracer && tracing_is_on();
    for (size_t i = 0; i < p->n_out; i++) {
        n->out[i].shape = shape;
        n->out[i].strides = strides;
        shape += p->out[i].shape.ndim;
        strides += p->out[i].shape.ndim;
        init_output(n, i, &p->out[i], tracer);
        outs[i] = &n->out[i];
    }
    return ERR_OK;
}

/* Where the copy has what `at` points to in the block of n. */
static void *moved(char *copy, const struct node *n, const void *at)
{
    return copy + ((const char *)at - (const char *)n);
}

enum err node_copy(struct arr **outs, const struct node *n, struct arr *const *in)
{
    char *base = n->bytes < UINT32_MAX ? mem_pool_alloc(n->bytes) : NULL;
    struct node *copy = (struct node *)base;
    bool tracer = false;

    if (!base)
        return ERR_NO_MEMORY;
    memcpy(base, n, n->bytes);
    atomic_init(&copy->rc, n->n_out);
    copy->params = moved(base, n, n->params);
    copy->state = op_state_ref(n->state);
    copy->in = moved(base, n, n->in);
    copy->out = moved(base, n, n->out);
    copy->mark = 0;
    for (int i = 0; i < n->n_in; i++) {
        copy->in[i] = arr_ref(in[i]);
        tracer |= in[i]->tracer;
    }
    tracer = tracer && tracing_is_on();
    for (int i = 0; i < n->n_out; i++) {
        struct arr *a = outs[i] = &copy->out[i];
        atomic_init(&a->rc, 1);
        a->tracer = tracer;
        a->node = copy;
        a->shape = moved(base, n, n->out[i].shape);
        a->strides = moved(base, n, n->out[i].strides);
    }
    return ERR_OK;
}

enum err arr_new_empty(struct arr **out, const struct shp *s, enum dtype t)
{
    return arr_new_op(out, .op = OP_NONE, .out = &(struct out_desc){ *s, t });
}

enum err arr_new_data(struct arr **out, const void *data, const struct shp *s, enum dtype t)
{
    struct arr *a = NULL;
    enum err err;

    TRY(arr_new_empty(&a, s, t));
    if (a->size)
        TRY(memory_new_leaf(&a->buf, data, arr_nbytes(a)));
    a->flags = (uint8_t)shp_layout_flags(s, a->strides, a->size);
    atomic_store(&a->status, ARR_AVAILABLE);
    *out = a;
    a = NULL;
out:
    arr_unref(&a);
    return err;
}

enum err arr_new_scalar(struct arr **out, const void *value, enum dtype t)
{
    return arr_new_data(out, value, &(struct shp){ 0 }, t);
}

enum err arr_new_number(struct arr **out, double v, enum dtype t)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint64_t u64;
        float f32;
        double f64;
        float c64[2];
    } value = { .u64 = 0 };

    switch (t) {
    case DT_BOOL:
        value.u8 = v != 0;
        break;
    case DT_FLOAT16:
        value.u16 = dt_f32_to_f16((float)v);
        break;
    case DT_BFLOAT16:
        value.u16 = dt_f32_to_bf16((float)v);
        break;
    case DT_FLOAT32:
        value.f32 = (float)v;
        break;
    case DT_FLOAT64:
        value.f64 = v;
        break;
    case DT_COMPLEX64:
        value.c64[0] = (float)v;
        break;
    default:
        value.u64 = dt_f64_to_int(v, t);
        break; /* little endian: narrower integers are its low bytes */
    }
    return arr_new_scalar(out, &value, t);
}

/* ---- references ---- */

/* The last reference to the only output goes: nobody else is there. */
static void release_storage(struct arr *a)
{
    buf_unref(&a->buf);
    if (a->ev)
        ev_unref(&a->ev);
}

/* May race with eval's own release of a sibling that nobody holds: the exchange picks one. */
static void release_sibling(struct arr *a)
{
    struct buf *b = __atomic_exchange_n(&a->buf, NULL, __ATOMIC_ACQ_REL);
    struct ev *e = __atomic_exchange_n(&a->ev, NULL, __ATOMIC_ACQ_REL);

    buf_unref(&b);
    ev_unref(&e);
}

/* Eval may take up a sibling that nobody holds. */
static inline bool drop_ref(struct arr *a)
{
    return a->node->n_out > 1 ? ref_dec_revivable(&a->rc) : ref_dec(&a->rc);
}

/* a lost its last reference: its node may follow, onto the work list. */
static void dropped(struct arr *a, struct node **dead)
{
    struct node *n = a->node;

    if (n->n_out > 1) {
        if (arr_is_scheduled(a))
            release_sibling(a);
        if (!ref_dec_revivable(&n->rc))
            return;
    }
    n->link = *dead;
    *dead = n;
}

/* a lost its last reference. */
static void arr_free(struct arr *a)
{
    struct node *dead = NULL;

    dropped(a, &dead);
    while (dead) { /* a work list: a graph of a million nodes must not recurse */
        struct node *n = dead;
        dead = n->link;
        for (int i = 0; i < n->n_in; i++)
            if (drop_ref(n->in[i]))
                dropped(n->in[i], &dead);
        for (int i = 0; i < n->n_out; i++)
            release_storage(&n->out[i]);
        op_state_unref(&n->state);
        mem_pool_free(n, n->bytes);
    }
}

void arr_lose(struct arr *a)
{
    if (drop_ref(a))
        arr_free(a);
}

void node_pin(struct node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (atomic_fetch_add(&n->out[i].rc, 1) == 0)
            ref_inc(&n->rc);
}

void node_unpin(struct node *n)
{
    /* Read first: every pinned output keeps the node, so only the last turn can free it. */
    struct arr *out = n->out;
    int n_out = n->n_out;

    for (int i = 0; i < n_out; i++) {
        struct arr *a = &out[i];
        arr_unref(&a);
    }
}

void node_reset(struct node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        release_storage(&n->out[i]);
        init_layout(&n->out[i]);
    }
}

void node_detach(struct node *n)
{
    int n_in = n->n_in;

    n->op = OP_NONE;
    op_state_unref(&n->state);
    n->n_in = 0;
    for (int i = 0; i < n->n_out; i++)
        arr_set_tracer(&n->out[i], false);
    for (int i = 0; i < n_in; i++)
        arr_unref(&n->in[i]);
}

uint64_t node_params_hash(const struct node *n)
{
    uint64_t h = hash_bytes(HASH_SEED, n->params, n->params_size);

    return n->state ? hash_mix(h, n->state->class->hash(n->state)) : h;
}

const char *node_params_print(const struct node *n, char *buf, size_t size)
{
    op_params_print((enum op_params_id)op_table[n->op].params, n->params, buf, size);
    size_t used = strlen(buf);
    if (n->state)
        n->state->class->print(n->state, buf + used, size - used);
    return buf;
}

/* ---- reading ---- */

struct span arr_strided_span(const struct arr *a)
{
    size_t item = dt_size((enum dtype)a->dtype);
    struct span s = { (size_t)a->offset, item };

    if (!a->size)
        return (struct span){ 0, 0 };
    for (int i = 0; i < a->ndim; i++) { /* negative strides reach below the first element */
        int64_t reach = (a->shape[i] - 1) * a->strides[i] * (int64_t)item;
        s.lo -= reach < 0 ? (size_t)-reach : 0;
        s.size += (size_t)(reach < 0 ? -reach : reach);
    }
    return s;
}

/* ---- storage ---- */

void arr_give_back(struct arr *a)
{
    if (!a->buf)
        return;
    if (a->node->strm)
        strm_hold(a->node->strm, &a->buf, 1);
    buf_unref(&a->buf);
}

static enum err alloc_storage(struct arr *a, size_t bytes, const struct be *home)
{
    arr_give_back(a);
    return bytes ? memory_alloc(&a->buf, bytes, home) : ERR_OK;
}

enum err arr_alloc(struct arr *a, const struct be *home)
{
    struct shp s;

    arr_shape(&s, a);
    shp_row_strides(a->strides, &s);
    a->offset = 0;
    a->data_size = a->size;
    a->flags = (uint8_t)shp_layout_flags(&s, a->strides, a->size);
    return alloc_storage(a, arr_nbytes(a), home);
}

enum err arr_alloc_like(struct arr *a, const struct arr *layout, const struct be *home)
{
    for (int i = 0; i < a->ndim; i++)
        a->strides[i] = layout->strides[i];
    a->offset = 0;
    a->data_size = layout->data_size;
    a->flags = layout->flags;
    return alloc_storage(a, a->size ? a->data_size * dt_size((enum dtype)a->dtype) : 0, home);
}

enum err arr_adopt(struct arr *a, void *data, void (*dtor)(void *), void *arg)
{
    struct shp s;

    arr_give_back(a);
    enum err err = memory_adopt(&a->buf, data, arr_nbytes(a), dtor, arg);
    arr_shape(&s, a);
    a->flags = (uint8_t)shp_layout_flags(&s, a->strides, a->size);
    return err;
}

void arr_share_as(struct arr *a, const struct arr *src, const struct arr_layout *l)
{
    for (int i = 0; i < a->ndim; i++) /* they may be a's own */
        a->strides[i] = l->strides[i];
    a->flags = (uint8_t)l->flags;
    a->data_size = l->data_size;
    a->offset = src->offset + l->offset * (int64_t)dt_size((enum dtype)src->dtype);
    arr_give_back(a);
    a->buf = buf_ref(src->buf);
}

void arr_share_all(struct arr *a, const struct arr *src)
{
    arr_share(a, src, src->strides, src->flags, src->data_size, 0);
}

bool arr_is_donatable(const struct arr *a, const struct strm *s)
{
    const struct buf *b = a->buf;

    if (s->recorder)
        return b && strm_recorder_donates(s, a);
    if (!b || b->dtor || a->tracer || ref_get(&a->rc) != 1 || !buf_is_only_held_by(b, s->index))
        return false;
    return b->home == s->be || (b->host && b->addr);
}

bool arr_can_donate_to(const struct arr *a, const struct arr *out, const struct strm *s)
{
    return arr_is_donatable(a, s) &&
           dt_size((enum dtype)a->dtype) == dt_size((enum dtype)out->dtype) &&
           a->buf->size <= arr_nbytes(out) + ARR_DONATION_SLACK;
}
