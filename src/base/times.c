#include "base/times.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/trace.h"
#include "eval/report.h"

/* Kernels have names of their own by dtype and by fused program: some hundreds in a large model. */
#define MAX_ROWS 2048

struct row {
    struct times_key key; /* name NULL: free */
    uint64_t calls, ns;
};

static pthread_mutex_t row_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct row rows[MAX_ROWS];                            /* open addressing */
static size_t n_rows;
static struct row others = { .key = { .device = "", .name = "others" } }; /* found no room */

_Atomic uint64_t times_answer;

bool times_ask(void)
{
    uint64_t asked = (uint64_t)gate_changes() + 1;
    bool is_on = trace_is_on() || (gate_on(GATE_VK_TIMING) && report_is_asked());

    atomic_store_explicit(&times_answer, asked << 1 | is_on, memory_order_relaxed);
    return is_on;
}

static _Thread_local const char *current_op;

void times_op_set(const char *name)
{
    current_op = name;
}

const char *times_op(void)
{
    return times_are_on() ? current_op : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static uint64_t hash_text(uint64_t h, const char *s)
{
    return s ? hash_bytes(h, s, strlen(s)) : hash_mix(h, 0);
}

/* The row of the key or the free one where it belongs; called with the lock held. The table is
 * never full. */
static struct row *find(const struct times_key *k)
{
    uint64_t h = hash_text(hash_text(hash_text(HASH_SEED, k->device), k->name), k->variant);
    struct row *r = &rows[h % MAX_ROWS];

    while (r->key.name &&
           !(same_text(r->key.name, k->name) && same_text(r->key.variant, k->variant) &&
             same_text(r->key.device, k->device)))
        r = r + 1 < rows + MAX_ROWS ? r + 1 : rows;
    return r;
}

void times_add(const struct times_key *key, uint64_t ns)
{
    pthread_mutex_lock(&row_lock);
    struct row *r = find(key);
    if (!r->key.name && n_rows == MAX_ROWS - 1) {
        r = &others;
    } else if (!r->key.name) {
        r->key = *key;
        n_rows++;
    }
    r->calls++;
    r->ns += ns;
    pthread_mutex_unlock(&row_lock);
}

void times_get(uint64_t *calls, uint64_t *ns, const struct times_key *key)
{
    pthread_mutex_lock(&row_lock);
    const struct row *r = find(key);
    *calls = r->calls;
    *ns = r->ns;
    pthread_mutex_unlock(&row_lock);
}

void times_reset(void)
{
    pthread_mutex_lock(&row_lock);
    memset(rows, 0, sizeof rows);
    n_rows = 0;
    others.calls = others.ns = 0;
    pthread_mutex_unlock(&row_lock);
}

/* ---- the table ---- */

static int by_device_and_time(const void *a, const void *b)
{
    const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
    int order = strcmp(y->key.device, x->key.device);

    return order ? order : (x->ns < y->ns) - (x->ns > y->ns);
}

static uint64_t total_of(const char *device)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < MAX_ROWS; i++)
        if (rows[i].key.name && strcmp(rows[i].key.device, device) == 0)
            sum += rows[i].ns;
    return sum;
}

static void print_row(FILE *out, const struct row *r)
{
    uint64_t total = total_of(r->key.device);

    fprintf(out, "%12" PRIu64 " %14.1f %12.2f %6.1f%%  %s %s%s%s%s\n", r->calls,
            (double)r->ns / 1e3, (double)r->ns / 1e3 / (double)MAX(r->calls, 1),
            total ? 100.0 * (double)r->ns / (double)total : 0, r->key.device, r->key.name,
            r->key.variant ? " (" : "", r->key.variant ? r->key.variant : "",
            r->key.variant ? ")" : "");
}

void times_print(FILE *out, const char *family)
{
    static const struct row *sorted[MAX_ROWS];
    size_t n = 0;

    pthread_mutex_lock(&row_lock);
    for (size_t i = 0; i < MAX_ROWS; i++) {
        const struct times_key *k = &rows[i].key;
        if (k->name && (!family || (k->family && strstr(k->family, family))))
            sorted[n++] = &rows[i];
    }
    qsort(sorted, n, sizeof sorted[0], by_device_and_time);
    if (n)
        fprintf(out, "%12s %14s %12s %7s  %s\n", "calls", "total us", "mean us", "share",
                "kernel or op");
    for (size_t i = 0; i < n; i++)
        print_row(out, sorted[i]);
    if (others.calls && !family)
        print_row(out, &others);
    pthread_mutex_unlock(&row_lock);
}
