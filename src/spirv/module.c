#include "spirv/module.h"

#include "base/hash.h"

/* More than any module has: what is larger was not meant to be one. */
#define MAX_BYTES ((size_t)64 << 20)

static const struct {
    uint32_t number;
    const char *name;
} capabilities[] = {
#define CAPABILITY(name, number) { number, #name },
#include "spirv/capabilities.def"
};

const char *spirv_capability_name(uint32_t capability)
{
    for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
        if (capabilities[i].number == capability)
            return capabilities[i].name;
    return "";
}

const struct spirv_binding *spirv_find_binding(const struct spirv_info *info, uint32_t binding)
{
    for (size_t i = 0; i < info->binding.n; i++)
        if (info->binding.v[i].binding == binding)
            return &info->binding.v[i];
    return NULL;
}

int spirv_find_spec(const struct spirv_info *info, uint32_t id)
{
    for (size_t i = 0; i < info->spec.n; i++)
        if (info->spec.v[i].id == id)
            return (int)i;
    return -1;
}

void spirv_info_fini(struct spirv_info *info)
{
    for (size_t i = 0; i < info->extension.n; i++)
        mem_free(info->extension.v[i]);
    VEC_FINI(&info->extension);
    VEC_FINI(&info->binding);
    VEC_FINI(&info->spec);
    VEC_FINI(&info->capability);
}

static void destroy(struct spirv_module *m)
{
    spirv_info_fini(&m->info);
    mem_free(m->words);
    mem_free(m);
}

enum err spirv_new(struct spirv_module **out, const void *bytes, size_t n)
{
    struct spirv_module *m = NULL;
    enum err err = ERR_NO_MEMORY;

    if (!bytes || !n || n % sizeof(uint32_t) || n > MAX_BYTES)
        return err_set(ERR_ARG, "[spirv] %zu bytes are not a module: words have 4 bytes.", n);
    if (!(m = mem_alloc(sizeof *m)) || !(m->words = mem_alloc(n)))
        goto out;
    atomic_init(&m->rc, 1);
    memcpy(m->words, bytes, n);
    m->n_words = n / sizeof(uint32_t);
    m->hash = hash_bytes(HASH_SEED, bytes, n);
    TRY(spirv_reflect(&m->info, m->words, m->n_words));
    TRY(spirv_validate(m->words, m->n_words));
    *out = m;
    m = NULL;
out:
    if (m)
        destroy(m);
    return err;
}

struct spirv_module *spirv_ref(struct spirv_module *m)
{
    ref_inc(&m->rc);
    return m;
}

void spirv_unref(struct spirv_module **pm)
{
    struct spirv_module *m = *pm;

    *pm = NULL;
    if (m && ref_dec(&m->rc))
        destroy(m);
}

bool spirv_equal(const struct spirv_module *a, const struct spirv_module *b)
{
    return a == b || (a->hash == b->hash && a->n_words == b->n_words &&
                      memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0);
}
