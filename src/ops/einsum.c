/* Sums of products of arrays, by matrix products where something is summed over. */
#include "ops/einsum.h"
#include "base/text.h"

/* An operand, or the product of some. */
struct factor {
    struct arr *a; /* owned */
    struct einsum_term t;
};

static void add_label(struct einsum_term *t, int label)
{
    t->label[t->n++] = (uint8_t)label;
    t->set |= einsum_bit(label);
}

static int axis_of(const struct einsum_term *t, int label)
{
    for (int i = 0; i < t->n; i++)
        if (t->label[i] == label)
            return i;
    return -1;
}

/* Adds the labels of `from` that are in the set, in their order there. */
static void add_labels(struct einsum_term *t, const struct einsum_term *from, uint64_t set)
{
    for (int i = 0; i < from->n; i++)
        if (set & einsum_bit(from->label[i]))
            add_label(t, from->label[i]);
}

/* ---- one factor ---- */

/* Axes with the same label become their diagonal. */
static enum err collapse(struct factor *f, struct strm *s)
{
    enum err err = ERR_OK;

    for (int i = 0; i < f->t.n; i++)
        for (int j = i + 1; j < f->t.n; j++) {
            struct einsum_term t = { 0 };
            if (f->t.label[i] != f->t.label[j])
                continue;
            STEP(f->a, ops_diagonal(&next, f->a, &(struct ops_plane){ 0, i, j }, s));
            for (int k = 0; k < f->t.n; k++)
                if (k != i && k != j)
                    add_label(&t, f->t.label[k]);
            add_label(&t, f->t.label[i]);
            f->t = t;
            i = -1; /* the labels have moved */
            break;
        }
out:
    return err;
}

/* Sums over the axes whose labels are not in the set. */
static enum err sum_others(struct factor *f, uint64_t set, struct strm *s)
{
    struct axes_params sum = { 0 };
    struct einsum_term left = { 0 };
    enum err err = ERR_OK;

    for (int i = 0; i < f->t.n; i++)
        if (!(set & einsum_bit(f->t.label[i])))
            sum.axis[sum.n++] = i;
    if (!sum.n)
        return ERR_OK;
    struct ops_axes axes = { { sum.axis, (size_t)sum.n }, false };
    STEP(f->a, ops_reduce(&next, REDUCE_SUM, f->a, &axes, s));
    add_labels(&left, &f->t, set);
    f->t = left;
out:
    return err;
}

/* Axes of size 1 whose labels are in the set get the size that the label has elsewhere. */
static enum err stretch(struct factor *f, uint64_t set, const int32_t *size, struct strm *s)
{
    struct shp shape;
    enum err err;

    arr_shape(&shape, f->a);
    for (int i = 0; i < f->t.n; i++)
        if (set & einsum_bit(f->t.label[i]))
            shape.d[i] = size[f->t.label[i]];
    STEP(f->a, ops_stretch(&next, f->a, &shape, s));
out:
    return err;
}

/* An axis for each label of `to`, in that order; of size 1 where f has none. */
static enum err arrange(struct arr **out, const struct factor *f, const struct einsum_term *to,
                        struct strm *s)
{
    struct axes_params order = { 0 };
    struct shp shape = { .ndim = to->n };
    struct arr *x = NULL;
    enum err err;

    for (int i = 0; i < to->n; i++) {
        int axis = axis_of(&f->t, to->label[i]);
        shape.d[i] = axis < 0 ? 1 : f->a->shape[axis];
        if (axis >= 0)
            order.axis[order.n++] = axis;
    }
    TRY(ops_transpose(&x, f->a, (struct ints){ order.axis, (size_t)order.n }, s));
    TRY(ops_reshape(out, x, shp_ints(&shape), s));
out:
    arr_unref(&x);
    return err;
}

/* ---- two factors ---- */

static int count(uint64_t set)
{
    return __builtin_popcountll(set);
}

/* Which labels number matrices, and which make their rows and columns. */
struct matrix_form {
    struct einsum_term batch, rows, cols;
};
static enum err as_matrices(struct arr **out, const struct factor *f, const struct matrix_form *m,
                            struct strm *s)
{
    struct einsum_term all = m->batch;
    struct arr *x = NULL;
    struct shp to;
    enum err err;

