/* Products and what follows on them element by element as one step. */
#include "backend/backend.h"
#include "backend/common/qmm_plan.h"
#include "backend/vulkan/ops/epilogue.h"
#include "backend/vulkan/ops/group.h"
#include "backend/vulkan/ops/matmul.h"
#include "backend/vulkan/ops/qmm.h"
#include "plan/rewrite.h"

static bool is_dense(const struct arr *a)
{
    return a->flags & LAYOUT_ROW;
}

static struct node *const *products_of(const struct group *g)
{
    return g->node + PRODUCT_FIRST;
}

static int count_products(const struct group *g)
{
    int n = 0;

    while (n < GROUP_MAX_PRODUCTS && products_of(g)[n])
        n++;
    return n;
}

/* The group on its way to the device. */
struct step {
    const struct exec *x;
    const struct group *g;
    int n;                       /* products */
    struct vk_epilogue epilogue; /* if the group has a program */
    struct vk_qmv v;
    struct qmm_plan plan; /* of a gather */
};

/* ---- packed matrices and few rows: one dispatch ---- */

static void fill_set(struct vk_qmv_set *s, const struct node *n, bool is_affine)
{
    const struct arr *w = n->in[1];

    *s = (struct vk_qmv_set){ .w = w,
                              .scales = n->in[2],
                              .biases = is_affine ? n->in[3] : NULL,
                              .out = &n->out[0],
                              .n = w->ndim > 1 ? w->shape[w->ndim - 2] : 0 };
}

static void make_qmv(struct step *s)
{
    struct node *const *product = products_of(s->g);
    const struct node *norm = s->g->node[PRODUCT_NORM];
    const struct quantized_matmul_params *p = product[0]->params;
    const struct arr *x = norm ? norm->in[0] : product[0]->in[0];

    s->v = (struct vk_qmv){ .q = p->q, .x = x, .k = x->shape[x->ndim - 1], .n_sets = s->n };
    s->v.m = s->v.k ? (int64_t)x->size / s->v.k : 0;
    s->v.ld = s->v.k;
    for (int i = 0; i < s->n; i++)
        fill_set(&s->v.set[i], product[i], p->q.mode == QUANT_AFFINE);
    if (norm) {
        const struct norm_params *np = norm->params;
        s->v.norm = np->has_weight ? norm->in[1] : NULL;
        s->v.norm_bias = np->has_weight && np->has_bias ? norm->in[2] : NULL;
        s->v.is_centred = norm->op == OP_LAYER_NORM;
        s->v.eps = np->eps;
    }
    if (s->g->program) {
        s->v.set[0].out = s->x->out[0];
        s->v.epilogue = &s->epilogue;
    }
}

/* Nothing of a gather has to be copied, so that its plan encodes nothing. */
static bool is_plain_gather(const struct step *s)
{
    const struct node *first = products_of(s->g)[0];
    bool plain = s->v.k > 0;

    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < first->n_in; k++)
            plain &= is_dense(products_of(s->g)[i]->in[k]);
    for (int i = 1; i < s->n; i++)
        plain &= arr_same_shape(products_of(s->g)[i]->in[1], first->in[1]);
    return plain;
}

/* A gather takes matrices by number: the plan of its first product is that of all. */
static enum err plan_gather(struct step *s)
{
    struct arr *out;
    struct exec first = vk_group_exec(s->x, products_of(s->g)[0], &out);
    enum err err = qmm_plan_init(&s->plan, &first);

    s->v.plan = &s->plan;
    s->v.m = s->plan.m;
    s->v.ld = s->plan.ld;
    return err;
}

static enum group_reason judge_matrices(const struct step *s, bool is_gather)
{
    const struct vk_qmv *v = &s->v;

    for (int i = 0; i < v->n_sets; i++) {
        const struct vk_qmv_set *set = &v->set[i];
        if ((!is_gather && set->w->ndim != 2) || !is_dense(set->w) || !is_dense(set->scales) ||
            (set->biases && !is_dense(set->biases)))
            return GROUP_LAYOUT;
        if (v->epilogue && set->n != v->set[0].n)
            return GROUP_SIZE;
    }
    return GROUP_TAKEN;
}

/* What x is to be like, normed or not. */
static enum group_reason judge_x(const struct step *s)
{
    const struct node *first = products_of(s->g)[0];
    const struct vk_qmv *v = &s->v;

    if (!is_dense(v->x) || (s->g->node[PRODUCT_NORM] && !v->norm) ||
        (v->norm && v->norm->strides[0] != 1) || (v->norm_bias && v->norm_bias->strides[0] != 1))
        return GROUP_LAYOUT;
    if (v->x->dtype != first->out[0].dtype || (v->norm && v->norm->dtype != v->x->dtype) ||
        (v->norm_bias && v->norm_bias->dtype != v->x->dtype))
        return GROUP_DTYPE;
    return GROUP_TAKEN;
}

static enum group_reason judge_qmv(struct step *s)
{
    const struct node *first = products_of(s->g)[0];
    const struct quantized_matmul_params *p = first->params;
    bool is_gather = first->op == OP_GATHER_QMM;
    enum group_reason why = judge_matrices(s, is_gather);

    if (why != GROUP_TAKEN)
        return why;
    if (!p->transpose || (is_gather && !is_plain_gather(s)))
        return GROUP_LAYOUT;
    if (is_gather && plan_gather(s) != ERR_OK)
        return GROUP_SIZE;
    return vk_qmv_fits(&s->v) ? GROUP_TAKEN : GROUP_SIZE;
}

static enum err run_together(const struct step *s)
{
    struct vk_enc *e;
    bool gave_way;
    enum err err = ERR_OK;

