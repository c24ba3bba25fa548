#include "transforms/compile.h"
#include "api/fun_handle.h"
#include "mlx/c/ext.h"

static_assert(COMPILE_DISABLED == (int)MLX_COMPILE_MODE_DISABLED &&
                  COMPILE_NO_SIMPLIFY == (int)MLX_COMPILE_MODE_NO_SIMPLIFY &&
                  COMPILE_NO_FUSE == (int)MLX_COMPILE_MODE_NO_FUSE &&
                  COMPILE_ENABLED == (int)MLX_COMPILE_MODE_ENABLED,
              "modes have their public numbers");

static int make(struct call *c, mlx_closure *res, mlx_closure fun, const struct compile_params *p)
{
    struct fun *f = call_fun(c, fun.ctx, "fun"), *g = NULL;

    if (call_ok(c))
        c->err = transform_compile(&g, f, p);
    if (call_ok(c))
        c->err = box_set_fun(&res->ctx, g);
    return CALL_END(c);
}

int mlx_compile(mlx_closure *res, const mlx_closure fun, bool shapeless)
{
    struct call c = CALL(res);

    return make(&c, res, fun,
                &(struct compile_params){ .is_own = true, .is_shapeless = shapeless });
}

int mlx_detail_compile(mlx_closure *res, const mlx_closure fun, uintptr_t fun_id, bool shapeless,
                       const uint64_t *constants, size_t constants_num)
{
    struct call c = CALL(res);

    if (constants_num)
        call_ptr(&c, constants, "constants");
    return make(&c, res, fun,
                &(struct compile_params){ .id = fun_id,
                                          .is_shapeless = shapeless,
                                          .constants = constants,
                                          .n_constants = constants_num });
}

void mlx_compile_set_note(uint64_t note)
{
    compile_set_note(note);
}

uint64_t mlx_compile_get_note(void)
{
    return compile_get_note();
}

int mlx_detail_compile_clear_cache(void)
{
    compile_clear();
    return 0;
}

int mlx_detail_compile_erase(uintptr_t fun_id)
{
    compile_erase(fun_id);
    return 0;
}

int mlx_set_compile_mode(mlx_compile_mode mode)
{
    struct call c = CALL_BARE;

    if (mode > MLX_COMPILE_MODE_ENABLED)
        c.err = err_set(ERR_ARG, "[set_compile_mode] There is no mode %u.", (unsigned)mode);
    else
        compile_set_mode((enum compile_mode)mode);
    return CALL_END(&c);
}

int mlx_disable_compile(void)
{
    return mlx_set_compile_mode(MLX_COMPILE_MODE_DISABLED);
}

int mlx_enable_compile(void)
{
    return mlx_set_compile_mode(MLX_COMPILE_MODE_ENABLED);
}
