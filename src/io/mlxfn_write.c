/* Writing files of exported functions. */
#include "base/ptr_map.h"
#include "eval/stream.h"
#include "graph/op_call.h"
#include "io/mlxfn_prim.h"

/* The version of MLX whose primitives mlxfn.def has. */
#define VERSION "0.32.4"

struct mlxfn_writer {
    struct sink *sink;
    uint64_t count_at; /* where the number of traces is */
    int32_t count;
    bool broken; /* something could not be written */
    uint64_t next_id;
    struct ptr_map constant;     /* ids of arrays in the file */
    VEC(struct arr *) constants; /* owned: while they are there nothing else has their addresses */
};

/* A trace before it is written: an entry of the list of nodes and constants. */
struct entry {
    struct node *node; /* NULL: */
    struct arr *leaf;  /* an input or a constant */
    const struct prim *prim;
    uint32_t first_arg, n_in;
};

struct body {
    struct mlxfn_writer *w;
    const struct mlxfn_graph *g;
    struct ptr_map id;       /* of arrays in this trace */
    struct ptr_map seen;     /* nodes; those whose inputs are being looked at, too */
    VEC(struct entry) entry; /* each after what it reads */
    VEC(struct arr *) arg;   /* what nodes read, entry by entry */
    VEC(struct arr *) added; /* owned: made by adapt */
    VEC(struct arr *) fresh; /* constants that the file does not have yet */
};

/* ---- inputs that the file has and a node has not ---- */

static enum err number(struct arr **out, double v, const struct arr *like)
{
    return arr_new_number(out, v, (enum dtype)like->dtype);
}

enum err adapt_norm(struct prim_inputs *in, const struct node *n)
{
    const struct norm_params *p = n->params;
    int next = 1;
    enum err err = ERR_OK;

    in->v[in->n++] = arr_ref(n->in[0]);
    if (p->has_weight)
        in->v[in->n++] = arr_ref(n->in[next++]);
    else {
        TRY(number(&in->v[in->n], 1, n->in[0]));
        in->n++;
    }
    if (n->op == OP_RMS_NORM)
        return ERR_OK;
    if (p->has_bias)
        in->v[in->n++] = arr_ref(n->in[next]);
    else {
        TRY(number(&in->v[in->n], 0, n->in[0]));
        in->n++;
    }
out:
    return err;
}

/* Whoever reads it counts again. */
enum err adapt_elements(struct prim_inputs *in, const struct node *n)
{
    in->v[in->n++] = arr_ref(n->in[1]);
    return ERR_OK;
}

enum err adapt_rope(struct prim_inputs *in, const struct node *n)
{
    const struct rope_params *p = n->params;
    enum err err = ERR_OK;

    in->v[in->n++] = arr_ref(n->in[0]);
    if (p->has_offset)
        in->v[in->n++] = arr_ref(n->in[1]);
    else {
        TRY(arr_new_number(&in->v[in->n], p->offset, DT_INT32));
        in->n++;
    }
    if (p->has_freqs)
        in->v[in->n++] = arr_ref(n->in[n->n_in - 1]);
out:
    return err;
}

/* ---- the order of a graph ---- */

static enum err add_arg(struct body *b, struct entry *e, struct arr *a)
{
    e->n_in++;
    return VEC_PUSH(&b->arg, a);
}

static enum err add_args(struct body *b, struct entry *e)
{
    struct prim_inputs in = { .n = 0 };
    enum err err;

    e->first_arg = (uint32_t)b->arg.n;
    if (!e->prim->adapt) {
        for (int i = 0; i < e->node->n_in; i++)
            if ((err = add_arg(b, e, e->node->in[i])) != ERR_OK)
                return err;
        return ERR_OK;
    }
    err = e->prim->adapt(&in, e->node);
    for (size_t i = 0; i < in.n; i++) {
        if (!err)
            err = VEC_PUSH(&b->added, in.v[i]);
        if (err)
            arr_unref(&in.v[i]);
        else
            err = add_arg(b, e, in.v[i]);
    }
    return err;
}

/* Whether the bytes are what counts: an array that was computed, or that a file holds. */
static bool is_leaf(const struct arr *a)
{
    return a->node->op == OP_NONE || a->node->op == OP_LOAD;
}

static enum err give_id(struct body *b, const struct arr *a)
{
    return ptr_map_put(&b->id, a, b->w->next_id++);
}

static enum err add_leaf(struct body *b, struct arr *a)
{
    size_t id = ptr_map_get(&b->w->constant, a);
    enum err err;

