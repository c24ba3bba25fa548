#include "backend/common/elementwise.h"

#include "backend/common/families.h"

static bool is_dense(const struct arr *a, unsigned order)
{
    return (a->flags & order) && a->data_size == a->size;
}

static bool same_strides(const struct arr *a, const struct arr *b)
{
    if (a->data_size != b->data_size)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

/* Walking both from the first byte of their span visits the same logical elements. */
static bool same_walk(const struct arr *a, const struct arr *b)
{
    return (is_dense(a, LAYOUT_ROW) && is_dense(b, LAYOUT_ROW)) ||
           (is_dense(a, LAYOUT_COL) && is_dense(b, LAYOUT_COL)) || same_strides(a, b);
}

static void classify(struct elem_walk *w, const struct exec *x)
{
    const struct arr *first = NULL; /* the first input of more than one element */
    bool flat = true;

    w->scalar_in = 0;
    for (int i = 0; i < x->n_in; i++) {
        const struct arr *a = x->in[i];
        if (a->data_size == 1) {
            w->scalar_in |= 1u << i;
            continue;
        }
        first = first ? first : a;
        flat = flat && (a->flags & LAYOUT_CONTIGUOUS) && (a == first || same_walk(a, first));
    }
    w->kind = !first ? ELEM_SCALAR : flat ? ELEM_VECTOR : ELEM_STRIDED;
    w->layout = w->kind == ELEM_STRIDED ? NULL : first ? first : x->in[0];
    w->n = w->layout ? w->layout->data_size : x->out[0]->size;
}

static void make_nest(struct elem_walk *w, const struct exec *x)
{
    const int64_t *strides[ELEM_PROGRAM_MAX_IN];
    struct shp s;

    for (int i = 0; i < x->n_in; i++)
        strides[i] = x->in[i]->strides;
    arr_shape(&s, x->out[0]);
    shp_collapse(&w->nest, &s, strides, x->n_in);
}

/* Every element is read before it is written by the same step of the walk, so an input whose
 * elements lie where the output's belong can be overwritten. */
static bool fits_in_place(const struct elem_walk *w, const struct arr *a)
{
    switch (w->kind) {
    case ELEM_VECTOR:
        return a->data_size == w->n;
    case ELEM_STRIDED:
        return is_dense(a, LAYOUT_ROW);
    default:
        return false;
    }
}

static enum err give_storage(const struct elem_walk *w, const struct exec *x, struct arr *out,
                             const struct be *home)
{
    for (int i = 0; i < x->n_in; i++)
        /* A buffer given to an earlier output has two owners by now and is refused. */
        if (fits_in_place(w, x->in[i]) && arr_can_donate_to(x->in[i], out, x->strm)) {
            arr_share_all(out, x->in[i]);
            return ERR_OK;
        }
    return w->layout ? arr_alloc_like(out, w->layout, home) : arr_alloc(out, home);
}

enum err elem_prepare(struct elem_walk *w, const struct exec *x, const struct be *home)
{
    enum err err = ERR_OK;

    classify(w, x);
    if (w->kind == ELEM_STRIDED)
        make_nest(w, x);
    for (int o = 0; o < x->n_out; o++)
        TRY(give_storage(w, x, x->out[o], home));
out:
    return err;
}

/* Quotient and remainder of the same operands. The quotient of floats is rounded to their dtype
 * before it is rounded downwards, as floor_divide does it. */
enum err be_divmod(const struct exec *x)
{
    uint8_t t = x->in[0]->dtype;
    bool is_float = dt_is_inexact((enum dtype)t);
    struct elem_program program = {
        .n_in = 2,
        .n_ins = is_float ? 3 : 2,
        .n_out = 2,
        .in_dtype = { t, t },
        .out = { is_float ? 4 : 2, 3 },
        .ins = { { .op = OP_DIVIDE, .dtype = t, .n_args = 2, .arg = { 0, 1 } },
                 { .op = OP_REMAINDER, .dtype = t, .n_args = 2, .arg = { 0, 1 } },
                 { .op = OP_FLOOR, .dtype = t, .n_args = 1, .arg = { 2 } } },
    };
    struct exec run = *x;

    run.program = &program;
    return x->strm->be->elementwise(&run);
}
