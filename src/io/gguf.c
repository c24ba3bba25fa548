/* What a GGUF file holds, in memory. */
#include "io/gguf.h"
#include "eval/wait.h"

void gguf_value_fini(struct gguf_value *v)
{
    for (size_t i = 0; i < v->n_texts; i++)
        mem_free(v->texts[i].s);
    mem_free(v->texts);
    mem_free(v->key);
    arr_unref(&v->arr);
    *v = (struct gguf_value){ 0 };
}

void gguf_fini(struct gguf *g)
{
    io_arrays_fini(&g->arrays);
    for (size_t i = 0; i < g->metadata.n; i++)
        gguf_value_fini(&g->metadata.v[i]);
    VEC_FINI(&g->metadata);
}

struct gguf_value *gguf_find(const struct gguf *g, const char *key)
{
    for (size_t i = 0; i < g->metadata.n; i++)
        if (strcmp(g->metadata.v[i].key, key) == 0)
            return &g->metadata.v[i];
    return NULL;
}

enum err gguf_set(struct gguf *g, struct gguf_value *v)
{
    struct gguf_value *old = gguf_find(g, v->key);

    if (old) {
        gguf_value_fini(old);
        *old = *v;
    } else if (VEC_PUSH(&g->metadata, *v) != ERR_OK) {
        gguf_value_fini(v);
        return ERR_NO_MEMORY;
    }
    *v = (struct gguf_value){ 0 };
    return ERR_OK;
}

enum err gguf_value_add_text(struct gguf_value *v, const char *s, size_t n)
{
    VEC(struct gguf_text) list = { v->texts, v->n_texts, v->n_texts };
    struct gguf_text t = { mem_alloc(n + 1), n };

    if (!t.s)
        return ERR_NO_MEMORY;
    memcpy(t.s, s, n);
    if (VEC_PUSH(&list, t) != ERR_OK) {
        mem_free(t.s);
        return ERR_NO_MEMORY;
    }
    v->texts = list.v;
    v->n_texts = list.n;
    return ERR_OK;
}

enum err gguf_get_number(double *out, const struct gguf *g, const char *key)
{
    const struct gguf_value *v = gguf_find(g, key);
    const void *p;
    enum err err;

    if (!v || v->kind != GGUF_ARRAY || v->arr->ndim)
        return err_set(ERR_ARG, "[gguf] The number '%s' is missing.", key);
    TRY(arr_host(&p, v->arr));
    switch ((enum dtype)v->arr->dtype) {
#define NUMBER(dt, type)                                                                           \
    case dt:                                                                                       \
        *out = (double)*(const type *)p;                                                           \
        break;
    case DT_BOOL:
        NUMBER(DT_UINT8, uint8_t)
        NUMBER(DT_UINT16, uint16_t)
        NUMBER(DT_UINT32, uint32_t)
        NUMBER(DT_UINT64, uint64_t)
        NUMBER(DT_INT8, int8_t)
        NUMBER(DT_INT16, int16_t)
        NUMBER(DT_INT32, int32_t)
        NUMBER(DT_INT64, int64_t)
        NUMBER(DT_FLOAT32, float)
#undef NUMBER
    default:
        err = err_set(ERR_ARG, "[gguf] '%s' is no number.", key);
    }
out:
    return err;
}

enum err gguf_get_string(const char **out, const struct gguf *g, const char *key)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (!v || v->kind != GGUF_STRING)
        return err_set(ERR_ARG, "[gguf] The text '%s' is missing.", key);
    *out = v->texts[0].s;
    return ERR_OK;
}

enum err gguf_alignment(uint64_t *out, const struct gguf *g)
{
    double n = GGUF_ALIGNMENT;
    enum err err = ERR_OK;

    if (gguf_find(g, GGUF_ALIGNMENT_KEY))
        TRY(gguf_get_number(&n, g, GGUF_ALIGNMENT_KEY));
    *out = n >= 1 && n <= 1 << 20 ? (uint64_t)n : 0;
    if (*out == 0 || *out & (*out - 1))
        err = err_set(ERR_ARG, "[gguf] " GGUF_ALIGNMENT_KEY " is no power of two");
out:
    return err;
}
