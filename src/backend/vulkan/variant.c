#include "backend/vulkan/variant.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "backend/vulkan/device.h"
#include "core/gate.h"
#include "core/hash.h"
#include "core/log.h"

static const struct variant_row {
    const char *family, *name;
    enum gate own; /* GATE_COUNT: none */
    enum gate log; /* of the family's rejects */
    bool is_last;
} rows[VARIANT_COUNT] = {
#define VARIANT_ROW(family, id, own, is_last)                                                      \
    [VARIANT_##id] = { #family, #id, own, GATE_VK_DEBUG_##family##_REJECT, is_last },
#define VARIANT_OWN(family, id) VARIANT_ROW(family, id, GATE_VK_##id, false)
#define VARIANT_SHARED(family, id) VARIANT_ROW(family, id, GATE_COUNT, false)
#define VARIANT_LAST(family, id) VARIANT_ROW(family, id, GATE_COUNT, true)
#include "backend/vulkan/variants.def"
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

static _Atomic uint64_t hits[VARIANT_COUNT];
static _Atomic uint64_t rejects[VARIANT_COUNT][VARIANT_REASONS];
static atomic_bool has_failed[VARIANT_COUNT];

const char *variant_name(enum variant_id id)
{
    return rows[id].name;
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
    int n = snprintf(line, sizeof line, "%s: %s refused (%s): %s", rows[id].family, rows[id].name,
                     reason_text[why], problem);
    if (is_new(hash_bytes(HASH_SEED, line, MIN((size_t)n, sizeof line - 1)) | 1))
        log_warn("%s", line);
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

bool variant_takes(enum variant_id id, enum variant_reason why, const struct variant_problem *p)
{
    if (why == VARIANT_FITS)
        why = check(id);
    if (why == VARIANT_FITS) {
        atomic_fetch_add_explicit(&hits[id], 1, memory_order_relaxed);
        return true;
    }
    atomic_fetch_add_explicit(&rejects[id][why], 1, memory_order_relaxed);
    if (gate_on(rows[id].log))
        log_reject(id, why, p);
    return false;
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
        log_warn("%s: %s is off from here on: %s", rows[id].family, rows[id].name, err_text());
    return true;
}

/* ---- counters ---- */

uint64_t variant_hits(enum variant_id id)
{
    return atomic_load_explicit(&hits[id], memory_order_relaxed);
}

uint64_t variant_rejects(enum variant_id id, enum variant_reason why)
{
    return atomic_load_explicit(&rejects[id][why], memory_order_relaxed);
}

void variant_reset(void)
{
    for (int i = 0; i < VARIANT_COUNT; i++) {
        atomic_store(&hits[i], 0);
        atomic_store(&has_failed[i], false);
        for (int r = 0; r < VARIANT_REASONS; r++)
            atomic_store(&rejects[i][r], 0);
    }
    pthread_mutex_lock(&seen.lock);
    memset(seen.hash, 0, sizeof seen.hash);
    seen.n = 0;
    pthread_mutex_unlock(&seen.lock);
}

static void print_line(FILE *out, uint64_t n, enum variant_id id, const char *what)
{
    if (n)
        fprintf(out, "%12" PRIu64 "  %s: %s %s\n", n, rows[id].family, rows[id].name, what);
}

void variant_print(FILE *out)
{
    char what[64];

    for (int i = 0; i < VARIANT_COUNT; i++)
        print_line(out, variant_hits((enum variant_id)i), (enum variant_id)i, "taken");
    for (int i = 0; i < VARIANT_COUNT; i++)
        for (int r = 0; r < VARIANT_REASONS; r++) {
            snprintf(what, sizeof what, "refused: %s", reason_text[r]);
            print_line(out, variant_rejects((enum variant_id)i, (enum variant_reason)r),
                       (enum variant_id)i, what);
        }
}
