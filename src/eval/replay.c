#include "eval/replay.h"

#include "backend/backend.h"
#include "eval/eval.h"
#include "eval/notes.h"
#include "eval/tape.h"
#include "eval/wait.h"
#include "graph/op_params.h"
#include "plan/plan.h"
#include "plan/rewrite.h"

/* Marks of nodes while a replay is made. */
enum { STAYS, GROWS };

/* What is known of a node's storage. */
struct storage {
    const struct buf *first; /* of the first output, in the first run */
    bool stays;              /* nobody lets go of it any more */
    bool moves;              /* the node does */
};

struct replay {
    struct strm *strm;
    struct tape tape;
    struct plan *plan;
    struct arr **in; /* placeholders, borrowed from the graph */
    size_t n_in;
    struct arr **out; /* owned: keeps the graph */
    size_t n_out;
    VEC(struct arr *) constants; /* owned, so that no op writes over them in place */
    VEC(struct arr *) pinned; /* likewise: storage that stays, read by steps that are not steady */
    struct replay_move *move;
    size_t n_moves;
    uint64_t runs;
    struct storage *storage; /* by node of the tape */
    struct notes *notes;     /* NULL until storage has settled, and on backends without */
};

static enum err new_leaf(struct arr **out, const struct arr *like, struct strm *s)
{
    struct out_desc d = { .dtype = (enum dtype)like->dtype };

    arr_shape(&d.shape, like);
    return arr_new_op(out, .op = OP_NONE, .strm = s, .out = &d);
}

enum err replay_placeholder(struct arr **out, const struct arr *like, struct strm *s)
{
    enum err err = new_leaf(out, like, s);

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
            TRY(wait_for(r->strm, n->in[k]));
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
    tape_release(&r->tape); /* nobody else knows the graph */
    r->strm = r->tape.n ? r->tape.node[0]->strm : NULL;
    TRY(check_graph(r));
    TRY(keep_constants(r));
    if (!(r->storage = mem_alloc_array(r->tape.n, sizeof *r->storage))) {
        err = ERR_NO_MEMORY;
        goto out;
    }
    for (size_t i = 0; i < r->tape.n; i++)
        r->tape.node[i]->mark = i;
    for (size_t i = 0; i < r->n_moves; i++) {
        struct storage *moving = &r->storage[r->move[i].a->node->mark];
        if (moving->moves) {
            err = err_set(ERR_ARG, "[replay] a node that moves twice");
            goto out;
        }
        moving->moves = true;
    }
    TRY(plan_get(&plan, r->strm, r->tape.node, r->tape.n));
    r->plan = plan_ref(plan);
    *out = r;
    r = NULL;
out:
    replay_destroy(&r);
    return err;
}

/* What was found of storage and layouts does not hold any more. */
static void forget_steady(struct replay *r)
{
    notes_destroy(&r->notes);
    for (size_t i = 0; i < r->tape.n; i++)
        r->storage[i].stays = false;
    for (size_t i = 0; i < r->pinned.n; i++)
        arr_unref(&r->pinned.v[i]);
    r->pinned.n = 0;
    r->runs = 0;
}

/* Work in flight may use what a run reads and what it keeps. */
static void give_back_all(struct replay *r)
{
    for (size_t i = 0; i < r->tape.n; i++)
        for (int o = 0; o < r->tape.node[i]->n_out; o++)
            arr_give_back(&r->tape.node[i]->out[o]);
    for (size_t i = 0; i < r->constants.n; i++)
        if (r->constants.v[i]->buf)
            strm_hold(r->strm, &r->constants.v[i]->buf, 1);
}

void replay_destroy(struct replay **pr)
{
    struct replay *r = *pr;

    *pr = NULL;
    if (!r)
        return;
    if (r->plan) {
        forget_steady(r);
        give_back_all(r);
    }
    for (size_t i = 0; i < r->constants.n; i++)
        arr_unref(&r->constants.v[i]);
    for (size_t i = 0; i < r->n_out; i++)
        arr_unref(&r->out[i]);
    VEC_FINI(&r->constants);
    VEC_FINI(&r->pinned);
    mem_free(r->storage);
    plan_unref(&r->plan);
    tape_fini(&r->tape);
    mem_free(r->in);
    mem_free(r->out);
    mem_free(r->move);
    mem_free(r);
}

/* ---- steady steps ---- */