    add_labels(&all, &m->rows, m->rows.set);
    add_labels(&all, &m->cols, m->cols.set);
    TRY(arrange(&x, f, &all, s));
    int n = m->batch.n;
    arr_shape(&to, x);
    TRY(ops_merged_dim(&to.d[n], x->shape + n, m->rows.n, "einsum"));
    TRY(ops_merged_dim(&to.d[n + 1], x->shape + n + m->rows.n, m->cols.n, "einsum"));
    to.ndim = n + 2;
    TRY(ops_reshape(out, x, shp_ints(&to), s));
out:
    arr_unref(&x);
    return err;
}

/* f = f times g, summed over the labels that both have and `keep` lacks, by matrix products. */
static enum err contract(struct factor *f, const struct factor *g, uint64_t keep, struct strm *s)
{
    uint64_t shared = f->t.set & g->t.set;
    struct matrix_form left = { 0 }, right = { 0 };
    struct factor product = { 0 };
    struct shp shape = { 0 };
    struct arr *y = NULL;
    enum err err;

    add_labels(&left.batch, &f->t, shared & keep);
    add_labels(&left.rows, &f->t, ~shared);
    add_labels(&left.cols, &f->t, shared & ~keep);
    right = (struct matrix_form){ .batch = left.batch, .rows = left.cols };
    add_labels(&right.cols, &g->t, ~shared);
    product.t = left.batch;
    add_labels(&product.t, &left.rows, left.rows.set);
    add_labels(&product.t, &right.cols, right.cols.set);
    for (int i = 0; i < product.t.n; i++) {
        int axis = axis_of(&f->t, product.t.label[i]);
        shape.d[shape.ndim++] =
            axis >= 0 ? f->a->shape[axis] : g->a->shape[axis_of(&g->t, product.t.label[i])];
    }
    TRY(as_matrices(&product.a, f, &left, s));
    TRY(as_matrices(&y, g, &right, s));
    STEP(product.a, ops_matmul(&next, product.a, y, s));
    STEP(product.a, ops_reshape(&next, product.a, shp_ints(&shape), s));
    arr_unref(&f->a);
    *f = product;
    product.a = NULL;
out:
    arr_unref(&product.a);
    arr_unref(&y);
    return err;
}

/* f = f times g, element by element. */
static enum err spread(struct factor *f, const struct factor *g, struct strm *s)
{
    struct factor product = { .t = f->t };
    struct arr *y = NULL;
    enum err err;

    add_labels(&product.t, &g->t, ~f->t.set);
    TRY(arrange(&product.a, f, &product.t, s));
    TRY(arrange(&y, g, &product.t, s));
    STEP(product.a, ops_binary(&next, OP_MULTIPLY, product.a, y, s));
    arr_unref(&f->a);
    *f = product;
    product.a = NULL;
out:
    arr_unref(&product.a);
    arr_unref(&y);
    return err;
}

/* f = f times g, of which labels outside of `keep` go away. */
static enum err multiply(struct factor *f, struct factor *g, uint64_t keep, const struct einsum *e,
                         struct strm *s)
{
    enum err err;

    TRY(sum_others(f, keep | g->t.set, s));
    TRY(sum_others(g, keep | f->t.set, s));
    uint64_t shared = f->t.set & g->t.set;
    if (count(f->t.set | g->t.set) > SHP_MAX - 2)
        err = err_set(ERR_ARG, "[einsum] A product has more than %d dimensions.", SHP_MAX - 2);
    TRY(err);
    TRY(stretch(f, shared, e->size, s));
    TRY(stretch(g, shared, e->size, s));
    TRY(shared & ~keep ? contract(f, g, keep, s) : spread(f, g, s));
out:
    return err;
}

/* ---- all of them ---- */

struct factors {
    struct factor *v; /* owned */
    size_t n;
};

static enum err factors_init(struct factors *fs, const struct einsum *e, struct arrs operands,
                             struct strm *s)
{
    enum err err = ERR_OK;

    *fs = (struct factors){ .v = mem_alloc_array(e->n, sizeof *fs->v) };
    if (!fs->v)
        return ERR_NO_MEMORY;
    for (; fs->n < e->n; fs->n++)
        fs->v[fs->n] = (struct factor){ arr_ref(operands.v[fs->n]), e->in[fs->n] };
    for (size_t i = 0; i < fs->n; i++)
        TRY(collapse(&fs->v[i], s));
out:
    return err;
}

