#include "core/replay.h"

#include "backend/backend.h"
#include "core/eval.h"
#include "core/op_params.h"
#include "core/plan.h"
#include "core/tape.h"

/* Marks of nodes while a replay is made. */
enum { STAYS, GROWS };

struct replay {
    struct strm *strm;
    struct tape tape;
    struct plan *plan;
    struct arr **in; /* placeholders, borrowed from the graph */
    size_t n_in;
    struct arr **out; /* owned: keeps the graph */
    size_t n_out;
    VEC(struct arr *) constants; /* owned, so that no op writes over them in place */
    struct replay_move *move;
    size_t n_moves;
};

enum err replay_placeholder(struct arr **out, const struct arr *like, struct strm *s)
{
    struct out_desc d = { .dtype = (enum dtype)like->dtype };

    arr_shape(&d.shape, like);
    enum err err = arr_new_op(out, .op = OP_NONE, .strm = s, .out = &d);
    if (!err)
        atomic_store(&(*out)->status, ARR_AVAILABLE);
    return err;
}

/* ---- making ---- */

static bool is_placeholder(const struct replay *r, const struct arr *a)
{
    for (size_t i = 0; i < r->n_in; i++)
        if (r->in[i] == a)
            return true;
    return false;
}

/* Marks the nodes that grow, then looks who reads them. */
static enum err check_moves(const struct replay *r)
{
    for (size_t i = 0; i < r->tape.n; i++)
        r->tape.node[i]->mark = STAYS;
    for (size_t i = 0; i < r->n_moves; i++) {
        struct node *n = r->move[i].a->node;
        if (n->op != OP_ROPE && n->op != OP_SLICE && n->op != OP_SLICE_UPDATE)
            return err_set(ERR_ARG, "[replay] %s has no position", op_name((enum op_id)n->op));
        if (n->op == OP_SLICE)
            n->mark = GROWS;
    }
    for (size_t i = 0; i < r->tape.n; i++) {
        const struct node *n = r->tape.node[i];
        for (int k = 0; k < n->n_in && n->op != OP_SDPA; k++)
            if (!arr_is_scheduled(n->in[k]) && n->in[k]->node->mark == GROWS)
                return err_set(ERR_UNSUPPORTED, "[replay] %s reads what grows",
                               op_name((enum op_id)n->op));
    }
    return ERR_OK;
}

static enum err check_graph(const struct replay *r)
{
    if (!r->tape.n || r->tape.n > PLAN_MAX_NODES)
        return err_set(ERR_UNSUPPORTED, "[replay] a graph of %zu nodes", r->tape.n);
    for (size_t i = 0; i < r->tape.n; i++)
        if (r->tape.node[i]->strm != r->strm)
            return err_set(ERR_UNSUPPORTED, "[replay] a graph on several streams");
    for (size_t i = 0; i < r->n_in; i++)
        if (ref_get(&r->in[i]->rc) < 2)
            return err_set(ERR_ARG, "[replay] nothing reads input %zu", i);
    return check_moves(r);
}

static enum err keep_constants(struct replay *r)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->tape.n; i++) {
        const struct node *n = r->tape.node[i];
        for (int k = 0; k < n->n_in; k++) {
            if (!arr_is_scheduled(n->in[k]) || is_placeholder(r, n->in[k]))
                continue;
            TRY(VEC_PUSH(&r->constants, n->in[k]));
            arr_ref(n->in[k]);
        }
    }
out:
    return err;
}

static enum err copy_lists(struct replay *r, const struct replay_params *p)
{
    r->in = mem_alloc_array(p->n_in, sizeof(struct arr *));
    r->out = mem_alloc_array(p->n_out, sizeof(struct arr *));
    r->move = mem_alloc_array(p->n_moves, sizeof *r->move);
    if (!r->in || !r->out || !r->move)
        return ERR_NO_MEMORY;
    for (; r->n_in < p->n_in; r->n_in++)
        r->in[r->n_in] = p->in[r->n_in];
    for (; r->n_moves < p->n_moves; r->n_moves++)
        r->move[r->n_moves] = p->move[r->n_moves];
    for (; r->n_out < p->n_out; r->n_out++)
        r->out[r->n_out] = arr_ref(p->out[r->n_out]);
    return ERR_OK;
}

enum err replay_new(struct replay **out, const struct replay_params *p)
{
    struct replay *r = mem_alloc(sizeof *r);
    struct plan *plan;
    enum err err;

    if (!r)
        return ERR_NO_MEMORY;
    TRY(copy_lists(r, p));
    TRY(tape_build(&r->tape, r->out, r->n_out, true));
    r->strm = r->tape.n ? r->tape.node[0]->strm : NULL;
    TRY(check_graph(r));
    TRY(keep_constants(r));
    for (size_t i = 0; i < r->tape.n; i++)
        r->tape.node[i]->mark = i;
    TRY(plan_get(&plan, r->strm, r->tape.node, r->tape.n));
    r->plan = plan_ref(plan);
    *out = r;
    r = NULL;
out:
    replay_destroy(&r);
    return err;
}