/* The arrays of a step. */
struct step_arrays {
    struct arr *in[NOTES_MAX_IN], *out[MAX(FX_MAX_OUT, GROUP_SLOTS)];
    int n_in, n_out;
};

/* False if there are more of them, or several outputs of one node. */
static bool arrays_of(struct step_arrays *a, const struct replay *r, const struct plan_step *step)
{
    struct node *const *nodes = r->tape.node, *n = nodes[step->node];
    bool is_node = !step->fx && !step->group;

    int n_in = is_node ? n->n_in : step->n_in;
    int n_out = is_node ? n->n_out : step->n_out;
    a->n_in = MIN(n_in, (int)ARRAY_LEN(a->in));
    a->n_out = is_node ? 1 : n_out;
    for (int i = 0; i < a->n_in; i++)
        a->in[i] = is_node ? n->in[i] : plan_step_in(r->plan, step, nodes, i);
    for (int o = 0; o < a->n_out; o++)
        a->out[o] = &(is_node ? n : plan_step_out(r->plan, step, nodes, o))->out[0];
    return a->n_in == n_in && a->n_out == n_out;
}

/* What comes from outside or goes there has other storage in every run. */
static bool is_shared(const struct replay *r, const struct buf *b)
{
    for (size_t i = 0; i < r->n_in; i++)
        if (r->in[i]->buf == b)
            return true;
    for (size_t i = 0; i < r->n_out; i++)
        if (r->out[i]->buf == b)
            return true;
    return false;
}

static bool is_made_here(const struct arr *a)
{
    return a->node->op != OP_NONE;
}

/* The storage of a stays from run to run. */
static bool is_settled(const struct replay *r, const struct arr *a)
{
    if (!is_made_here(a))
        return !is_placeholder(r, a);
    if (a->node->op == OP_SLICE && r->storage[a->node->mark].moves)
        return false; /* it grows */
    return a->node->n_out == 1 && a->buf == r->storage[a->node->mark].first &&
           (!a->buf || !is_shared(r, a->buf));
}

static bool step_moves(const struct replay *r, const struct plan_step *step)
{
    bool moves = r->storage[step->node].moves;

    for (int slot = 0; step->group && slot < GROUP_SLOTS; slot++)
        if (step->group->member[slot] != PLAN_NO_NODE)
            moves |= r->storage[step->group->member[slot]].moves;
    return moves;
}

static bool is_steady(const struct replay *r, const struct plan_step *step,
                      const struct step_arrays *a)
{
    bool steady = !step_moves(r, step);

    for (int i = 0; i < a->n_in && steady; i++)
        steady = is_settled(r, a->in[i]);
    for (int o = 0; o < a->n_out && steady; o++)
        steady = is_settled(r, a->out[o]);
    return steady;
}

static enum err want_note(struct replay *r, size_t step, const struct step_arrays *a)
{
    struct arr *sorted[NOTES_MAX_IN];
    struct notes_inputs in = { .v = sorted };

    for (int inner = 1; inner >= 0; inner--) {
        for (int i = 0; i < a->n_in; i++)
            if (is_made_here(a->in[i]) == inner)
                sorted[in.n++] = a->in[i];
        in.n_inner += inner ? in.n : 0;
    }
    for (int o = 0; o < a->n_out; o++)
        r->storage[a->out[o]->node->mark].stays = true;
    return notes_want(r->notes, step, &in);
}

/* A result that took storage over in place would lose it to the next run. */
static enum err pin_inputs(struct replay *r, const struct step_arrays *a)
{
    enum err err = ERR_OK;

    for (int i = 0; i < a->n_in; i++)
        if (is_made_here(a->in[i]) && r->storage[a->in[i]->node->mark].stays) {
            TRY(VEC_PUSH(&r->pinned, a->in[i]));
            arr_ref(a->in[i]);
        }
out:
    return err;
}

/* After the first run it is known what storage the nodes have, after the second which of it stays.
 */
static enum err find_steady(struct replay *r)
{
    struct step_arrays a;
    enum err err = ERR_OK;

