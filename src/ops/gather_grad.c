/* Gradients of products of matrices that indices choose. */
#include "ops/gather_grad.h"

#include "ops/build.h"
#include "ops/index.h"
#include "ops/rules.h"

/* ---- lists of matrices ---- */

enum err chosen_count(int32_t *out, const struct arr *a)
{
    return ops_merged_dim(out, a->shape, a->ndim - 2, "gather");
}

/* All that is before the last two dimensions as one. */
static enum err as_list(struct arr **out, struct arr *a, struct strm *s)
{
    int32_t shape[3] = { 0, a->shape[a->ndim - 2], a->shape[a->ndim - 1] };
    enum err err;

    TRY(chosen_count(&shape[0], a));
    TRY(ops_reshape(out, a, (struct ints){ shape, 3 }, s));
out:
    return err;
}

enum err chosen_results(struct arr **t, struct arr **numbers, const struct chosen *c)
{
    struct arange_params all = { .stop = (double)c->left->size, .step = 1 };
    struct arr *n = NULL;
    enum err err;

    TRY(ops_arange(&n, &all, DT_UINT32, c->strm));
    STEP(n, ops_reshape(&next, n, shape_of(c->left), c->strm));
    TRY(as_list(t, c->t, c->strm));
    arr_move(numbers, &n);
out:
    arr_unref(&n);
    return err;
}

/* Adds matrix i of a list to matrix at[i] of n zeros. */
static enum err add_at(struct arr **out, struct arr *list, struct arr *at, int32_t n,
                       struct strm *s)
{
    static const int32_t first = 0, second = 1;
    int32_t shape[3] = { n, list->shape[1], list->shape[2] };
    struct arr *zeros = NULL, *numbers = NULL, *updates = NULL;
    enum err err;

    TRY(ops_fill(&zeros, (struct ints){ shape, 3 }, 0, dtype_of(list), s));
    TRY(ops_flatten(&numbers, at, 0, -1, s));
    TRY(ops_expand_dims(&updates, list, (struct ints){ &second, 1 }, s));
    err = ops_scatter(out, zeros,
                      &(struct ops_scatter){ .indices = { &numbers, 1 },
                                             .updates = updates,
                                             .axes = { &first, 1 },
                                             .kind = UPDATE_SUM },
                      s);
out:
    arr_unref(&zeros);
    arr_unref(&numbers);
    arr_unref(&updates);
    return err;
}

enum err chosen_sum(struct arr **out, struct arr *products, const struct chosen *c)
{
    struct arr *list = NULL;
    int32_t n;
    enum err err;

    TRY(chosen_count(&n, c->a));
    TRY(as_list(&list, products, c->strm));
    STEP(list, add_at(&next, list, c->left, n, c->strm));
    TRY(ops_reshape(out, list, shape_of(c->a), c->strm));
out:
    arr_unref(&list);
    return err;
}

/* ---- the factor ---- */

/* A product for each i, added up where they belong. */
static enum err by_products(struct arr **out, int32_t n, const struct chosen *c)
{
    struct gather_mm_params p = { 0 };
    struct arr *in[4] = { NULL, NULL, c->left, NULL }, *x = NULL;
    enum err err;

    TRY(chosen_results(&in[1], &in[3], c));
    TRY(as_list(&in[0], c->a, c->strm));
    STEP(in[0], ops_swapaxes(&next, in[0], -1, -2, c->strm));
    TRY(ops_make(&x, OP_GATHER_MM, &p, (struct arrs){ in, 4 }, c->strm));
    STEP(x, as_list(&next, x, c->strm));
    TRY(add_at(out, x, c->right, n, c->strm));
out:
    arr_unref(&in[0]);
    arr_unref(&in[1]);
    arr_unref(&in[3]);
    arr_unref(&x);
    return err;
}

/* The rows of all results for each matrix of the factor, zeros where they have another. */
static enum err rows_by_factor(struct arr **out, int32_t n, const struct chosen *c)
{
    static const int32_t behind[] = { 1, 2 }, before = 0;
    struct arange_params all = { .stop = n, .step = 1 };
    struct arr *is = NULL, *at = NULL, *t = NULL, *zero = NULL;
    enum err err;