/* Work in flight may use what a run reads and what it keeps. */
static void give_back_all(struct replay *r)
{
    for (size_t i = 0; i < r->tape.n; i++)
        for (int o = 0; o < r->tape.node[i]->n_out; o++)
            arr_give_back(&r->tape.node[i]->out[o]);
    for (size_t i = 0; i < r->constants.n; i++) {
        struct buf *b = r->constants.v[i]->buf;
        if (b && r->strm->be->hold(r->strm, &b, 1) != ERR_OK) {
            enum err err = r->strm->be->sync(r->strm);
            (void)err; /* whoever waits for the work that failed is told */
        }
    }
}

void replay_destroy(struct replay **pr)
{
    struct replay *r = *pr;

    *pr = NULL;
    if (!r)
        return;
    if (r->plan)
        give_back_all(r);
    for (size_t i = 0; i < r->constants.n; i++)
        arr_unref(&r->constants.v[i]);
    for (size_t i = 0; i < r->n_out; i++)
        arr_unref(&r->out[i]);
    VEC_FINI(&r->constants);
    plan_unref(&r->plan);
    tape_fini(&r->tape);
    mem_free(r->in);
    mem_free(r->out);
    mem_free(r->move);
    mem_free(r);
}

/* ---- running ---- */

static enum err check_inputs(const struct replay *r, struct arr *const *in)
{
    for (size_t i = 0; i < r->n_in; i++)
        if (in[i]->dtype != r->in[i]->dtype || !arr_same_shape(in[i], r->in[i]) ||
            !arr_is_scheduled(in[i]))
            return err_set(ERR_ARG, "[replay] input %zu is not what the graph was built on", i);
    return ERR_OK;
}

static enum err wait_for(struct strm *s, struct arr *a)
{
    enum err err = ERR_OK;

    if (!a->node->strm || a->node->strm == s)
        return ERR_OK;
    struct ev *ev = arr_event(a);
    if (ev)
        err = ev_wait_on(s, ev);
    ev_unref(&ev);
    return err;
}

/* The array itself goes, so that the placeholder alone has the bytes. */
static void put(struct arr *place, struct arr **a)
{
    if ((*a)->buf)
        arr_share_all(place, *a);
    arr_unref(a);
}

static void move(const struct replay_move *m, int32_t by)
{
    struct node *n = m->a->node;
    struct slice_params *region = n->params;

    switch (n->op) {
    case OP_ROPE:
        ((struct rope_params *)n->params)->offset += by;
        break;
    case OP_SLICE_UPDATE:
        region = &((struct slice_update_params *)n->params)->region;
        region->start[m->axis] += by;
        region->stop[m->axis] += by;
        break;
    default: /* OP_SLICE */
        region->stop[m->axis] += by;
        m->a->shape[m->axis] += by;
        node_reset(n);
        break;
    }
}

/* A result of this run as an array of its own. */
static enum err take_result(struct arr **out, const struct replay *r, struct arr *a,
                            struct ev *done)
{
    struct out_desc d = { .dtype = (enum dtype)a->dtype };
    enum err err = ERR_OK;

    arr_shape(&d.shape, a);
    TRY(arr_new_op(out, .op = OP_NONE, .strm = r->strm, .out = &d));
    if (a->buf) {
        TRY(r->strm->be->hold(r->strm, &a->buf, 1));
        arr_share_all(*out, a);
    }
    (*out)->ev = ev_ref(done);
    atomic_store(&(*out)->status, ARR_EVALUATED);
out:
    if (err)
        arr_unref(out);
    return err;
}

/* Who made a buffer keeps it; views of it and what was written over it in place come later on the
 * tape and let go first. */
static void keep_storage(const struct replay *r)
{
    for (size_t i = 0; i < r->n_in; i++)
        arr_give_back(r->in[i]);
    for (size_t i = r->tape.n; i-- > 0;) {
        struct node *n = r->tape.node[i];
        for (int o = 0; o < n->n_out; o++)
            if (n->out[o].buf && !buf_is_only_held_by(n->out[o].buf, r->strm->index))
                buf_unref(&n->out[o].buf);
    }
}

enum err replay_run(struct replay *r, struct arr **in, struct arr **out, int32_t by)
{
    struct ev *done = NULL;
    size_t n = 0;
    enum err err;

    TRY(check_inputs(r, in));
    for (size_t i = 0; i < r->n_in; i++)
        TRY(wait_for(r->strm, in[i]));
    for (size_t i = 0; i < r->n_in; i++)
        put(r->in[i], &in[i]);
    for (size_t i = 0; i < r->n_moves && by; i++)
        move(&r->move[i], by);
    TRY(eval_again(&done, r->plan, r->tape.node, r->tape.n));
    for (; n < r->n_out; n++)
        TRY(take_result(&out[n], r, r->out[n], done));
    keep_storage(r);
out:
    for (size_t i = 0; i < r->n_in; i++)
        arr_unref(&in[i]);
    while (err && n > 0)
        arr_unref(&out[--n]);
    ev_unref(&done);
    return err;
}
