/* Matrix products. */
#include "graph/tracing.h"
#include "ops/build.h"
#include "ops/rules.h"

static int32_t dim_from_end(const struct arr *a, int i)
{
    return a->shape[a->ndim - i];
}

/* ---- what the results are ---- */

/* Matrices of one dtype, kind and inner dimension. */
static bool are_factors(const struct arr *a, const struct arr *b)
{
    return a->dtype == b->dtype && dt_is_inexact(dtype_of(a)) && a->ndim >= 2 && b->ndim >= 2 &&
           dim_from_end(a, 1) == dim_from_end(b, 2);
}

/* Matmul and AddMM. */
enum err op_infer_matmul(struct infer_call *c)
{
    const struct arr *a = c->in[0], *b = c->in[1];
    struct shp *shape = &c->out[0].shape;

    FITS(are_factors(a, b) && a->ndim == b->ndim);
    FITS(shp_same_dims(a->shape, b->shape, a->ndim - 2));
    infer_like(c, a);
    shape->d[shape->ndim - 1] = dim_from_end(b, 1);
    if (c->op != OP_ADDMM)
        return ERR_OK;
    const struct arr *add = c->in[2];
    FITS(add->dtype == a->dtype && a->dtype != DT_COMPLEX64);
    FITS(add->ndim == shape->ndim && shp_same_dims(add->shape, shape->d, shape->ndim));
    return ERR_OK;
}

static bool has_matrices(const struct arr *a)
{
    for (int i = 0; i < a->ndim - 2; i++)
        if (a->shape[i] == 0)
            return false;
    return true;
}

/* The shape of the numbers of matrices, then that of a product. */
enum err op_infer_gather_mm(struct infer_call *c)
{
    const struct arr *a = c->in[0], *b = c->in[1], *left = c->in[2], *right = c->in[3];
    struct shp *shape = &c->out[0].shape;

    FITS(are_factors(a, b) && dt_is_float(dtype_of(a)));
    FITS(left->dtype == DT_UINT32 && right->dtype == DT_UINT32 && arr_same_shape(left, right));
    FITS(a->ndim - 2 + b->ndim - 2 <= SHP_MAX);
    if (left->ndim + 2 > SHP_MAX)
        return err_set(ERR_ARG, "[gather_mm] Arrays have at most %d dimensions.", SHP_MAX);
    if (left->size && !(has_matrices(a) && has_matrices(b)))
        return err_set(ERR_ARG, "[gather_mm] Indices into an empty array.");
    infer_like(c, left);
    c->out[0].dtype = dtype_of(a);
    shape->d[shape->ndim++] = dim_from_end(a, 2);
    shape->d[shape->ndim++] = dim_from_end(b, 1);
    return ERR_OK;
}

/* ---- products ---- */

/* Operands of a product as matrices: a vector on the left is a row, on the right a column. */
struct operands {
    struct arr *a, *b;
    bool a_is_vector, b_is_vector;
};

static void operands_fini(struct operands *m)
{
    arr_unref(&m->a);
    arr_unref(&m->b);
}

static enum err operands_init(struct operands *m, struct arr *a, struct arr *b, const char *op,
                              struct strm *s)
{
    struct shp sa, sb;
    enum err err;

    *m = (struct operands){ .a_is_vector = a->ndim == 1, .b_is_vector = b->ndim == 1 };
    if (a->ndim == 0 || b->ndim == 0)
        return err_set(ERR_ARG,
                       "[%s] Got 0 dimension input. Inputs must have at least one "
                       "dimension.",
                       op);
    TRY(ops_expand_dims(&m->a, a, (struct ints){ (int32_t[]){ 0 }, m->a_is_vector }, s));
    TRY(ops_expand_dims(&m->b, b, (struct ints){ (int32_t[]){ 1 }, m->b_is_vector }, s));
    if (dim_from_end(m->a, 1) == dim_from_end(m->b, 2))
        return ERR_OK;
    arr_shape(&sa, m->a);
    arr_shape(&sb, m->b);
    err = err_set(ERR_ARG,
                  "[%s] Last dimension of first input with shape %s must match second to "
                  "last dimension of second input with shape %s.",
                  op, shp_text(&sa), shp_text(&sb));
out:
    operands_fini(m);
    return err;
}

