#include "api/handle.h"

/* The release of MLX whose behaviour the public functions follow. */
#define MLX_VERSION_MATCHED "0.32.4"

int mlx_version(mlx_string *str_)
{
    struct call c = CALL(str_);
    char *text = NULL;

    if (call_ok(&c) && !(text = mem_strdup(MLX_VERSION_MATCHED)))
        c.err = ERR_NO_MEMORY;
    if (call_ok(&c))
        c.err = box_set_text(str_, text);
    return CALL_END(&c);
}