    if (ptr_map_get(&b->id, a) != PTR_NONE)
        return ERR_OK;
    for (size_t i = 0; i < b->g->captured.n; i++)
        if (b->g->captured.v[i] == a)
            return err_set(ERR_ARG, "[compile] Attempting to compile a function with uncaptured "
                                    "inputs is not allowed.");
    if (a->node->op == OP_NONE && !arr_is_scheduled(a))
        return err_set(ERR_ARG, "[export_function] The graph has a placeholder that is no input.");
    if (id == PTR_NONE) {
        TRY(VEC_PUSH(&b->fresh, a));
        TRY(give_id(b, a));
    } else {
        TRY(ptr_map_put(&b->id, a, id));
    }
    err = VEC_PUSH(&b->entry, (struct entry){ .leaf = a });
out:
    return err;
}

struct visit {
    struct entry entry;
    uint32_t next;
};
typedef VEC(struct visit) visits;

static enum err enter(struct body *b, visits *stack, struct arr *a)
{
    struct visit v = { .entry = { .node = a->node } };
    enum err err;

    if (ptr_map_get(&b->id, a) != PTR_NONE)
        return ERR_OK;
    if (is_leaf(a))
        return add_leaf(b, a);
    if (ptr_map_get(&b->seen, a->node) != PTR_NONE)
        return ERR_OK;
    if (!(v.entry.prim = prim_of(a->node)))
        return err_set(ERR_ARG, "[export_function] Unable to serialize primitive %s",
                       op_name((enum op_id)a->node->op));
    TRY(ptr_map_put(&b->seen, a->node, 0));
    TRY(add_args(b, &v.entry));
    err = VEC_PUSH(stack, v);
out:
    return err;
}

static enum err leave(struct body *b, const struct entry *e)
{
    enum err err = ERR_OK;

    for (int i = 0; i < e->node->n_out; i++)
        TRY(give_id(b, &e->node->out[i]));
    err = VEC_PUSH(&b->entry, *e);
out:
    return err;
}

/* Everything below what is on the stack, and then that: what a node reads has its numbers first. */
static enum err order_below(struct body *b, visits *stack)
{
    enum err err = ERR_OK;

    while (stack->n) {
        struct visit *v = &stack->v[stack->n - 1];
        if (v->next < v->entry.n_in) {
            TRY(enter(b, stack, b->arg.v[v->entry.first_arg + v->next++]));
            continue;
        }
        TRY(leave(b, &v->entry));
        stack->n--;
    }
out:
    return err;
}

static enum err order(struct body *b)
{
    visits stack = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < b->g->in.n; i++)
        TRY(give_id(b, b->g->in.v[i]));
    for (size_t i = 0; i < b->g->out.n; i++) {
        TRY(enter(b, &stack, b->g->out.v[i]));
        TRY(order_below(b, &stack));
    }
out:
    VEC_FINI(&stack);
    return err;
}

/* ---- bytes ---- */

static enum err put_u64(bytes_out *o, uint64_t v)
{
    return bytes_put(o, &v, sizeof v);
}

static enum err put_text(bytes_out *o, const char *text)
{
    size_t n = strlen(text);
    enum err err = put_u64(o, n);

    return err ? err : bytes_put(o, text, n);
}

static enum err put_bool(bytes_out *o, bool v)
{
    char byte = v;

    return bytes_put(o, &byte, 1);
}

static enum err put_ids(bytes_out *o, const struct body *b, struct arrs a)
{
    enum err err;

    TRY(put_u64(o, a.n));
    for (size_t i = 0; i < a.n; i++)
        TRY(put_u64(o, ptr_map_get(&b->id, a.v[i])));
out:
    return err;
}

static enum err put_shape(bytes_out *o, const struct arr *a)
{
    enum err err = put_u64(o, a->ndim);

    return err ? err : bytes_put(o, a->shape, a->ndim * sizeof a->shape[0]);
}

static enum err put_desc(bytes_out *o, const struct arr *a)
{
    enum err err = put_shape(o, a);

    return err ? err : bytes_put_dtype(o, (enum dtype)a->dtype);
}

static enum err put_inputs(bytes_out *o, const struct body *b)
{
    const struct mlxfn_graph *g = b->g;
    enum err err;

    TRY(put_u64(o, g->n_names));
    for (size_t i = 0; i < g->n_names; i++)
        TRY(put_text(o, g->names[i]));
    TRY(put_ids(o, b, g->in));
    TRY(put_u64(o, g->in.n));
    for (size_t i = 0; i < g->in.n; i++)
        TRY(put_desc(o, g->in.v[i]));
    err = put_ids(o, b, g->out);
out:
    return err;
}

static enum err put_siblings(bytes_out *o, const struct body *b, const struct node *n)
{
    enum err err;