    TRY(ops_arange(&is, &all, DT_UINT32, c->strm));
    STEP(is, ops_reshape(&next, is, (struct ints){ (int32_t[]){ n, 1, 1, 1 }, 4 }, c->strm));
    TRY(ops_flatten(&at, c->right, 0, -1, c->strm));
    STEP(at, ops_expand_dims(&next, at, (struct ints){ behind, 2 }, c->strm));
    STEP(is, ops_binary(&next, OP_EQUAL, is, at, c->strm));
    TRY(as_list(&t, c->t, c->strm));
    STEP(t, ops_expand_dims(&next, t, (struct ints){ &before, 1 }, c->strm));
    TRY(arr_new_number(&zero, 0, dtype_of(t)));
    STEP(t, ops_where(&next, is, t, zero, c->strm));
    TRY(ops_flatten(out, t, 1, 2, c->strm));
out:
    arr_unref(&is);
    arr_unref(&at);
    arr_unref(&t);
    arr_unref(&zero);
    return err;
}

/* One product for each matrix of the factor, over all rows. */
static enum err by_rows(struct arr **out, int32_t n, const struct chosen *c)
{
    struct arr *a = NULL, *at = NULL, *t = NULL;
    enum err err;

    TRY(as_list(&a, c->a, c->strm));
    TRY(ops_flatten(&at, c->left, 0, -1, c->strm));
    STEP(a, ops_take(&next, a, at, 0, c->strm));
    STEP(a, ops_flatten(&next, a, 0, 1, c->strm));
    STEP(a, ops_swapaxes(&next, a, -1, -2, c->strm));
    TRY(rows_by_factor(&t, n, c));
    TRY(ops_matmul(out, a, t, c->strm));
out:
    arr_unref(&a);
    arr_unref(&at);
    arr_unref(&t);
    return err;
}

/* By whichever way makes less on its way: a matrix for each result, or for each matrix all rows. */
enum err chosen_factor(struct arr **out, int32_t n, const struct chosen *c)
{
    const struct arr *a = c->a;
    int64_t rows = a->shape[a->ndim - 2], cols = a->shape[a->ndim - 1];

    return c->left->size && n * rows <= cols ? by_rows(out, n, c) : by_products(out, n, c);
}

/* ---- GatherMM ---- */

enum { A, B, LEFT, RIGHT };

static enum err vjp_a(struct arr **out, const struct vjp_call *c, const struct chosen *m)
{
    const struct gather_mm_params *from = c->f.params;
    struct gather_mm_params p = { .right_sorted = from->right_sorted };
    struct arr *in[4] = { NULL, NULL, NULL, m->right }, *x = NULL;
    enum err err;

    TRY(chosen_results(&in[0], &in[2], m));
    TRY(ops_swapaxes(&in[1], c->f.in[B], -1, -2, m->strm));
    TRY(ops_make(&x, OP_GATHER_MM, &p, (struct arrs){ in, 4 }, m->strm));
    TRY(chosen_sum(out, x, m));
out:
    arr_unref_all(in, 3);
    arr_unref(&x);
    return err;
}

static enum err vjp_b(struct arr **out, const struct vjp_call *c, const struct chosen *m)
{
    struct arr *x = NULL;
    int32_t n;
    enum err err;

    TRY(chosen_count(&n, c->f.in[B]));
    TRY(chosen_factor(&x, n, m));
    TRY(ops_reshape(out, x, shape_of(c->f.in[B]), m->strm));
out:
    arr_unref(&x);
    return err;
}

enum err op_vjp_gather_mm(struct vjp_call *c)
{
    struct chosen m = { c->f.in[A], c->cotan[0], c->f.in[LEFT], c->f.in[RIGHT], c->f.strm };
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++)
        if (c->wanted[done] == A)
            TRY(vjp_a(&c->result[done], c, &m));
        else if (c->wanted[done] == B)
            TRY(vjp_b(&c->result[done], c, &m));
        else
            TRY(index_no_rule(&c->f, "vjp", "indices"));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}
