/* What mlx-vulkan adds to mlx-c. */
#include "api/handle.h"

#include <inttypes.h>
#include <pthread.h>
#include <strings.h>

#include "base/gate.h"
#include "base/stat.h"

const char *mlx_last_error(void)
{
    return err_text();
}

int mlx_stats_get(uint64_t *value, const char *name)
{
    static const char *const names[STAT_COUNT] = {
#define STAT(id, text) [STAT_##id] = #id,
#include "base/stat.def"
#undef STAT
    };
    struct call c = CALL(value);

    call_ptr(&c, name, "name");
    for (int i = 0; call_ok(&c) && i < STAT_COUNT; i++)
        if (strcasecmp(names[i], name) == 0) {
            *value = stat_get((enum stat)i);
            return 0;
        }
    return call_ok(&c) ? ABSENT : CALL_END(&c);
}

static int find_gate(struct call *c, const char *name)
{
    call_ptr(c, name, "name");
    for (int i = 0; call_ok(c) && i < GATE_COUNT; i++)
        if (strcmp(gate_table[i].variable, name) == 0)
            return i;
    return -1;
}

int mlx_setting_get(mlx_string *value, const char *name)
{
    struct call c = CALL(value);
    int id = find_gate(&c, name);
    struct text t = { 0 };

    if (call_ok(&c) && id < 0)
        return ABSENT;
    if (call_ok(&c) && gate_table[id].kind == GATE_KIND_TEXT) {
        const char *text = gate_text((enum gate)id);
        c.err = text_add(&t, "%s", text ? text : "");
    } else if (call_ok(&c)) {
        c.err = text_add(&t, "%" PRId64, gate_int((enum gate)id));
    }
    if (call_ok(&c))
        c.err = box_set_text(value, t.s.v);
    return CALL_END(&c);
}

/* Texts that were set. Whoever read one may keep it, so they stay for the process. */
static struct {
    pthread_mutex_t lock;
    VEC(char *) kept;
} texts = { .lock = PTHREAD_MUTEX_INITIALIZER };

static enum err set_text(enum gate id, const char *value)
{
    char *copy = NULL;
    enum err err = ERR_OK;

    if (value && *value) {
        if (!(copy = mem_strdup(value)))
            return ERR_NO_MEMORY;
        pthread_mutex_lock(&texts.lock);
        err = VEC_PUSH(&texts.kept, copy);
        pthread_mutex_unlock(&texts.lock);
    }
    if (err)
        mem_free(copy);
    else
        gate_set_text(id, copy);
    return err;
}

int mlx_setting_set(const char *name, const char *value)
{
    struct call c = CALL_BARE;
    int id = find_gate(&c, name);
    int64_t number;

    if (call_ok(&c) && id < 0)
        return ABSENT;
    if (call_ok(&c) && gate_table[id].kind == GATE_KIND_TEXT) {
        c.err = set_text((enum gate)id, value);
    } else if (call_ok(&c)) {
        if (gate_parse((enum gate)id, value, &number))
            gate_set_int((enum gate)id, number);
        else
            c.err = err_set(ERR_ARG, "[%s] %s=%s is not a valid setting.", c.fn, name, value);
    }
    return CALL_END(&c);
}
