#include "backend/vulkan/ops/kern.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/rt/encoder.h"
#include "base/gate.h"
#include "base/hash.h"

/* What the words in the last column of kernels.def mean. bfloat16 modules are matrix kernels: all
 * other kernels handle bfloat16 with shifts. */
enum kern_needs {
    NEEDS_base = 0,
    NEEDS_int_dot = VK_CAP_INT_DOT,
    NEEDS_coopmat = VK_CAP_COOPMAT,
    NEEDS_coopmat2 = VK_CAP_COOPMAT | VK_CAP_COOPMAT2,
    NEEDS_bfloat16 = VK_CAP_COOPMAT | VK_CAP_BFLOAT16,
};

static const struct kern_row {
    const char *name;
    uint32_t needs; /* enum vk_cap mask */
} rows[KERN_COUNT] = {
#define KERN(id, file, dtypes, macros, args, needs_) [KERN_##id] = { #id, NEEDS_##needs_ },
#include "backend/vulkan/kernels/kernels.def"
#undef KERN
};

/* Those that are enabled where present. */
enum { IS_SEEN, IS_USED };
enum {
    USED_CAPS = 0
#define FLOOR(...)
#define NICE(...)
#define CAP(id, use, ...) | (IS_##use ? VK_CAP_##id : 0)
#define CAP_PLAIN(id, use, ...) | (IS_##use ? VK_CAP_##id : 0)
#include "backend/vulkan/rt/caps.def"
#undef FLOOR
#undef NICE
#undef CAP
#undef CAP_PLAIN
};

/* Blocks are read as scalar layout by the kernels: whole words. */
#define KERN(id, file, dtypes, macros, args, needs)                                                \
    static_assert(sizeof(struct args) % 4 == 0, "argument block of " #id);                         \
    static_assert(!(NEEDS_##needs & ~USED_CAPS), "caps.def has to enable what " #id " needs");
#include "backend/vulkan/kernels/kernels.def"
#undef KERN

#define KERN_NAME_MAX 48

struct module {
    const struct kern_blob *blob; /* NULL: not built */
    uint64_t key;
    char name[KERN_NAME_MAX];
};

/* By (kernel, dtype); the last column is for kernels without a dtype. */
static struct module modules[KERN_COUNT][DT_COUNT + 1];
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static struct module *module_at(enum kern_id id, int dtype)
{
    return &modules[id][dtype < 0 ? DT_COUNT : dtype];
}

static void name_module(struct module *m, enum kern_id id, int dtype)
{
    int n = snprintf(m->name, sizeof m->name, "%s", rows[id].name);

    for (char *c = m->name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (dtype >= 0 && (size_t)n < sizeof m->name)
        snprintf(m->name + n, sizeof m->name - (size_t)n, "_%s", dt_name((enum dtype)dtype));
}

static void index_blobs(void)
{
    for (size_t i = 0; i < kern_blob_count; i++) {
        const struct kern_blob *b = &kern_blobs[i];
        struct module *m = module_at(b->id, b->dtype);
        m->blob = b;
        m->key = hash_bytes(HASH_SEED, b->words, b->n_words * sizeof *b->words);
        name_module(m, b->id, b->dtype);
    }
}

static bool device_has(uint32_t needs)
{
    if (needs & VK_CAP_COOPMAT && !gate_on(GATE_VK_COOPMAT))
        return false;
    return (vk_limits_get()->caps & needs) == needs;
}

bool kern_is_usable(enum kern_id id, int dtype)
{
    pthread_once(&index_once, index_blobs);
    return module_at(id, dtype)->blob && device_has(rows[id].needs);
}

enum err kern_module_get(struct kern_module *out, enum kern_id id, int dtype)
{
    if (!kern_is_usable(id, dtype))
        return err_set(ERR_UNSUPPORTED, "[vulkan] kernel %s has no usable module for %s",
                       rows[id].name, dtype < 0 ? "this device" : dt_name((enum dtype)dtype));
    const struct module *m = module_at(id, dtype);
    *out = (struct kern_module){ m->name, m->key, m->blob->words, m->blob->n_words };
    return ERR_OK;
}

enum err kern_pipe_of(const struct vk_pipe **out, const struct kern_want *want,
                      const struct kern_module *module)
{
    const struct vk_limits *dev = vk_limits_get();
    /* Matrix kernels divide a workgroup into subgroups of the default size. */
    bool is_fixed =
        rows[want->kern].needs & VK_CAP_COOPMAT && dev->min_subgroup != dev->max_subgroup;
    uint32_t subgroup_size = is_fixed ? dev->subgroup_size : 0;

    return vk_pipe_get(out, &(struct vk_pipe_params){
                                .name = module->name,
                                .key = module->key,
                                .words = module->words,
                                .n_words = module->n_words,
                                .spec = want->spec,
                                .n_spec = want->n_spec,
                                .subgroup_size = subgroup_size,
                                .n_addr = module_at(want->kern, want->dtype)->blob->n_addr });
}

enum err kern_pipe(const struct vk_pipe **out, enum kern_id id, int dtype, const uint32_t *spec,
                   int n_spec)
{
    struct kern_want want = { id, dtype, spec, n_spec };
    struct kern_module module;
    enum err err = kern_module_get(&module, id, dtype);

    return err ? err : kern_pipe_of(out, &want, &module);
}
