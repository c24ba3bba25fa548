#include "base/gate.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

extern char **environ;

const struct gate_info gate_table[GATE_COUNT] = {
#define GATE(id, kind, def, min, max, variable, text)                                              \
    [GATE_##id] = { GATE_KIND_##kind, def, min, max, variable, text },
#include "base/gate.def"
#undef GATE
};

const char *const family_names[FAMILY_COUNT] = {
#define FAMILY(id) [FAMILY_##id] = #id,
#include "backend/vulkan/ops/variant_families.def"
#undef FAMILY
};

static const struct alias {
    const char *variable;
    enum gate id;
    const char *value;
} aliases[] = {
#define ALIAS(variable, id, value) { variable, GATE_##id, value },
#include "base/gate_alias.def"
#undef ALIAS
};

_Atomic int64_t gate_values[GATE_COUNT];
static const char *_Atomic text_values[GATE_COUNT];
static pthread_once_t read_once = PTHREAD_ONCE_INIT;
atomic_bool gate_is_read;
_Atomic uint32_t gate_n_changes;

static bool parse_bool(const char *s, int64_t *value)
{
    static const struct {
        const char *word;
        int64_t value;
    } words[] = { { "1", 1 },  { "0", 0 },   { "true", 1 }, { "false", 0 },
                  { "on", 1 }, { "off", 0 }, { "yes", 1 },  { "no", 0 } };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasecmp(s, words[i].word) == 0) {
            *value = words[i].value;
            return true;
        }
    return false;
}

static bool parse_int(const char *s, const struct gate_info *g, int64_t *value)
{
    char *end;

    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || end == s || *end || v < g->min || v > g->max)
        return false;
    *value = v;
    return true;
}

static bool add_family(const char *name, size_t len, int64_t *value)
{
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (strlen(family_names[i]) == len && strncasecmp(family_names[i], name, len) == 0) {
            *value |= (int64_t)1 << i;
            return true;
        }
    return false;
}

/* Everything or nothing, as of a BOOL, or names with commas between them. */
static bool parse_families(const char *s, int64_t *value)
{
    int64_t all, sum = 0;

    if (parse_bool(s, &all)) {
        *value = all ? FAMILIES_ALL : 0;
        return true;
    }
    for (size_t len;; s += len + 1) {
        len = strcspn(s, ",");
        if (!add_family(s, len, &sum))
            return false;
        if (!s[len])
            break;
    }
    *value = sum;
    return true;
}

bool gate_parse(enum gate id, const char *text, int64_t *value)
{
    const struct gate_info *g = &gate_table[id];

    *value = g->def;
    if (!text)
        return true;
    switch (g->kind) {
    case GATE_KIND_BOOL:
        return parse_bool(text, value);
    case GATE_KIND_FAMILIES:
        return parse_families(text, value);
    default:
        return parse_int(text, g, value);
    }
}

static void format_families(int64_t value, char room[GATE_ROOM])
{
    size_t used = 0;

    for (int i = 0; i < FAMILY_COUNT; i++)
        if (value >> i & 1)
            used += (size_t)snprintf(room + used, GATE_ROOM - used, "%s%s", used ? "," : "",
                                     family_names[i]);
}

const char *gate_format(enum gate id, char room[GATE_ROOM])
{
    enum gate_kind kind = gate_table[id].kind;

    if (kind == GATE_KIND_TEXT) {
        const char *text = gate_text(id);
        return text ? text : "";
    }
    int64_t value = gate_int(id);
    if (kind == GATE_KIND_FAMILIES && value != 0 && value != FAMILIES_ALL)
        format_families(value, room);
    else
        snprintf(room, GATE_ROOM, "%" PRId64, kind == GATE_KIND_FAMILIES ? value != 0 : value);
    return room;
}

static void read_gate(enum gate id)
{
    const struct gate_info *g = &gate_table[id];
    const char *s = getenv(g->variable);
    int64_t value;

    if (g->kind == GATE_KIND_TEXT) {
        atomic_store(&text_values[id], s && *s ? s : NULL);
        return;
    }
    if (!gate_parse(id, s, &value))
        log_early("%s=%s is not a valid setting, using %lld", g->variable, s, (long long)g->def);
    atomic_store(&gate_values[id], value);
}

static void read_alias(const struct alias *a)
{
    const char *s = getenv(a->variable);
    int64_t is_on = 0, value;

    if (s && !parse_bool(s, &is_on))
        log_early("%s=%s is not a valid setting, ignored", a->variable, s);
    if (is_on && gate_parse(a->id, a->value, &value))
        atomic_fetch_or(&gate_values[a->id], value);
}

static void read_all(void)
{
    for (int i = 0; i < GATE_COUNT; i++)
        read_gate((enum gate)i);
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        read_alias(&aliases[i]);
    atomic_store_explicit(&gate_is_read, true, memory_order_release);
}

void gate_read(void)
{
    pthread_once(&read_once, read_all);
}

const char *gate_text(enum gate id)
{
    if (!atomic_load_explicit(&gate_is_read, memory_order_acquire))
        gate_read();
    return atomic_load_explicit(&text_values[id], memory_order_relaxed);
}

int64_t gate_set_int(enum gate id, int64_t value)
{
    const struct gate_info *g = &gate_table[id];

    gate_read();
    int64_t old = atomic_exchange(&gate_values[id], MIN(MAX(value, g->min), g->max));
    atomic_fetch_add(&gate_n_changes, 1); /* last: who sees it sees the value */
    return old;
}

const char *gate_set_text(enum gate id, const char *value)
{
    gate_read();
    const char *old = atomic_exchange(&text_values[id], value);
    atomic_fetch_add(&gate_n_changes, 1);
    return old;
}

static bool is_name(const char *variable, const char *name, size_t len)
{
    return strlen(variable) == len && memcmp(variable, name, len) == 0;
}

static bool known(const char *name, size_t len)
{
    for (int i = 0; i < GATE_COUNT; i++)
        if (is_name(gate_table[i].variable, name, len))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (is_name(aliases[i].variable, name, len))
            return true;
    return false;
}

void gate_warn_unknown(void)
{
    static _Atomic bool done;

    if (atomic_exchange(&done, true))
        return;
    for (char **e = environ; e && *e; e++) {
        size_t len = strcspn(*e, "=");
        if (strncmp(*e, "MLX_", 4) == 0 && !known(*e, len))
            log_warn("unknown setting %.*s", (int)len, *e);
    }
}