    if (++r->runs == 1)
        for (size_t i = 0; i < r->tape.n; i++)
            r->storage[i].first = r->tape.node[i]->out[0].buf;
    if (r->runs != 2 || !r->strm->be->notes_new)
        return ERR_OK;
    TRY(notes_new(&r->notes, r->plan, r->strm));
    for (size_t i = 0; i < r->tape.n; i++)
        r->storage[i].stays =
            r->tape.node[i]->out[0].keeps && is_settled(r, &r->tape.node[i]->out[0]);
    for (size_t i = 0; i < r->plan->n_step; i++) {
        const struct plan_step *step = &r->plan->step[i];
        bool is_small = arrays_of(&a, r, step);
        TRY(is_small && is_steady(r, step, &a) ? want_note(r, i, &a) : pin_inputs(r, &a));
    }
out:
    return err;
}

/* ---- running ---- */

static bool is_alike(const struct arr *a, const struct arr *b)
{
    return a->dtype == b->dtype && arr_same_shape(a, b);
}

/* Inner arrays take over the layout of inputs. */
static bool lies_as(const struct arr *a, const struct arr *b)
{
    return a->flags == b->flags && a->data_size == b->data_size &&
           memcmp(a->strides, b->strides, a->ndim * sizeof a->strides[0]) == 0;
}

static enum err check_inputs(const struct replay *r, struct arr *const *in)
{
    for (size_t i = 0; i < r->n_in; i++)
        if (!is_alike(in[i], r->in[i]) || !arr_is_scheduled(in[i]))
            return err_set(ERR_ARG, "[replay] input %zu is not what the graph was built on", i);
    return ERR_OK;
}

/* Nobody else knows the array. */
static bool is_owned(const struct arr *a, const struct strm *s)
{
    return ref_get(&a->rc) == 1 && a->node->n_out == 1 && a->node->strm == s;
}

/* The array itself goes, so that the placeholder alone has the bytes; if nobody else knows it, it
 * stays without them, for a result. */
static void put(struct arr *place, struct arr **a, const struct strm *s)
{
    if ((*a)->buf)
        arr_share_all(place, *a);
    if (!is_owned(*a, s)) {
        arr_unref(a);
        return;
    }
    buf_unref(&(*a)->buf);
    ev_unref(&(*a)->ev);
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
        region->d[m->axis].start += by;
        region->d[m->axis].stop += by;
        break;
    default: /* OP_SLICE */
        region->d[m->axis].stop += by;
        m->a->shape[m->axis] += by;
        node_reset(n);
        break;
    }
}

/* A result of this run as an array of its own. spare: one that put left, or NULL. */
static enum err take_result(struct arr **out, struct arr **spare, const struct replay *r,
                            struct arr *a, struct ev *done)
{
    enum err err = ERR_OK;

    *out = NULL;
    if (spare && *spare && is_alike(*spare, a)) {
        *out = *spare;
        *spare = NULL;
    } else {
        TRY(new_leaf(out, a, r->strm));
    }
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

/* What a result took over in place is held with it. */
static void empty_places(const struct replay *r)
{
    for (size_t i = 0; i < r->n_in; i++)
        if (i < r->n_out && r->in[i]->buf == r->out[i]->buf)
            buf_unref(&r->in[i]->buf);
        else
            arr_give_back(r->in[i]);
}

static void let_go(struct node *n, const struct strm *s)
{
    for (int o = 0; o < n->n_out; o++) {
        struct arr *a = &n->out[o];
        a->keeps = a->buf && buf_is_only_held_by(a->buf, s->index);
        if (!a->keeps)
            buf_unref(&a->buf);
    }
}

/* Who made a buffer keeps it; views of it and what was written over it in place come later on the
 * tape and let go first. */
static void keep_storage(struct replay *r)
{
    for (size_t i = r->tape.n; i-- > 0;)
        if (!r->storage[i].stays)
            let_go(r->tape.node[i], r->strm);
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
        if (r->runs && !lies_as(in[i], r->in[i]))
            forget_steady(r);
    for (size_t i = 0; i < r->n_in; i++)
        put(r->in[i], &in[i], r->strm);
    for (size_t i = 0; i < r->n_moves && by; i++)
        move(&r->move[i], by);
    TRY(eval_again(&done, &(struct eval_run){ r->plan, r->tape.node, r->tape.n, r->notes }));
    for (; n < r->n_out; n++)
        TRY(take_result(&out[n], n < r->n_in ? &in[n] : NULL, r, r->out[n], done));
    TRY(find_steady(r));
    empty_places(r);
    keep_storage(r);
out:
    for (size_t i = 0; i < r->n_in; i++)
        arr_unref(&in[i]);
    while (err && n > 0)
        arr_unref(&out[--n]);
    ev_unref(&done);
    return err;
}
