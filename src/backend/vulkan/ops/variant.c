#include "backend/vulkan/ops/variant.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/encoder.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/log.h"

static const struct variant_row {
    enum family family;
    const char *name;
    enum gate own; /* GATE_COUNT: none */
    bool is_last;
} rows[VARIANT_COUNT] = {
#define VARIANT_ROW(family, id, own, is_last)                                                      \
    [VARIANT_##id] = { FAMILY_##family, #id, own, is_last },
#define VARIANT_OWN(family, id) VARIANT_ROW(family, id, GATE_VK_##id, false)
#define VARIANT_SHARED(family, id) VARIANT_ROW(family, id, GATE_COUNT, false)
#define VARIANT_LAST(family, id) VARIANT_ROW(family, id, GATE_COUNT, true)
#include "backend/vulkan/ops/variants.def"
#undef VARIANT_OWN
#undef VARIANT_SHARED
#undef VARIANT_LAST
#undef VARIANT_ROW
};

static const char *const reason_text[VARIANT_REASONS] = {
    [VARIANT_FITS] = "fits",     [VARIANT_OFF] = "switched off", [VARIANT_DEVICE] = "device",
    [VARIANT_DTYPE] = "dtype",   [VARIANT_LAYOUT] = "layout",    [VARIANT_SIZE] = "size",
    [VARIANT_FAILED] = "failed",
};

static atomic_bool has_failed[VARIANT_COUNT];

const char *variant_name(enum variant_id id)
{
    return rows[id].name;
}

const char *variant_family(enum variant_id id)
{
    return family_names[rows[id].family];
}

/* ---- rejects in the log ---- */

#define LINE_MAX_LEN 256
#define MAX_SEEN 4096

/* Hashes of the lines that were logged. Beyond MAX_SEEN of them nothing is new any more. */
static struct {
    pthread_mutex_t lock;
    uint64_t hash[2 * MAX_SEEN]; /* open addressing, 0: free */
    int n;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_new(uint64_t hash)
{
    size_t i = hash % ARRAY_LEN(seen.hash);
    bool found_free;

    pthread_mutex_lock(&seen.lock);
    while (seen.hash[i] && seen.hash[i] != hash)
        i = (i + 1) % ARRAY_LEN(seen.hash);
    found_free = !seen.hash[i] && seen.n < MAX_SEEN;
    if (found_free) {
        seen.hash[i] = hash;
        seen.n++;
    }
    pthread_mutex_unlock(&seen.lock);
    return found_free;
}

static void log_reject(enum variant_id id, enum variant_reason why, const struct variant_problem *p)
{
    char line[LINE_MAX_LEN], problem[LINE_MAX_LEN / 2];

    p->describe(problem, sizeof problem, p->data);
    int n = snprintf(line, sizeof line, "%s: %s refused (%s): %s", variant_family(id),
                     rows[id].name, reason_text[why], problem);
    if (is_new(hash_bytes(HASH_SEED, line, MIN((size_t)n, sizeof line - 1)) | 1))
        log_warn("%s", line);
}

/* ---- hits by shape ---- */

#define LOG2_BITS 6 /* of a bucket: one more than the exponent, 0 for no size */
#define MAX_SHAPES 1024
#define MAX_PROBES 32 /* a full table must not cost more than an empty one */

/* Open addressing without a lock: a slot gets its key once and keeps it. 0: free. */
static _Atomic uint64_t shapes[MAX_SHAPES];
static const char *_Atomic size_names[VARIANT_COUNT];

/* What is counted: hits, rejects, hits by shape, hits that found no slot and those of problems
 * without sizes. */
enum {
    HITS = COUNTER_BACKEND, /* by variant */
    REJECTS = HITS + VARIANT_COUNT,
    SHAPES = REJECTS + VARIANT_COUNT * VARIANT_REASONS,
    LEFT_OUT = SHAPES + MAX_SHAPES,
    WITHOUT_SIZES,
    COUNTER_END
};
static_assert((int)COUNTER_END <= (int)COUNTER_COUNT, "counters have room");

static unsigned rejects_of(enum variant_id id, enum variant_reason why)
{
    return REJECTS + (unsigned)id * VARIANT_REASONS + (unsigned)why;
}

static uint64_t bucket_of(int64_t size)
{
    return size > 0 ? 64 - (uint64_t)__builtin_clzll((uint64_t)size) : 0;
}

static uint64_t shape_key(enum variant_id id, const int64_t *size)
{
    uint64_t key = (uint64_t)id + 1;

    for (int i = 0; i < VARIANT_SIZES; i++)
        key = key << LOG2_BITS | bucket_of(size[i]);
    return key;
}

/* The slot of the key: its own, or a free one; MAX_SHAPES if there is none near by. */
static size_t find_shape(uint64_t key)
{
    size_t at = hash_mix(HASH_SEED, key) % MAX_SHAPES;

    for (size_t i = 0; i < MAX_PROBES; i++, at = (at + 1) % MAX_SHAPES) {
        uint64_t found = atomic_load_explicit(&shapes[at], memory_order_relaxed);
        if (!found || found == key)
            return at;
    }
    return MAX_SHAPES;
}

/* The counter of hits of that shape; a new one gets it now. */
static unsigned shape_counter(enum variant_id id, const struct variant_problem *p)
{
    uint64_t key = shape_key(id, p->size);
    size_t at;

    atomic_store_explicit(&size_names[id], p->sizes, memory_order_relaxed);
    while ((at = find_shape(key)) < MAX_SHAPES) {
        uint64_t found = atomic_load_explicit(&shapes[at], memory_order_relaxed);
        if (found == key || (!found && atomic_compare_exchange_strong(&shapes[at], &found, key)))
            return SHAPES + (unsigned)at;
    }
    return LEFT_OUT;
}

/* ---- the choice ---- */

/* What the family has not asked. */
static enum variant_reason check(enum variant_id id)
{
    if (rows[id].own != GATE_COUNT && !gate_on(rows[id].own))
        return VARIANT_OFF;
    if (atomic_load_explicit(&has_failed[id], memory_order_relaxed))
        return VARIANT_FAILED;
    return VARIANT_FITS;
}

static void count_hit(enum variant_id id, const struct variant_problem *p)
{
    counter_add_step(HITS + (unsigned)id, 1);
    counter_add_step(p->sizes ? shape_counter(id, p) : (unsigned)WITHOUT_SIZES, 1);
}

bool variant_takes(enum variant_id id, enum variant_reason why, const struct variant_problem *p)
{
    if (why == VARIANT_FITS)
        why = check(id);
    if (why == VARIANT_FITS) {
        count_hit(id, p);
        return true;
    }
    counter_add_step(rejects_of(id, why), 1);
    if (gate_has(GATE_VK_DEBUG_REJECT, rows[id].family))
        log_reject(id, why, p);
    return false;
}

enum err variant_pick(struct vk_kernel *k, const struct variant_table *t, void *job,
                      const int64_t size[VARIANT_SIZES])
{
    struct variant_problem p = { t->describe, job, t->sizes };
    enum err err = ERR_OK;

    memcpy(p.size, size, sizeof p.size);
    *k = (struct vk_kernel){ NULL, t->first };
    do {
        while (!variant_takes(k->variant, t->judge(job, k->variant), &p) && k->variant < t->last)
            k->variant++;
        if (t->build)
            err = t->build(&k->pipe, job, k->variant);
    } while (err && variant_gives_way(k->variant, err));
    return err;
}

static bool is_own_failure(enum err err)
{
    return (err == ERR_DEVICE && !vk_dev_is_lost()) || err == ERR_RUNTIME || err == ERR_UNSUPPORTED;
}

bool variant_gives_way(enum variant_id id, enum err err)
{
    if (id == VARIANT_COUNT || rows[id].is_last || !is_own_failure(err))
        return false;
    if (!atomic_exchange(&has_failed[id], true))
        log_warn("%s: %s is off from here on: %s", variant_family(id), rows[id].name, err_text());
    return true;
}

/* ---- counters ---- */

uint64_t variant_hits(enum variant_id id)
{
    return counter_get(HITS + (unsigned)id);
}

uint64_t variant_rejects(enum variant_id id, enum variant_reason why)
{
    return counter_get(rejects_of(id, why));
}

uint64_t variant_hits_of(enum variant_id id, const int64_t size[VARIANT_SIZES])
{
    uint64_t key = shape_key(id, size);
    size_t at = find_shape(key);

    return at < MAX_SHAPES && atomic_load(&shapes[at]) == key ? counter_get(SHAPES + (unsigned)at)
                                                              : 0;
}

void variant_reset(void)
{
    for (int i = 0; i < VARIANT_COUNT; i++)
        atomic_store(&has_failed[i], false);
    counter_reset(HITS, COUNTER_END - HITS);
    pthread_mutex_lock(&seen.lock);
    memset(seen.hash, 0, sizeof seen.hash);
    seen.n = 0;
    pthread_mutex_unlock(&seen.lock);
}

/* ---- the report ---- */

/* " x 1024-2047"; a bucket of one size is that size. */
static void print_bucket(FILE *out, uint64_t bucket, const char *before)
{
    uint64_t first = (uint64_t)1 << (bucket - 1), last = first + (first - 1);

    if (first == last)
        fprintf(out, "%s%" PRIu64, before, first);
    else
        fprintf(out, "%s%" PRIu64 "-%" PRIu64, before, first, last);
}

struct shape_hits {
    uint64_t key, hits;
};

static void print_shape(FILE *out, const struct shape_hits *s)
{
    const char *before = "      ";

    fprintf(out, "%12" PRIu64, s->hits);
    for (int shift = LOG2_BITS * (VARIANT_SIZES - 1); shift >= 0; shift -= LOG2_BITS) {
        uint64_t bucket = s->key >> shift & ((1 << LOG2_BITS) - 1);
        if (!bucket)
            break;
        print_bucket(out, bucket, before);
        before = " x ";
    }
    fputc('\n', out);
}

/* Most hits first. */
static int by_hits(const void *a, const void *b)
{
    uint64_t x = ((const struct shape_hits *)a)->hits, y = ((const struct shape_hits *)b)->hits;

    return (x < y) - (x > y);
}

static void print_shapes(FILE *out, enum variant_id id)
{
    struct shape_hits found[MAX_SHAPES];
    size_t n = 0;

    for (unsigned i = 0; i < MAX_SHAPES; i++) {
        struct shape_hits s = { atomic_load(&shapes[i]), counter_get(SHAPES + i) };
        if (s.hits && s.key >> (LOG2_BITS * VARIANT_SIZES) == (uint64_t)id + 1)
            found[n++] = s;
    }
    qsort(found, n, sizeof found[0], by_hits);
    for (size_t i = 0; i < n; i++)
        print_shape(out, &found[i]);
}

static void print_hits(FILE *out, enum variant_id id)
{
    const char *names = atomic_load(&size_names[id]);

    if (!variant_hits(id))
        return;
    fprintf(out, "%12" PRIu64 "  %s: %s taken%s%s\n", variant_hits(id), variant_family(id),
            rows[id].name, names ? ", by " : "", names ? names : "");
    print_shapes(out, id);
}

static void print_rejects(FILE *out, enum variant_id id)
{
    for (int why = 0; why < VARIANT_REASONS; why++) {
        uint64_t n = variant_rejects(id, (enum variant_reason)why);
        if (n)
            fprintf(out, "%12" PRIu64 "  %s: %s refused: %s\n", n, variant_family(id),
                    rows[id].name, reason_text[why]);
    }
}

void variant_print(FILE *out, const char *family)
{
    for (int i = 0; i < VARIANT_COUNT; i++) {
        if (family && !strstr(variant_family((enum variant_id)i), family))
            continue;
        print_hits(out, (enum variant_id)i);
        print_rejects(out, (enum variant_id)i);
    }
    if (counter_get(LEFT_OUT))
        fprintf(out, "%12" PRIu64 "  hits of further shapes\n", counter_get(LEFT_OUT));
}
