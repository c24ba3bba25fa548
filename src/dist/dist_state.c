#include "dist/dist_state.h"

#include <stdio.h>

struct dist_state {
    struct op_state base;
    struct dist_group *group; /* owned */
};

struct dist_group *dist_group_of(const struct op_state *s)
{
    return ((const struct dist_state *)s)->group;
}

static void destroy(struct op_state *s)
{
    struct dist_state *d = (struct dist_state *)s;

    dist_unref(&d->group);
    mem_free(d);
}

static uint64_t hash(const struct op_state *s)
{
    return (uintptr_t)s;
}

static bool equal(const struct op_state *a, const struct op_state *b)
{
    return a == b;
}

static void print(const struct op_state *s, char *buf, size_t n)
{
    snprintf(buf, n, "process %d of %d", dist_group_of(s)->rank, dist_group_of(s)->size);
}

enum err dist_state_new(struct op_state **out, struct dist_group *g)
{
    static const struct op_state_class class = { destroy, hash, equal, print };
    struct dist_state *d = mem_alloc(sizeof *d);

    if (!d)
        return ERR_NO_MEMORY;
    d->base.class = &class;
    atomic_init(&d->base.rc, 1);
    d->group = dist_ref(g);
    *out = &d->base;
    return ERR_OK;
}
