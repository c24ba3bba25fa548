#include "api/handle.h"

mlx_string mlx_string_new(void)
{
    return (mlx_string){ NULL };
}

/* Makes *res a copy of text. */
static enum err set_copy(mlx_string *res, const char *text)
{
    char *copy = mem_strdup(text);

    return copy ? box_set_text(res, copy) : ERR_NO_MEMORY;
}

mlx_string mlx_string_new_data(const char *str)
{
    mlx_string res = { NULL };
    struct call c = CALL_BARE;

    if (call_ptr(&c, str, "str"))
        c.err = set_copy(&res, str);
    CALL_END(&c);
    return res;
}

int mlx_string_set(mlx_string *str, const mlx_string src)
{
    struct call c = CALL(str);
    struct text_box *from = call_box(&c, src.ctx, "string", "src");

    if (call_ok(&c))
        c.err = set_copy(str, from->text);
    return CALL_END(&c);
}

const char *mlx_string_data(mlx_string str)
{
    struct call c = CALL_BARE;
    struct text_box *box = call_box(&c, str.ctx, "string", "str");

    CALL_END(&c);
    return box ? box->text : NULL;
}

int mlx_string_free(mlx_string str)
{
    struct text_box *box = str.ctx;

    if (box)
        mem_free(box->text);
    mem_free(box);
    return 0;
}