    TRY(put_u64(o, (uint64_t)n->n_out));
    for (int i = 0; i < n->n_out; i++)
        TRY(put_u64(o, ptr_map_get(&b->id, &n->out[i])));
    TRY(put_u64(o, (uint64_t)n->n_out));
    for (int i = 0; i < n->n_out; i++)
        TRY(put_shape(o, &n->out[i]));
    TRY(put_u64(o, (uint64_t)n->n_out));
    for (int i = 0; i < n->n_out; i++)
        TRY(bytes_put_dtype(o, (enum dtype)n->out[i].dtype));
out:
    return err;
}

/* In files the place before the first element counts from the end, as ends of MLX's callers do. */
static const void *params_in_file(union prim_params *room, const struct node *n)
{
    struct slice_params *p = n->op == OP_SLICE ? &room->slice : &room->slice_update.region;

    if (n->op != OP_SLICE && n->op != OP_SLICE_UPDATE)
        return n->params;
    memcpy(room, n->params, n->params_size);
    for (int i = 0; i < p->n; i++)
        if (p->d[i].step < 0 && p->d[i].stop < 0)
            p->d[i].stop = -n->in[0]->shape[i] - 1;
    return room;
}

static enum err put_node(bytes_out *o, const struct body *b, const struct entry *e)
{
    const struct node *n = e->node;
    union prim_params room;
    int32_t strm[] = { n->strm->index, (int32_t)n->strm->dev.type, n->strm->dev.index };
    enum err err;

    TRY(put_u64(o, ptr_map_get(&b->id, &n->out[0])));
    TRY(put_bool(o, true));
    TRY(put_ids(o, b, (struct arrs){ b->arg.v + e->first_arg, e->n_in }));
    TRY(bytes_put(o, strm, sizeof strm));
    TRY(put_text(o, e->prim->name));
    TRY(prim_write(o, e->prim, params_in_file(&room, n)));
    if (e->prim->write_state)
        TRY(e->prim->write_state(o, n->state));
    TRY(put_u64(o, (uint64_t)n->n_out - 1));
    err = n->n_out == 1 ? put_desc(o, &n->out[0]) : put_siblings(o, b, n);
out:
    return err;
}

/* ---- writing ---- */

static enum err flush(struct mlxfn_writer *w, bytes_out *o)
{
    enum err err = sink_write(w->sink, o->v, o->n);

    o->n = 0;
    return err;
}

/* dense: the bytes of a constant that the file does not have yet, or NULL. */
static enum err write_leaf(struct body *b, bytes_out *o, struct arr *a, struct arr *dense)
{
    bool is_input = false;
    enum err err;

    for (size_t i = 0; i < b->g->in.n; i++)
        is_input |= b->g->in.v[i] == a;
    TRY(put_u64(o, ptr_map_get(&b->id, a)));
    TRY(put_bool(o, false));
    TRY(put_bool(o, !is_input));
    if (!dense)
        return ERR_OK;
    TRY(put_desc(o, a));
    TRY(flush(b->w, o));
    err = io_write_bytes(b->w->sink, dense);
out:
    return err;
}

static enum err write_body(struct body *b, struct arr *const *dense)
{
    bytes_out o = { 0 };
    size_t next = 0;
    enum err err;

    TRY(put_inputs(&o, b));
    TRY(put_u64(&o, b->entry.n));
    for (size_t i = 0; i < b->entry.n; i++) {
        const struct entry *e = &b->entry.v[i];
        if (e->node) {
            TRY(put_node(&o, b, e));
            continue;
        }
        bool is_fresh = next < b->fresh.n && b->fresh.v[next] == e->leaf;
        TRY(write_leaf(b, &o, e->leaf, is_fresh ? dense[next] : NULL));
        next += is_fresh;
    }
    TRY(flush(b->w, &o));
    b->w->count++;
    TRY(sink_patch(b->w->sink, &b->w->count, sizeof b->w->count, b->w->count_at));
    err = sink_publish(b->w->sink);
out:
    VEC_FINI(&o);
    return err;
}

/* The file has them from now on. */
static enum err keep_constants(struct body *b)
{
    struct mlxfn_writer *w = b->w;
    enum err err = ERR_OK;

    for (size_t i = 0; i < b->fresh.n; i++) {
        TRY(VEC_RESERVE(&w->constants, 1));
        TRY(ptr_map_put(&w->constant, b->fresh.v[i], ptr_map_get(&b->id, b->fresh.v[i])));
        w->constants.v[w->constants.n++] = arr_ref(b->fresh.v[i]);
    }
out:
    return err;
}

static enum err write_graph(struct body *b)
{
    struct arr **dense = mem_alloc_array(b->fresh.n + 1, sizeof *dense);
    enum err err = ERR_NO_MEMORY;

    if (!dense)
        return err;
    TRY(io_make_dense(dense, (struct arrs){ b->fresh.v, b->fresh.n }, false));
    b->w->broken = true;
    TRY(keep_constants(b));
    TRY(write_body(b, dense));
    b->w->broken = false;
out:
    for (size_t i = 0; i < b->fresh.n; i++)
        arr_unref(&dense[i]);
    mem_free(dense);
    return err;
}

