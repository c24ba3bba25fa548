#include "graph/kernel.h"

#include <stdio.h>

#include "base/hash.h"

/* What lies between the module and the end, in one piece and without padding that differs: calls
 * are copies of zero-initialised ones. */
#define REST offsetof(struct kernel_call, name)
#define REST_SIZE (sizeof(struct kernel_call) - REST)

static void destroy(struct op_state *s)
{
    struct kernel_call *k = (struct kernel_call *)s;

    spirv_unref(&k->module);
    mem_free(k);
}

static uint64_t hash(const struct op_state *s)
{
    const struct kernel_call *k = kernel_call_of(s);

    return hash_bytes(k->module->hash, (const char *)k + REST, REST_SIZE);
}

static bool equal(const struct op_state *a, const struct op_state *b)
{
    const struct kernel_call *x = kernel_call_of(a), *y = kernel_call_of(b);

    return spirv_equal(x->module, y->module) &&
           memcmp((const char *)x + REST, (const char *)y + REST, REST_SIZE) == 0;
}

static void print(const struct op_state *s, char *buf, size_t n)
{
    const struct kernel_call *k = kernel_call_of(s);

    snprintf(buf, n, "%s, groups=(%u,%u,%u)", k->name, k->groups[0], k->groups[1], k->groups[2]);
}

enum err kernel_call_new(struct op_state **out, const struct kernel_call *call)
{
    static const struct op_state_class class = { destroy, hash, equal, print };
    struct kernel_call *k = mem_alloc(sizeof *k);

    if (!k)
        return ERR_NO_MEMORY;
    memcpy((char *)k + REST, (const char *)call + REST, REST_SIZE);
    k->base.class = &class;
    atomic_init(&k->base.rc, 1);
    k->module = spirv_ref(call->module);
    *out = &k->base;
    return ERR_OK;
}