static enum err operands_cast(struct operands *m, enum dtype t, struct strm *s)
{
    enum err err;

    STEP(m->a, ops_astype(&next, m->a, t, s));
    STEP(m->b, ops_astype(&next, m->b, t, s));
out:
    return err;
}

static void set_matrix(struct shp *shape, const struct arr *a)
{
    shape->d[shape->ndim - 2] = dim_from_end(a, 2);
    shape->d[shape->ndim - 1] = dim_from_end(a, 1);
}

/* Broadcasts everything before the last two dimensions. */
static enum err broadcast_batches(struct operands *m, struct strm *s)
{
    struct arr *other = m->b;
    struct ops_stretch to = { .with = { &other, 1 }, .own = 2 };
    struct shp a, b;
    enum err err;

    arr_shape(&a, m->a);
    arr_shape(&b, m->b);
    a.ndim -= 2;
    b.ndim -= 2;
    TRY(shp_broadcast(&to.shape, &a, &b, "broadcast_shapes"));
    to.shape.ndim += 2;
    set_matrix(&to.shape, m->a);
    STEP(m->a, ops_stretch_with(&next, m->a, &to, s));
    other = m->a;
    set_matrix(&to.shape, m->b);
    STEP(m->b, ops_stretch_with(&next, m->b, &to, s));
out:
    return err;
}

/* Shape of the product of matrices whose batches agree. */
static void product_shape(struct shp *out, const struct operands *m)
{
    arr_shape(out, m->a);
    out->d[out->ndim - 1] = dim_from_end(m->b, 1);
}

/* Drops the dimensions that vectors got. */
static enum err drop_vector_dims(struct arr **out, struct arr *x, const struct operands *m,
                                 struct strm *s)
{
    int32_t axes[2];
    size_t n = 0;

    if (m->a_is_vector)
        axes[n++] = -2;
    if (m->b_is_vector)
        axes[n++] = -1;
    return ops_squeeze(out, x, (struct ints){ axes, n }, s);
}

enum err ops_matmul(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    bool flatten = a->ndim > 2 && b->ndim <= 2 && !tracing_is_dynamic();
    struct operands m;
    struct arr *x = NULL;
    enum err err = operands_init(&m, a, b, "matmul", s);

    if (err)
        return err;
    if (!dt_is_inexact(t))
        TRY(err_set(ERR_ARG,
                    "[matmul] Only inexact types are supported but %s and %s were "
                    "provided which results in %s, which is not a floating point type.",
                    dt_name(dtype_of(a)), dt_name(dtype_of(b)), dt_name(t)));
    TRY(operands_cast(&m, t, s));
    if (flatten) /* one big product instead of a batch with the same right side */
        STEP(m.a, ops_flatten(&next, m.a, 0, -2, s));
    else
        TRY(broadcast_batches(&m, s));
    TRY(ops_make(&x, OP_MATMUL, NULL, (struct arrs){ (struct arr *[]){ m.a, m.b }, 2 }, s));
    if (flatten)
        STEP(x, ops_unflatten(&next, x, 0, (struct ints){ a->shape, a->ndim - 1u }, s));
    TRY(drop_vector_dims(out, x, &m, s));
out:
    operands_fini(&m);
    arr_unref(&x);
    return err;
}

/* ---- alpha * a @ b + beta * c ---- */

static enum err addmm_by_parts(struct arr **out, const struct ops_addmm *in, struct strm *s)
{
    struct arr *x = NULL, *c = NULL, *v = NULL;
    enum err err;

    TRY(ops_matmul(&x, in->a, in->b, s));
    TRY(arr_new_number(&v, in->alpha, DT_FLOAT32));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, v, s));
    STEP(v, arr_new_number(&next, in->beta, DT_FLOAT32));
    TRY(ops_binary(&c, OP_MULTIPLY, v, in->c, s));
    TRY(ops_binary(out, OP_ADD, x, c, s));
