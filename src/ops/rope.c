/* Rotary position encoding. */
#include "ops/build.h"
#include "ops/rules.h"

static enum err check_input(const struct arr *x)
{
    if (x->ndim < 3)
        return err_set(
            ERR_ARG,
            "[rope] Input must have at least 3 dimensions but got input with %d dimensions.",
            x->ndim);
    if (!dt_is_float(dtype_of(x)))
        return err_set(ERR_ARG, "[rope] Input must be a floating type but got %s.",
                       dt_name(dtype_of(x)));
    return ERR_OK;
}

static enum err check_offset(const struct arr *x, const struct arr *offset)
{
    struct shp shape;

    if (!offset)
        return ERR_OK;
    arr_shape(&shape, offset);
    if (offset->ndim > 1)
        return err_set(ERR_ARG, "[rope] offset must have at most one dimension but has shape %s.",
                       shp_text(&shape));
    if (offset->size != 1 && offset->size != (size_t)x->shape[0])
        return err_set(ERR_ARG,
                       "[rope] offset must be a scalar or vector with %d elements but has shape "
                       "%s.",
                       x->shape[0], shp_text(&shape));
    if (!dt_is_integer(dtype_of(offset)))
        return err_set(ERR_ARG, "[rope] offset must be an integer but got type %s.",
                       dt_name(dtype_of(offset)));
    return ERR_OK;
}

static enum err check_dims(const struct arr *x, int dims)
{
    int32_t last = x->shape[x->ndim - 1];

    if (dims <= 0)
        return err_set(ERR_ARG, "[rope] dims must be positive but got %d.", dims);
    if (dims % 2 != 0)
        return err_set(ERR_ARG, "[rope] dims must be even but got %d.", dims);
    if (dims > last)
        return err_set(ERR_ARG,
                       "[rope] dims must not exceed the input's last dimension (%d) but got %d.",
                       last, dims);
    return ERR_OK;
}

static enum err check_freqs(const struct arr *freqs, int dims)
{
    struct shp shape;

    if (!freqs || (freqs->ndim == 1 && freqs->shape[0] == dims / 2))
        return ERR_OK;
    arr_shape(&shape, freqs);
    return err_set(ERR_ARG, "[rope] freqs must be one dimensional with size %d but got shape %s.",
                   dims / 2, shp_text(&shape));
}

enum err op_infer_rope(struct infer_call *c)
{
    const struct rope_params *p = c->params;
    const struct arr *x = c->in[0];
    const struct arr *offset = p->has_offset ? c->in[1] : NULL;
    enum err err;

    FITS(c->n_in == 1 + (size_t)p->has_offset + (size_t)p->has_freqs);
    const struct arr *freqs = p->has_freqs ? c->in[c->n_in - 1] : NULL;
    TRY(check_input(x));
    TRY(check_offset(x, offset));
    TRY(check_dims(x, p->dims));
    TRY(check_freqs(freqs, p->dims));
    FITS(!offset || dt_size(dtype_of(offset)) == 4);
    FITS(!freqs || freqs->dtype == DT_FLOAT32);
    infer_like(c, x);
out:
    return err;
}

enum err ops_rope(struct arr **out, struct arr *x, const struct ops_rope *r, struct strm *s)
{
    struct rope_params p = { .dims = r->dims,
                             .traditional = r->traditional,
                             .forward = true,
                             .base = r->base ? *r->base : 1.0f,
                             .scale = r->scale,
                             .offset = r->offset_array ? 0 : r->offset,
                             .has_offset = r->offset_array != NULL,
                             .has_freqs = r->freqs != NULL };
    struct arr *offset = r->offset_array;
    struct arr *in[3] = { NULL };
    size_t n_in = 0;
    enum err err;

    if (r->freqs && r->base)
        return err_set(ERR_ARG, "[rope] Only one of base or freqs can have a value.");
    if (!r->freqs && !r->base)
        return err_set(ERR_ARG, "[rope] Neither base nor freqs has a value.");
    in[n_in++] = arr_ref(x);
    if (offset) { /* what is no integer is left as it is, an error */
        bool is_cast = dt_is_integer(dtype_of(offset)) && dt_size(dtype_of(offset)) != 4;
        TRY(ops_astype(&in[n_in], offset, is_cast ? DT_INT32 : dtype_of(offset), s));
        n_in++;
    }
    if (r->freqs) {
        TRY(ops_astype(&in[n_in], r->freqs, DT_FLOAT32, s));
        n_in++;
    }
    TRY(ops_make_of(out, OP_ROPE, &p, (struct given){ in, n_in }, s));
out:
    arr_unref_all(in, n_in);
    return err;
}