static void factors_fini(struct factors *fs)
{
    for (size_t i = 0; i < fs->n; i++)
        arr_unref(&fs->v[i].a);
    mem_free(fs->v);
}

static void remove_factor(struct factors *fs, size_t at)
{
    memmove(&fs->v[at], &fs->v[at + 1], (fs->n - at - 1) * sizeof *fs->v);
    fs->n--;
}

/* The product of factors a < b takes their place at the end of the list. */
static enum err multiply_pair(struct factors *fs, size_t a, size_t b, const struct einsum *e,
                              struct strm *s)
{
    uint64_t keep = e->out.set;
    struct factor f;
    enum err err;

    for (size_t i = 0; i < fs->n; i++)
        if (i != a && i != b)
            keep |= fs->v[i].t.set;
    TRY(multiply(&fs->v[a], &fs->v[b], keep, e, s));
    arr_unref(&fs->v[b].a);
    f = fs->v[a];
    remove_factor(fs, b);
    remove_factor(fs, a);
    fs->v[fs->n++] = f;
out:
    return err;
}

static enum err take_step(struct factors *fs, struct einsum_step step, const struct einsum *e,
                          struct strm *s)
{
    enum err err = ERR_OK;

    if (step.b != EINSUM_ALL)
        return multiply_pair(fs, (size_t)step.a, (size_t)step.b, e, s);
    while (fs->n > 1)
        TRY(multiply_pair(fs, 0, 1, e, s));
out:
    return err;
}

enum err ops_einsum(struct arr **out, const char *subscripts, struct arrs operands, struct strm *s)
{
    struct einsum_path path = { 0 };
    struct factors fs = { 0 };
    struct einsum e;
    enum err err = einsum_parse(&e, subscripts, operands, "einsum");

    if (err)
        return err;
    TRY(einsum_path_find(&path, &e));
    TRY(factors_init(&fs, &e, operands, s));
    for (size_t i = 0; i < path.n; i++)
        TRY(take_step(&fs, path.step[i], &e, s));
    TRY(sum_others(&fs.v[0], e.out.set, s));
    TRY(arrange(out, &fs.v[0], &e.out, s));
out:
    factors_fini(&fs);
    einsum_path_fini(&path);
    einsum_fini(&e);
    return err;
}

/* ---- the path as a result of its own ---- */

/* Which operands are left at a step is all that EINSUM_ALL says. */
enum err ops_einsum_path(struct ops_einsum_path *out, const char *subscripts, struct arrs operands)
{
    struct einsum_path path = { 0 };
    struct text text = { 0 };
    size_t left = operands.n, n = 0;
    struct einsum e;
    enum err err = einsum_parse(&e, subscripts, operands, "einsum_path");

    if (err)
        return err;
    *out = (struct ops_einsum_path){ 0 };
    TRY(einsum_path_find(&path, &e));
    err = ERR_NO_MEMORY;
    out->at = mem_alloc_array(2 * operands.n, sizeof *out->at);
    out->count = mem_alloc_array(path.n, sizeof *out->count);
    if (!out->at || !out->count)
        goto out;
    for (out->n = 0; out->n < path.n; out->n++) {
        struct einsum_step step = path.step[out->n];
        bool is_pair = step.b != EINSUM_ALL;
        size_t taken = is_pair ? 2 : left;
        out->count[out->n] = (int32_t)taken;
        for (size_t i = 0; i < taken; i++)
            out->at[n++] = is_pair ? (i ? step.b : step.a) : (int32_t)i;
        left -= taken - 1;
    }
    out->n_at = n;
    TRY(text_add(&text,
                 "  Complete contraction:  %s\n         Naive scaling:  %d\n"
                 "     Optimized scaling:  %d\n      Naive FLOP count:  %.0f\n"
                 "  Optimized FLOP count:  %.0f\n",
                 subscripts, path.naive_scaling, path.scaling, path.naive_cost, path.cost));
    out->text = text.s.v;
    text = (struct text){ 0 };
out:
    if (err)
        ops_einsum_path_fini(out);
    VEC_FINI(&text.s);
    einsum_path_fini(&path);
    einsum_fini(&e);
    return err;
}

void ops_einsum_path_fini(struct ops_einsum_path *p)
{
    mem_free(p->at);
    mem_free(p->count);
    mem_free(p->text);
    *p = (struct ops_einsum_path){ 0 };
}
