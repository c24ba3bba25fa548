#include "eval/rehearse.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "plan/rewrite.h"

/* One bit for every kind seen. Two kinds that share one cost the later its rehearsal, nothing else.
 */
#define SEEN_WORDS 1024
static _Atomic uint64_t seen[SEEN_WORDS];

static uint64_t magnitude(size_t n)
{
    return n ? 64 - (uint64_t)__builtin_clzll(n) : 0;
}

static uint64_t mix_array(uint64_t h, const struct arr *a)
{
    return hash_mix(h, (uint64_t)a->dtype << 8 | magnitude(a->size));
}

static uint64_t kind_of(const struct plan_step *step, const struct node *n)
{
    uint64_t h = step->fx ? fx_hash(step->fx) : hash_mix(HASH_SEED, n->op);

    if (step->group)
        h = hash_mix(h, (uint64_t)step->group->kind + 1);
    for (int i = 0; i < n->n_in && !step->fx; i++)
        h = mix_array(h, n->in[i]);
    return mix_array(h, &n->out[0]);
}

static bool is_first(uint64_t kind)
{
    uint64_t bit = (uint64_t)1 << kind % 64;
    _Atomic uint64_t *word = &seen[kind / 64 % SEEN_WORDS];

    return !(atomic_fetch_or_explicit(word, bit, memory_order_relaxed) & bit);
}

bool rehearse_is_due(const struct plan *p, struct node *const *nodes)
{
    bool is_due = false;

    for (size_t i = 0; i < p->n_step; i++)
        is_due |= is_first(kind_of(&p->step[i], nodes[p->step[i].node]));
    return is_due;
}
