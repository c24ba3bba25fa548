#include "lm/model/weights.h"

#include <stdio.h>

static void shape_text(char *text, size_t size, const int32_t *d, int n)
{
    size_t at = (size_t)snprintf(text, size, "(");

    for (int i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? ", " : "", d[i]);
    if (at < size)
        snprintf(text + at, size - at, ")");
}

static const char *element_text(enum lm_element e)
{
    static const char *const texts[] = {
        [LM_ELEMENT_REAL] = "float32, float16 or bfloat16",
        [LM_ELEMENT_WORD] = "uint32",
        [LM_ELEMENT_SCALE] = "uint8",
    };

    return texts[e];
}

static bool is_element(enum dtype t, enum lm_element e)
{
    switch (e) {
    case LM_ELEMENT_WORD:
        return t == DT_UINT32;
    case LM_ELEMENT_SCALE:
        return t == DT_UINT8;
    case LM_ELEMENT_REAL:
        break;
    }
    return t == DT_FLOAT32 || t == DT_FLOAT16 || t == DT_BFLOAT16;
}

static enum err check(const struct arr *a, const char *name, const struct lm_tensor *want)
{
    const struct shp *shape = &want->shape;
    char has[64], wanted[64];

    if (a->ndim != shape->ndim ||
        memcmp(a->shape, shape->d, (size_t)shape->ndim * sizeof shape->d[0]) != 0) {
        shape_text(has, sizeof has, a->shape, a->ndim);
        shape_text(wanted, sizeof wanted, shape->d, shape->ndim);
        return err_set(ERR_ARG, "%s has the shape %s, the config asks for %s", name, has, wanted);
    }
    if (!is_element((enum dtype)a->dtype, want->element))
        return err_set(ERR_ARG, "%s is %s, it must be %s", name, dt_name((enum dtype)a->dtype),
                       element_text(want->element));
    return ERR_OK;
}

enum err weights_get(struct arr **out, struct lm_weights *src, const char *name,
                     const struct lm_tensor *want)
{
    struct arr *a = NULL;
    enum err err;

    TRY(src->get(src, &a, name, &want->shape));
    TRY(check(a, name, want));
    *out = a;
    a = NULL;
out:
    arr_unref(&a);
    return err;
}

void weights_destroy(struct lm_weights **src)
{
    if (*src)
        (*src)->destroy(*src);
    *src = NULL;
}
