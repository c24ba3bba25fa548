/* Settings: one row in gate.def each, read once from the environment. The only getenv of the
 * project. */
#pragma once

#include <stdatomic.h>

#include "base/common.h"

enum gate_kind { GATE_KIND_BOOL, GATE_KIND_INT, GATE_KIND_TEXT, GATE_KIND_FAMILIES };

/* Bits of a setting of families. */
enum family {
#define FAMILY(id) FAMILY_##id,
#include "backend/vulkan/ops/variant_families.def"
#undef FAMILY
    FAMILY_COUNT
};
#define FAMILIES_ALL ((2 << FAMILY_COUNT) - 1) /* with a bit for what is of no family */
extern const char *const family_names[FAMILY_COUNT];

enum gate {
#define GATE(id, ...) GATE_##id,
#include "base/gate.def"
#undef GATE
    GATE_COUNT
};

struct gate_info {
    enum gate_kind kind;
    int64_t def, min, max;
    const char *variable, *text;
};

extern const struct gate_info gate_table[GATE_COUNT];

/* Value of a setting that is no TEXT. Thread-safety: safe. Inline: settings are asked several times
 * per dispatch. */
extern atomic_bool gate_is_read;
extern _Atomic int64_t gate_values[GATE_COUNT];
void gate_read(void);
static inline int64_t gate_int(enum gate id)
{
    if (!atomic_load_explicit(&gate_is_read, memory_order_acquire))
        gate_read();
    return atomic_load_explicit(&gate_values[id], memory_order_relaxed);
}

static inline bool gate_on(enum gate id)
{
    return gate_int(id) != 0;
}

/* Of a setting of families. */
static inline bool gate_has(enum gate id, enum family family)
{
    return gate_int(id) >> family & 1;
}

/* The same of a setting where others were asked before, as by whoever opened the device. */
static inline int64_t gate_int_read(enum gate id)
{
    return atomic_load_explicit(&gate_values[id], memory_order_relaxed);
}

/* Value of a TEXT setting, NULL when unset. Borrowed for the life of the process. */
const char *gate_text(enum gate id);

/* Reads text as the variable of a setting that is no TEXT would be read; NULL gives the default.
 * False if it does not fit, and *value is the default. */
bool gate_parse(enum gate id, const char *text, int64_t *value);

/* The value as gate_parse reads it, "" of a TEXT that is unset; in room where it is no TEXT. */
#define GATE_ROOM 256
const char *gate_format(enum gate id, char room[GATE_ROOM]);

/* Scoped override: sets a value, cut to the row's range, and returns the previous one. For tests
 * and the command line. */
int64_t gate_set_int(enum gate id, int64_t value);
const char *gate_set_text(enum gate id, const char *value);
/* How often settings were set so: what was decided by them after it was asked may be kept while it
 * stays. */
extern _Atomic uint32_t gate_n_changes;
static inline uint32_t gate_changes(void)
{
    return atomic_load_explicit(&gate_n_changes, memory_order_acquire);
}

/* Warns about MLX_ variables that no row knows, once; called when the default device is chosen. */
void gate_warn_unknown(void);
