/* argmin, argmax. */
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/reduce.h"

enum err vk_arg_reduce(const struct exec *x)
{
    const struct arg_reduce_params *params = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    enum dtype t = (enum dtype)in->dtype;
    struct reduce_plan plan;
    struct vk_enc *e;
    enum err err;

    if (out->dtype != DT_UINT32 || !kern_is_usable(KERN_ARG_REDUCE_ROW, t))
        return err_set(ERR_UNSUPPORTED, "[arg_reduce] no Vulkan kernel for %s", dt_name(t));
    TRY(arr_alloc(out, x->strm->be));
    if (!out->size)
        goto out;
    reduce_plan_make(&plan, in, &params->axis, 1, REDUCE_IN_ORDER);
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_reduction_encode(e,
                            &(struct vk_reduction){ .row = KERN_ARG_REDUCE_ROW,
                                                    .col = KERN_ARG_REDUCE_COL,
                                                    .kind = params->is_max != 0,
                                                    .part_bytes = dt_size(t) == 8 ? 16 : 8,
                                                    .plan = &plan,
                                                    .in = in,
                                                    .out = out },
                            NULL));
out:
    return err;
}