out:
    arr_unref(&x);
    arr_unref(&c);
    arr_unref(&v);
    return err;
}

/* The shape that c broadcasts to: the product's without the dimensions that vectors got. */
static void addend_shape(struct shp *out, const struct shp *product, const struct operands *m)
{
    *out = *product;
    if (m->b_is_vector)
        out->ndim--;
    if (m->a_is_vector) {
        if (!m->b_is_vector)
            out->d[out->ndim - 2] = out->d[out->ndim - 1];
        out->ndim--;
    }
}

/* Whether c has all columns of the product of matrices, so that only its rows are those of a. */
static bool has_columns(const struct arr *c, const struct operands *m)
{
    return !m->a_is_vector && !m->b_is_vector && c->ndim > 0 &&
           dim_from_end(c, 1) == dim_from_end(m->b, 1);
}

/* c as the third operand, of the product's full shape. */
static enum err addend(struct arr **out, struct arr *c, const struct shp *product,
                       const struct operands *m, struct strm *s)
{
    struct arr *a = m->a;
    struct ops_stretch to = { .with = { &a, 1 }, .own = 1 };
    struct arr *x = NULL;
    enum err err;

    addend_shape(&to.shape, product, m);
    TRY(ops_astype(&x, c, dtype_of(m->a), s));
    if (tracing_is_dynamic() && has_columns(c, m))
        STEP(x, ops_stretch_with(&next, x, &to, s));
    else
        STEP(x, ops_broadcast_to(&next, x, shp_ints(&to.shape), s));
    TRY(ops_reshape(out, x, shp_ints(product), s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_addmm(struct arr **out, const struct ops_addmm *in, struct strm *s)
{
    enum dtype ab = dt_promote(dtype_of(in->a), dtype_of(in->b));
    enum dtype t = dt_promote(ab, dtype_of(in->c));
    struct addmm_params p = { in->alpha, in->beta };
    /* As in matmul, where c does not stretch over the rows that are merged. */
    bool flatten =
        in->a->ndim > 2 && in->b->ndim <= 2 && in->c->ndim < in->b->ndim && !tracing_is_dynamic();
    struct arr *c = NULL, *x = NULL;
    struct shp product;
    struct operands m;
    enum err err = operands_init(&m, in->a, in->b, "addmm", s);

    if (err)
        return err;
    if (t == DT_COMPLEX64) {
        err = addmm_by_parts(out, in, s);
        goto out;
    }
    if (!dt_is_float(t))
        TRY(err_set(ERR_ARG,
                    "[addmm] Only real floating point types are supported but %s, %s and "
                    "%s were provided which results in %s.",
                    dt_name(dtype_of(in->c)), dt_name(dtype_of(in->a)), dt_name(dtype_of(in->b)),
                    dt_name(t)));
    TRY(operands_cast(&m, t, s));
    if (flatten)
        STEP(m.a, ops_flatten(&next, m.a, 0, -2, s));
    else
        TRY(broadcast_batches(&m, s));
    product_shape(&product, &m);
    TRY(addend(&c, in->c, &product, &m, s));
    TRY(ops_make(&x, OP_ADDMM, &p, (struct arrs){ (struct arr *[]){ m.a, m.b, c }, 3 }, s));
    if (flatten)
        STEP(x, ops_unflatten(&next, x, 0, (struct ints){ in->a->shape, in->a->ndim - 1u }, s));
    TRY(drop_vector_dims(out, x, &m, s));
out:
    operands_fini(&m);
    arr_unref(&c);
    arr_unref(&x);
    return err;
}

/* ---- products of matrices that indices choose ---- */

enum err ops_matrix_numbers(struct arr **out, struct arr *indices, const struct arr *a,
                            const char *op, struct strm *s)
{
    struct shp batch;
    struct arr *x = NULL;
    int32_t total;
    enum err err;

    arr_shape(&batch, a);
    if (a->ndim < 2)
        return err_set(ERR_ARG,
                       "[%s] Input must have at least two dimensions but got input with shape %s.",
                       op, shp_text(&batch));
    if (indices && !dt_is_integer(dtype_of(indices)))
        return err_set(ERR_ARG, "[%s] Got indices with invalid dtype. Indices must be integral.",
                       op);
    if (indices)
        return ops_astype(out, indices, DT_UINT32, s);
    batch.ndim -= 2;
    TRY(ops_merged_dim(&total, batch.d, batch.ndim, "gather"));
    TRY(ops_arange(&x, &(struct arange_params){ 0, total, 1 }, DT_UINT32, s));
    TRY(ops_reshape(out, x, shp_ints(&batch), s));
out:
    arr_unref(&x);
    return err;
}

/* A plan has room for SHP_MAX batch dimensions of both operands. */
static enum err few_dims(struct operands *m, struct strm *s)
{
    enum err err = ERR_OK;

    if (m->a->ndim - 2 + m->b->ndim - 2 > SHP_MAX) {
        STEP(m->a, ops_flatten(&next, m->a, 0, MAX(m->a->ndim - 3, 0), s));
        STEP(m->b, ops_flatten(&next, m->b, 0, MAX(m->b->ndim - 3, 0), s));
    }
out:
    return err;
}

static enum err gather_node(struct arr **out, struct operands *m, const struct ops_gather_mm *g,
                            struct strm *s)
{
    struct gather_mm_params p = { g->sorted && !g->rhs_indices, g->sorted && !g->lhs_indices };
    struct arr *numbers[2] = { NULL, NULL }, *in[4] = { NULL };
    enum err err;

    TRY(ops_matrix_numbers(&numbers[0], g->lhs_indices, m->a, "gather_mm", s));
    TRY(ops_matrix_numbers(&numbers[1], g->rhs_indices, m->b, "gather_mm", s));
    TRY(ops_align(in + 2, numbers, DT_UINT32, s));
    TRY(few_dims(m, s));
    in[0] = m->a;
    in[1] = m->b;
    TRY(ops_make(out, OP_GATHER_MM, &p, (struct arrs){ in, 4 }, s));
out:
    arr_unref_all(numbers, 2);
    arr_unref_all(in + 2, 2);
    return err;
}

enum err ops_gather_mm(struct arr **out, struct arr *a, struct arr *b,
                       const struct ops_gather_mm *g, struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    struct operands m;
    struct arr *x = NULL;
    enum err err;

    if (!g->lhs_indices && !g->rhs_indices)
        return ops_matmul(out, a, b, s);
    if ((err = operands_init(&m, a, b, "gather_mm", s)))
        return err;
    if (!dt_is_float(t))
        TRY(err_set(ERR_ARG,
                    "[gather_mm] Only real floating point types are supported but %s and %s were "
                    "provided which results in %s, which is not a real floating point type.",
                    dt_name(dtype_of(a)), dt_name(dtype_of(b)), dt_name(t)));
    TRY(operands_cast(&m, t, s));
    TRY(gather_node(&x, &m, g, s));
    TRY(drop_vector_dims(out, x, &m, s));
out:
    operands_fini(&m);
    arr_unref(&x);
    return err;
}

/* ---- sums of products over chosen axes ---- */

/* The axes that are not in sum, ascending. */
static void other_axes(struct axes_params *rest, const struct axes_params *sum, int ndim)
{
    bool is_summed[SHP_MAX] = { false };

    for (int i = 0; i < sum->n; i++)
        is_summed[sum->axis[i]] = true;
    rest->n = 0;
    for (int i = 0; i < ndim; i++)
        if (!is_summed[i])
            rest->axis[rest->n++] = i;
}

/* a with some axes merged into its first dimension and all others into its second. */
static enum err as_matrix(struct arr **out, struct arr *a, const struct axes_params *rows,
                          const struct axes_params *cols, struct strm *s)
{
    int32_t order[SHP_MAX], shape[2];
    struct arr *x = NULL;
    enum err err;

    memcpy(order, rows->axis, (size_t)rows->n * sizeof order[0]);
    memcpy(order + rows->n, cols->axis, (size_t)cols->n * sizeof order[0]);
    TRY(ops_transpose(&x, a, (struct ints){ order, a->ndim }, s));
    TRY(ops_merged_dim(&shape[0], x->shape, rows->n, "tensordot"));
    TRY(ops_merged_dim(&shape[1], x->shape + rows->n, cols->n, "tensordot"));
    TRY(ops_reshape(out, x, (struct ints){ shape, 2 }, s));
out:
    arr_unref(&x);
    return err;
}

static enum err tensordot_axes(struct axes_params sum[2], const struct ops_tensordot *t)
{
    enum err err;

    if (t->axes_a.n != t->axes_b.n)
        return err_set(ERR_ARG, "[tensordot] axes must have the same size.");
    TRY(ops_axis_list(&sum[0], t->axes_a, t->a->ndim, "tensordot"));
    TRY(ops_axis_list(&sum[1], t->axes_b, t->b->ndim, "tensordot"));
    for (int i = 0; i < sum[0].n; i++)
        if (t->a->shape[sum[0].axis[i]] != t->b->shape[sum[1].axis[i]])
            return err_set(ERR_ARG, "[tensordot] a and b must have the same shape on the "
                                    "contracted axes.");
out:
    return err;
}

enum err ops_tensordot(struct arr **out, const struct ops_tensordot *t, struct strm *s)
{
    struct axes_params sum[2], rest[2];
    struct shp to = { 0 };
    struct arr *x = NULL, *y = NULL;
    enum err err;

    TRY(tensordot_axes(sum, t));
    other_axes(&rest[0], &sum[0], t->a->ndim);
    other_axes(&rest[1], &sum[1], t->b->ndim);
    if (rest[0].n + rest[1].n > SHP_MAX)
        return err_set(ERR_ARG, "[tensordot] Arrays have at most %d dimensions.", SHP_MAX);
    for (int i = 0; i < rest[0].n; i++)
        to.d[to.ndim++] = t->a->shape[rest[0].axis[i]];
    for (int i = 0; i < rest[1].n; i++)
        to.d[to.ndim++] = t->b->shape[rest[1].axis[i]];
    TRY(as_matrix(&x, t->a, &rest[0], &sum[0], s));
    TRY(as_matrix(&y, t->b, &sum[1], &rest[1], s));
    STEP(x, ops_matmul(&next, x, y, s));
    TRY(ops_reshape(out, x, shp_ints(&to), s));
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

enum err ops_tensordot_axis(struct arr **out, struct arr *a, struct arr *b, int n, struct strm *s)
{
    int32_t axes[2][SHP_MAX];

    if (n < 0)
        return err_set(ERR_ARG, "[tensordot] axis must be greater or equal to 0.");
    if (n > MIN(a->ndim, b->ndim))
        return err_set(ERR_ARG, "[tensordot] axis must be less than the number of dimensions of a "
                                "and b.");
    for (int i = 0; i < n; i++) {
        axes[0][i] = i - n;
        axes[1][i] = i;
    }
    return ops_tensordot(
        out, &(struct ops_tensordot){ a, b, { axes[0], (size_t)n }, { axes[1], (size_t)n } }, s);
}

enum err ops_inner(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    struct ints last = { (int32_t[]){ -1 }, 1 };

    if (a->ndim == 0 || b->ndim == 0)
        return ops_binary(out, OP_MULTIPLY, a, b, s);
    if (dim_from_end(a, 1) != dim_from_end(b, 1))
        return err_set(ERR_ARG, "[inner] a and b must have the same last dimension.");
    return ops_tensordot(out, &(struct ops_tensordot){ a, b, last, last }, s);
}

enum err ops_outer(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    int32_t column[2] = { 0, 1 };
    struct arr *x = NULL, *y = NULL;
    enum err err;

    TRY(ops_dim(&column[0], (int64_t)a->size, "outer"));
    TRY(ops_reshape(&x, a, (struct ints){ column, 2 }, s));
    TRY(ops_flatten(&y, b, 0, -1, s));
    TRY(ops_binary(out, OP_MULTIPLY, x, y, s));
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}