static void body_fini(struct body *b)
{
    for (size_t i = 0; i < b->added.n; i++)
        arr_unref(&b->added.v[i]);
    VEC_FINI(&b->added);
    VEC_FINI(&b->arg);
    VEC_FINI(&b->entry);
    VEC_FINI(&b->fresh);
    ptr_map_fini(&b->id);
    ptr_map_fini(&b->seen);
}

enum err mlxfn_write(struct mlxfn_writer *w, const struct mlxfn_graph *g)
{
    struct body b = { .w = w, .g = g };
    enum err err;

    if (w->broken)
        return err_set(ERR_RUNTIME,
                       "[export_function] Attempting to write after exporting is closed.");
    TRY(order(&b));
    err = write_graph(&b);
out:
    body_fini(&b);
    return err;
}

/* ---- telling ---- */

static enum err tell_node(const struct mlxfn_listener *l, const struct body *b,
                          const struct entry *e)
{
    struct mlxfn_arg args[MLXFN_ARGS];
    struct mlxfn_event event = { .kind = MLXFN_PRIMITIVE,
                                 .in = { b->arg.v + e->first_arg, e->n_in },
                                 .name = e->prim->name,
                                 .args = args,
                                 .n_args = prim_args(args, e->prim, e->node->params) };
    struct arr **out = mem_alloc_array((size_t)e->node->n_out, sizeof *out);
    enum err err = ERR_NO_MEMORY;

    for (int i = 0; out && i < e->node->n_out; i++)
        out[i] = &e->node->out[i];
    if (out) {
        event.out = (struct arrs){ out, (size_t)e->node->n_out };
        err = l->tell(l->data, &event);
    }
    mem_free(out);
    return err;
}

static enum err tell_arrays(const struct mlxfn_listener *l, enum mlxfn_kind kind, struct arrs in)
{
    return l->tell(l->data, &(struct mlxfn_event){ .kind = kind, .in = in });
}

enum err mlxfn_tell(const struct mlxfn_listener *l, const struct mlxfn_graph *g)
{
    struct mlxfn_writer w = { .next_id = 1 };
    struct body b = { .w = &w, .g = g };
    struct arrs named = { g->in.v + (g->in.n - g->n_names), g->n_names };
    enum err err;

    TRY(order(&b));
    TRY(tell_arrays(l, MLXFN_INPUTS, g->in));
    TRY(l->tell(l->data,
                &(struct mlxfn_event){ .kind = MLXFN_KEYWORDS, .in = named, .names = g->names }));
    TRY(tell_arrays(l, MLXFN_OUTPUTS, g->out));
    TRY(tell_arrays(l, MLXFN_CONSTANTS, (struct arrs){ b.fresh.v, b.fresh.n }));
    for (size_t i = 0; i < b.entry.n; i++)
        if (b.entry.v[i].node)
            TRY(tell_node(l, &b, &b.entry.v[i]));
out:
    body_fini(&b);
    return err;
}

static enum err write_header(struct mlxfn_writer *w, const struct mlxfn_header *h)
{
    bytes_out o = { 0 };
    enum err err;

    TRY(put_text(&o, VERSION));
    w->count_at = o.n;
    TRY(bytes_put(&o, &w->count, sizeof w->count));
    TRY(put_bool(&o, h->shapeless));
    TRY(put_text(&o, h->metadata ? h->metadata : ""));
    err = flush(w, &o);
out:
    VEC_FINI(&o);
    return err;
}

enum err mlxfn_writer_new(struct mlxfn_writer **out, const char *path, const struct mlxfn_header *h)
{
    struct mlxfn_writer *w = mem_alloc(sizeof *w);
    enum err err = ERR_NO_MEMORY;

    if (!w)
        return err;
    w->next_id = 1;
    if (sink_create(&w->sink, path, "") != ERR_OK)
        TRY(err_set(ERR_RUNTIME, "[export_function] Failed to open %s", path));
    TRY(write_header(w, h));
    *out = w;
    w = NULL;
out:
    mlxfn_writer_destroy(&w);
    return err;
}

void mlxfn_writer_close(struct mlxfn_writer *w)
{
    w->broken = true;
}

void mlxfn_writer_destroy(struct mlxfn_writer **pw)
{
    struct mlxfn_writer *w = *pw;

    *pw = NULL;
    if (!w)
        return;
    sink_destroy(&w->sink);
    for (size_t i = 0; i < w->constants.n; i++)
        arr_unref(&w->constants.v[i]);
    VEC_FINI(&w->constants);
    ptr_map_fini(&w->constant);
    mem_free(w);
}