    for (int i = 0; i < s->x->n_out; i++)
        TRY(arr_alloc(s->x->out[i], s->x->strm->be));
    TRY(vk_enc_get(&e, s->x->strm));
    err = vk_qmv_encode(e, &s->v, &gave_way);
    if (err && gave_way)
        err = ERR_UNSUPPORTED; /* nothing is encoded: the nodes run one by one */
out:
    return err;
}

/* ---- the program behind one product, what is in front of it node by node ---- */

/* Tiles of many rows read a side input that has as many rows element by element: on an H200 a
 * prompt of 512 tokens was an eighth slower for it than with a step of its own. */
#define MOST_ROWS_OF_SIDES 16

/* Of two products the second is a side input of the program behind the first. */
static enum group_reason judge_apart(const struct step *s)
{
    const struct arr *out = s->x->out[0];
    int32_t rows = out->ndim > 1 ? out->shape[out->ndim - 2] : 1;
    bool has_rows = s->n == 2;

    for (int i = 0; i < s->epilogue.n_sides; i++)
        has_rows |= s->epilogue.c.side[i] == EPILOGUE_STRIDED;
    if (has_rows && rows > MOST_ROWS_OF_SIDES)
        return GROUP_SIZE;
    return s->n == 2 && s->epilogue.n_sides == EPILOGUE_SIDES ? GROUP_SIZE : GROUP_TAKEN;
}

static enum err run_first(const struct step *s)
{
    const struct node *first = products_of(s->g)[0];
    struct arr *side[EPILOGUE_SIDES], *out;
    struct exec x = vk_group_exec(s->x, first, &out);
    struct vk_epilogue epilogue;
    int n = 0;

    out = s->x->out[0];
    if (s->n == 2)
        side[n++] = &products_of(s->g)[1]->out[0];
    for (int i = 0; i < s->epilogue.n_sides; i++)
        side[n++] = s->x->in[i];
    if (vk_epilogue_init(&epilogue, s->g->program, 1, side, out) != GROUP_TAKEN)
        return err_set(ERR_RUNTIME, "[%s] The second product lies otherwise than it should.",
                       op_name((enum op_id)first->op));
    return op_table[first->op].family == OP_FAMILY_MATMUL ? vk_matmul_with(&x, &epilogue)
                                                          : vk_quantized_matmul_with(&x, &epilogue);
}

/* What is left once the norm has run. */
static enum err run_products(const struct step *s)
{
    enum err err = ERR_OK;

    for (int i = s->g->program ? 1 : 0; i < s->n; i++)
        TRY(vk_group_run(s->x, PRODUCT_FIRST + i));
    if (s->g->program)
        TRY(run_first(s));
    for (int i = 0; i < s->n; i++)
        TRY(vk_group_hold(s->x, PRODUCT_FIRST + i));
out:
    return err;
}

static void count_norm(const struct step *s, enum group_reason why)
{
    if (!s->g->node[PRODUCT_NORM])
        return;
    *s->g->apart |= 1u << REWRITE_QMM_NORM;
    rewrite_count(1u << REWRITE_QMM_NORM, why);
}

/* The norm, then the products: all in one dispatch where `together`, unless its kernel cannot be
 * built. Where this fails the nodes alone would, too. */
static enum err run_after_norm(const struct step *s, bool together)
{
    enum err err;

    TRY(vk_group_run(s->x, PRODUCT_NORM));
    if (together && (err = run_together(s)) == ERR_UNSUPPORTED) {
        for (int i = 0; i < s->x->n_out; i++)
            arr_give_back(s->x->out[i]);
        together = false;
    }
    if (!together)
        err = run_products(s);
    if (!err)
        err = vk_group_hold(s->x, PRODUCT_NORM);
out:
    return err == ERR_UNSUPPORTED ? ERR_RUNTIME : err;
}

/* The norm of more or longer rows than the kernel holds is not its own. */
static bool fits_after_norm(struct step *s)
{
    const struct node *norm = s->g->node[PRODUCT_NORM];

    if (!norm)
        return false;
    s->v.x = &norm->out[0];
    s->v.norm = s->v.norm_bias = NULL;
    s->v.is_centred = false;
    return judge_qmv(s) == GROUP_TAKEN;
}

/* ---- */

static enum group_reason judge_program(struct step *s)
{
    const struct arr *out = s->x->out[0];

    for (int i = 0; i < s->n; i++)
        if (!arr_same_shape(&products_of(s->g)[i]->out[0], out))
            return GROUP_SIZE;
    return vk_epilogue_init(&s->epilogue, s->g->program, s->n, s->x->in, out);
}

/* One dispatch for all of the group, or for all but the norm; or one for each product, the program
 * behind the last of them. */
static enum err run(struct step *s, enum group_reason *why)
{
    bool is_packed = op_table[products_of(s->g)[0]->op].family == OP_FAMILY_QUANTIZED_MATMUL;
    enum group_reason together = GROUP_OFF;
    bool rest = false;

    if (s->g->program && (*why = judge_program(s)) != GROUP_TAKEN)
        return ERR_OK;
    if (is_packed) {
        make_qmv(s);
        together = judge_x(s);
        if (together == GROUP_TAKEN)
            together = judge_qmv(s);
        if (together == GROUP_TAKEN)
            return run_together(s);
        rest = together == GROUP_SIZE && fits_after_norm(s);
    }
    *why = rest ? GROUP_TAKEN : s->g->program ? judge_apart(s) : together;
    if (*why != GROUP_TAKEN)
        return ERR_OK;
    count_norm(s, together);
    return run_after_norm(s, rest);
}

enum err vk_group_product(const struct exec *x, enum group_reason *why)
{
    struct step s = { .x = x, .g = x->group, .n = count_products(x->group) };
    enum err err = run(&s, why);

    qmm_plan_fini(&s.plan);
    return err;
}
