/* Communication between processes, as tasks of the stream. */
#include "backend/common/families.h"
#include "backend/common/qmm_plan.h"
#include "backend/cpu/cpu.h"
#include "dist/comm.h"
#include "dist/dist_state.h"

struct task {
    struct cpu_src in;
    struct comm_call call; /* but for what is looked up when it runs; its group is owned */
    const struct strm *strm;
};

/* By the kernels of Add, Maximum and Minimum: dtypes, NaN and rounding are theirs. */
static void combine(enum comm_kind kind, enum dtype t, void *acc, const void *in, size_t n)
{
    static const uint16_t ops[] = {
        [COMM_SUM] = OP_ADD, [COMM_MAX] = OP_MAXIMUM, [COMM_MIN] = OP_MINIMUM
    };
    struct cpu_moves m = { .from = t, .to = t, .combine = ops[kind], .n = n };

    m.nest = (struct nest){ .ndim = 1,
                            .n_operands = BE_COPY_OPERANDS,
                            .dim = { (int64_t)n },
                            .stride = { [BE_COPY_SRC] = { 1 }, [BE_COPY_DST] = { 1 } } };
    cpu_move(&m, acc, in, (size_t[]){ 0, n });
}

static enum err run_task(void *payload)
{
    struct task *t = payload;
    const char *in = NULL;
    enum err err = t->in.buf ? cpu_src_host(&in, &t->in) : ERR_OK;

    /* The others wait for this process, whatever has become of it. */
    t->call.in = in;
    struct err_note original = { 0 };
    t->call.has_failed = err != ERR_OK || strm_has_failed(t->strm);
    err_note_take(&original, err);
    enum err done = comm_run(&t->call);
    dist_unref(&t->call.group);
    return err ? err_note_raise(&original) : done;
}

static enum comm_kind kind_of(const struct node *n)
{
    static const uint8_t reductions[] = {
        [ALL_REDUCE_SUM] = COMM_SUM, [ALL_REDUCE_MAX] = COMM_MAX, [ALL_REDUCE_MIN] = COMM_MIN
    };

    switch (n->op) {
    case OP_ALL_REDUCE:
        return (enum comm_kind)reductions[((const struct all_reduce_params *)n->params)->kind];
    case OP_ALL_GATHER:
        return COMM_GATHER;
    case OP_REDUCE_SCATTER:
        return COMM_SCATTER;
    case OP_SEND:
        return COMM_SEND;
    default:
        return COMM_RECV;
    }
}

static int peer_of(const struct node *n)
{
    if (n->op == OP_SEND)
        return ((const struct send_params *)n->params)->rank;
    return n->op == OP_RECV ? ((const struct recv_params *)n->params)->rank : 0;
}

static enum err give_storage(const struct exec *x, struct arr *in)
{
    struct arr *out = x->out[0];

    if (x->node->op == OP_SEND)
        arr_share_all(out, x->in[0]);
    else if (x->node->op == OP_ALL_REDUCE && arr_can_donate_to(in, out, x->strm))
        arr_share_all(out, in);
    else
        return arr_alloc(out, &be_cpu);
    return ERR_OK;
}

enum err cpu_dist(const struct exec *x)
{
    struct arr *in = x->n_in ? x->in[0] : NULL, *copy = NULL, *out = x->out[0];
    struct task t = { .call = { .kind = kind_of(x->node),
                                .dtype = (enum dtype)out->dtype,
                                .n = in ? in->size : out->size,
                                .peer = peer_of(x->node),
                                .combine = combine },
                      .strm = x->strm };
    enum err err = ERR_OK;

    if (in && !(in->flags & LAYOUT_ROW))
        TRY(qmm_dense(&in, &copy, x->strm));
    TRY(give_storage(x, in));
    if (in)
        t.in = cpu_src(in);
    if (x->node->op != OP_SEND)
        t.call.out = cpu_dst(out);
    t.call.group = dist_ref(dist_group_of(x->node->state));
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
    if (err)
        dist_unref(&t.call.group);
    /* What is sent is also the result, which nobody may want. */
    if (in && in->buf && !err)
        err = cpu_hold(x->strm, &in->buf, 1);
out:
    arr_unref(&copy);
    return err;
}
