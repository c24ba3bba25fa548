#include "lm/weights.h"

#include <stdio.h>

static void shape_text(char *text, size_t size, const int32_t *d, int n)
{
    size_t at = (size_t)snprintf(text, size, "(");

    for (int i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? ", " : "", d[i]);
    if (at < size)
        snprintf(text + at, size - at, ")");
}

enum err weights_get(struct arr **out, struct lm_weights *src, const char *name,
                     const struct shp *shape)
{
    struct arr *a = NULL;
    char have[64], want[64];
    enum err err = src->get(src, &a, name, shape);

    if (err)
        return err;
    if (a->ndim != shape->ndim ||
        memcmp(a->shape, shape->d, (size_t)shape->ndim * sizeof shape->d[0]) != 0) {
        shape_text(have, sizeof have, a->shape, a->ndim);
        shape_text(want, sizeof want, shape->d, shape->ndim);
        arr_unref(&a);
        return err_set(ERR_ARG, "%s has the shape %s, the config asks for %s", name, have, want);
    }
    *out = a;
    return ERR_OK;
}

void weights_destroy(struct lm_weights **src)
{
    if (*src)
        (*src)->destroy(*src);
    *src = NULL;
}
