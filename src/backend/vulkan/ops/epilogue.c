#include "backend/vulkan/ops/epilogue.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/jit/elementwise_emit.h"
#include "backend/vulkan/ops/elementwise.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/stat.h"

/* ---- what fits ---- */

/* Distance from row to row where all but the last dimension are walked as one. */
static bool row_stride(int64_t *stride, const struct arr *a)
{
    int64_t extent = 1, first = 0;

    for (int d = a->ndim - 2; d >= 0; d--) {
        if (a->shape[d] == 1)
            continue;
        if (extent == 1)
            first = a->strides[d];
        else if (a->strides[d] != first * extent)
            return false;
        extent *= a->shape[d];
    }
    *stride = first;
    return true;
}

static bool side_fits(struct vk_epilogue *e, int i, const struct arr *out)
{
    const struct arr *a = e->side[i];
    int64_t *stride = e->stride[i];

    if (!arr_same_shape(a, out) || !row_stride(&stride[0], a))
        return false;
    stride[1] = a->ndim && a->shape[a->ndim - 1] > 1 ? a->strides[a->ndim - 1] : 0;
    e->c.side[i] = stride[0] || (stride[1] && stride[1] != 1) ? EPILOGUE_STRIDED
                   : stride[1]                                ? EPILOGUE_COLUMN
                                                              : EPILOGUE_ONCE;
    return true;
}

enum group_reason vk_epilogue_init(struct vk_epilogue *e, const struct elem_program *program,
                                   int n_products, struct arr *const *side, const struct arr *out)
{
    *e = (struct vk_epilogue){ .program = program,
                               .side = side,
                               .n_sides = program->n_in - n_products };
    e->c.n_products = (uint8_t)n_products;
    e->c.float_modes = (elem_float_flags() & ELEM_FLOAT_MODES) != 0;
    if (!dt_is_float((enum dtype)out->dtype) || epilogue_check(program, n_products) != ERR_OK ||
        elem_program_dtype(program, program->out[0]) != out->dtype)
        return GROUP_DTYPE;
    for (int i = 0; i < n_products; i++)
        if (program->in_dtype[i] != out->dtype)
            return GROUP_DTYPE;
    if (!out->ndim || out->size / MAX(out->shape[out->ndim - 1], 1) > INT32_MAX)
        return GROUP_SIZE;
    for (int i = 0; i < e->n_sides; i++)
        if (!side_fits(e, i, out))
            return GROUP_LAYOUT;
    e->c.is_direct = e->n_sides == 1 && e->c.side[0] != EPILOGUE_STRIDED;
    return GROUP_TAKEN;
}

/* ---- arguments ---- */

enum err vk_epilogue_encode(struct vk_enc *e, uint64_t *addr, const struct vk_epilogue *p)
{
    struct epilogue_args args = { .addr = { 0 } };
    enum err err = ERR_OK;

    *addr = 0;
    if (!p || !p->n_sides)
        return ERR_OK;
    for (int i = 0; i < p->n_sides; i++) {
        TRY(vk_enc_read(e, &args.addr[i], p->side[i]));
        memcpy(args.stride[i], p->stride[i], sizeof args.stride[i]);
    }
    *addr = args.addr[0];
    if (p->c.is_direct)
        return ERR_OK;
    err = vk_enc_args(e, addr, &args, sizeof args, .n_addr = EPILOGUE_SIDES);
out:
    return err;
}

/* ---- linked modules, kept for the life of the process ---- */

struct linked {
    struct linked *next;
    enum kern_id kern;
    int dtype;
    struct elem_program program;
    struct epilogue_class c;
    uint32_t *words;
    struct kern_module module;
    char name[96];
};

#define BUCKETS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct linked *buckets[BUCKETS]; /* guarded by lock; rows never change */

static uint64_t hash_of(const struct vk_epilogue *p, const struct kern_want *want)
{
    uint64_t hash = hash_bytes(elem_program_hash(p->program), &p->c, sizeof p->c);

    return hash_mix(hash, (uint64_t)want->kern << 8 | (uint64_t)want->dtype);
}

static const struct linked *find(const struct vk_epilogue *p, const struct kern_want *want,
                                 uint64_t hash)
{
    const struct linked *l = buckets[hash % BUCKETS];

    while (l &&
           (l->kern != want->kern || l->dtype != want->dtype ||
            memcmp(&l->c, &p->c, sizeof l->c) != 0 || !elem_program_equal(&l->program, p->program)))
        l = l->next;
    return l;
}

/* For labels and traces: the kernel, then the ops in order. */
static void name_module(struct linked *l, const char *kernel)
{
    size_t used = (size_t)snprintf(l->name, sizeof l->name, "%s", kernel);

    for (int i = 0; i < l->program.n_ins && used < sizeof l->name; i++)
        used += (size_t)snprintf(l->name + used, sizeof l->name - used, "+%s",
                                 op_name((enum op_id)l->program.ins[i].op));
}

static enum err make(struct linked **out, const struct vk_epilogue *p, const struct kern_want *want)
{
    struct linked *l = mem_alloc(sizeof *l);
    struct kern_module kernel;
    size_t n = 0;
    enum err err = ERR_NO_MEMORY;

    if (!l)
        return err;
    l->kern = want->kern;
    l->dtype = want->dtype;
    l->program = *p->program;
    l->c = p->c;
    TRY(kern_module_get(&kernel, want->kern, want->dtype));
    TRY(epilogue_link(&l->words, &n, &(struct spv_module){ kernel.words, kernel.n_words },
                      p->program, &p->c));
    name_module(l, kernel.name);
    l->module =
        (struct kern_module){ l->name, hash_bytes(HASH_SEED, l->words, n * 4), l->words, n };
    stat_add(STAT_MODULES_EMITTED, 1);
    *out = l;
out:
    if (err)
        mem_free(l);
    return err;
}

/* Linking takes a fraction of a millisecond, with the lock held: two threads that want the same
 * module do not make it twice. */
static enum err linked_module(const struct linked **out, const struct vk_epilogue *p,
                              const struct kern_want *want)
{
    uint64_t hash = hash_of(p, want);
    struct linked *made;
    enum err err = ERR_OK;

    pthread_mutex_lock(&lock);
    if (!(*out = find(p, want, hash)) && !(err = make(&made, p, want))) {
        made->next = buckets[hash % BUCKETS];
        *out = buckets[hash % BUCKETS] = made;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

enum err vk_epilogue_pipe(const struct vk_pipe **out, const struct vk_epilogue *p,
                          const struct kern_want *want)
{
    const struct linked *l;
    enum err err;

    if (!p)
        return kern_pipe(out, want->kern, want->dtype, want->spec, want->n_spec);
    if ((err = linked_module(&l, p, want)))
        return err;
    return kern_pipe_of(out, want, &l->module);
}
