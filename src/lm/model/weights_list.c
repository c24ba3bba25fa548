#include "lm/model/weights_list.h"

#include <stdio.h>

/* Names of tensors that files have although nobody needs them. */
static const struct {
    const char *part; /* of the name */
    bool if_tied;     /* only where the head is the embedding, of which this is a copy */
} harmless[] = {
    { "self_attn.rotary_emb.inv_freq", false }, /* follows from the config */
    { "lm_head.weight", true },
    { "attn_rot_embd.weight", false }, /* the same in GGUF files */
};

/* Names that an error shows. */
#define SHOWN 3

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct io_array *)a)->name, ((const struct io_array *)b)->name);
}

enum err weights_list_init(struct weights_list *l, struct io_arrays *arrays, const char *file)
{
    size_t n = arrays->list.n;
    enum err err = io_arrays_check_unique(arrays, file);

    if (err)
        return err;
    if (!(l->is_read = mem_alloc_array(MAX(n, (size_t)1), sizeof *l->is_read)))
        return ERR_NO_MEMORY;
    l->arrays = *arrays;
    *arrays = (struct io_arrays){ 0 };
    if (n)
        qsort(l->arrays.list.v, n, sizeof *l->arrays.list.v, by_name);
    return ERR_OK;
}

void weights_list_fini(struct weights_list *l)
{
    io_arrays_fini(&l->arrays);
    mem_free(l->is_read);
    l->is_read = NULL;
}

static struct io_array *find(const struct weights_list *l, const char *name)
{
    struct io_array key = { .name = (char *)name };

    return l->arrays.list.n ? bsearch(&key, l->arrays.list.v, l->arrays.list.n, sizeof key, by_name)
                            : NULL;
}

struct arr *weights_list_find(const struct weights_list *l, const char *name)
{
    struct io_array *found = find(l, name);

    return found ? found->arr : NULL;
}

struct arr *weights_list_take(struct weights_list *l, const char *name)
{
    struct io_array *found = find(l, name);

    if (found)
        l->is_read[found - l->arrays.list.v] = true;
    return found ? found->arr : NULL;
}

static bool is_harmless(const char *name, const struct lm_config *c)
{
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        if (strstr(name, harmless[i].part) && (c->tied || !harmless[i].if_tied))
            return true;
    return false;
}

enum err weights_list_check_read(const struct weights_list *l, const struct lm_config *c,
                                 const char *file)
{
    char names[300] = "";
    size_t n = 0;

    for (size_t i = 0; i < l->arrays.list.n; i++) {
        const char *name = l->arrays.list.v[i].name;
        size_t at = strlen(names);
        if (l->is_read[i] || is_harmless(name, c))
            continue;
        if (n++ < SHOWN)
            snprintf(names + at, sizeof names - at, "%s%.80s", at ? ", " : "", name);
    }
    if (!n)
        return ERR_OK;
    return err_set(ERR_ARG, "%s has %zu tensor%s that a %s of this config does not read: %s%s",
                   file, n, n > 1 ? "s" : "", c->arch->model_type, names, n > SHOWN ? ", ..." : "");
}
