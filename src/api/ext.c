/* What mlx-vulkan adds to mlx-c. */
#include "api/handle.h"

#include <ctype.h>
#include <pthread.h>
#include <strings.h>

#include "base/gate.h"
#include "base/stat.h"

const char *mlx_last_error(void)
{
    return err_text();
}

#define SAME_KIND(a, b) static_assert((int)MLX_ERROR_##a == (int)ERR_##b, "public kinds of errors")
SAME_KIND(NONE, OK);
SAME_KIND(ARGUMENT, ARG);
SAME_KIND(RANGE, RANGE);
SAME_KIND(OVERFLOW, OVERFLOW);
SAME_KIND(RUNTIME, RUNTIME);
SAME_KIND(UNSUPPORTED, UNSUPPORTED);
SAME_KIND(NO_MEMORY, NO_MEMORY);
SAME_KIND(DEVICE, DEVICE);

mlx_error_kind mlx_last_error_kind(void)
{
    return (mlx_error_kind)call_last_error();
}

/* ---- places ---- */

static_assert(sizeof(mlx_array_place) == sizeof(struct arr_box), "a place is a box of the caller");

void mlx_array_place_clear(mlx_array_place *place)
{
    struct arr_box *box = (struct arr_box *)place;

    if (box)
        arr_unref(&box->arr);
}

int mlx_array_set_number(mlx_array *arr, double val, mlx_dtype dtype)
{
    struct call c = CALL(arr);
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err = arr_new_number(&c.out, val, t);
    return CALL_END_ARR(&c, arr);
}

/* ---- counters and settings ---- */

static const char *const stat_names[STAT_COUNT] = {
#define STAT(id, text) [STAT_##id] = #id,
#include "base/stat.def"
#undef STAT
};

enum { STAT_NAME = 64 };

static const char *lower_name(char to[STAT_NAME], const char *from)
{
    size_t n = 0;

    for (; from[n] && n + 1 < STAT_NAME; n++)
        to[n] = (char)tolower((unsigned char)from[n]);
    to[n] = '\0';
    return to;
}

int mlx_stats_names(mlx_vector_string *names)
{
    struct call c = CALL(names);
    char lower[STAT_COUNT][STAT_NAME];
    const char *list[STAT_COUNT];

    for (int i = 0; i < STAT_COUNT; i++)
        list[i] = lower_name(lower[i], stat_names[i]);
    if (call_ok(&c))
        c.err = box_set_texts(names, list, STAT_COUNT);
    return CALL_END(&c);
}

int mlx_stats_get(uint64_t *value, const char *name)
{
    struct call c = CALL(value);

    call_ptr(&c, name, "name");
    for (int i = 0; call_ok(&c) && i < STAT_COUNT; i++)
        if (strcasecmp(stat_names[i], name) == 0) {
            *value = stat_get((enum stat)i);
            return 0;
        }
    return call_ok(&c) ? ABSENT : CALL_END(&c);
}

int mlx_setting_names(mlx_vector_string *names)
{
    struct call c = CALL(names);
    const char *list[GATE_COUNT];

    for (int i = 0; i < GATE_COUNT; i++)
        list[i] = gate_table[i].variable;
    if (call_ok(&c))
        c.err = box_set_texts(names, list, GATE_COUNT);
    return CALL_END(&c);
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
    char room[GATE_ROOM];

    if (call_ok(&c) && id < 0)
        return ABSENT;
    if (call_ok(&c))
        c.err = text_add(&t, "%s", gate_format((enum gate)id, room));
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
