/* Reading a module: one walk over its instructions, in which types, constants and variables are
 * noted by id, then what they say together. Decorations stand before what they decorate. */
#include "spirv/reflect.h"

#include <stdlib.h>

#define MAGIC 0x07230203u
#define MAGIC_SWAPPED 0x03022307u
#define HEADER_WORDS 5
#define MAX_BOUND (1u << 22) /* the limit of SPIR-V */

static enum err refuse(const char *why)
{
    return err_set(ERR_ARG, "[spirv] Not a compute module: %s.", why);
}

static uint64_t add_sizes(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return ADD_OVERFLOWS(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t scale_size(uint64_t a, uint64_t b)
{
    uint64_t product;

    return MUL_OVERFLOWS(a, b, &product) ? UINT64_MAX : product;
}

/* ---- ids and their decorations ---- */

/* The instruction that defines the id, or NULL. */
static const uint32_t *def_of(const struct reading *r, uint32_t id)
{
    return id < r->bound && r->def[id] ? r->words + r->def[id] : NULL;
}

static bool is_def(const struct reading *r, uint32_t id, enum spirv_op op)
{
    const uint32_t *at = def_of(r, id);

    return at && spirv_op(at) == op;
}

static enum err define(struct reading *r, const uint32_t *at, uint32_t word)
{
    uint32_t id = at[word];

    if (!id || id >= r->bound || r->def[id])
        return refuse("an id is out of bounds or defined twice");
    r->def[id] = (uint32_t)(at - r->words);
    return ERR_OK;
}

static enum err decorate(struct reading *r, const uint32_t *at)
{
    bool is_member = spirv_op(at) == SPIRV_OP_MEMBER_DECORATE;
    uint32_t first = is_member ? 3 : 2, n = spirv_length(at);
    struct deco d = { .member = is_member ? at[2] : NO_MEMBER,
                      .kind = at[first],
                      .value = n > first + 1 ? at[first + 1] : 0 };
    enum err err;

    if (at[1] >= r->bound)
        return refuse("a decoration of an id out of bounds");
    d.next = r->first_deco[at[1]];
    TRY(VEC_PUSH(&r->deco, d));
    r->first_deco[at[1]] = (uint32_t)r->deco.n; /* one more than its number: 0 is none */
out:
    return err;
}

static bool find_deco(const struct reading *r, uint32_t id, uint32_t kind, uint32_t *value)
{
    for (uint32_t i = id < r->bound ? r->first_deco[id] : 0; i; i = r->deco.v[i - 1].next) {
        const struct deco *d = &r->deco.v[i - 1];
        if (d->kind == kind && d->member == NO_MEMBER) {
            if (value)
                *value = d->value;
            return true;
        }
    }
    return false;
}

/* ---- sizes of types, in the order of their definitions ---- */

static uint64_t size_of(const struct reading *r, uint32_t id)
{
    return id < r->bound ? r->size[id] : 0;
}

/* The value of a constant of 32 bits as the module has it; 0 if there is none. */
static uint32_t value_of(const struct reading *r, uint32_t id)
{
    const uint32_t *at = def_of(r, id);

    if (!at || (spirv_op(at) != SPIRV_OP_CONSTANT && spirv_op(at) != SPIRV_OP_SPEC_CONSTANT))
        return 0;
    return at[3];
}

static uint64_t array_size(const struct reading *r, const uint32_t *at)
{
    uint64_t element = size_of(r, at[2]), length = value_of(r, at[3]);
    uint32_t stride = 0;

    if (!length)
        return 0;
    if (!find_deco(r, at[1], DECORATION_ARRAY_STRIDE, &stride))
        return scale_size(element, length);
    return add_sizes(scale_size(length - 1, stride), element);
}

/* A matrix within a struct: its columns lie a stride apart. */
static uint64_t matrix_size(const struct reading *r, const uint32_t *type, uint32_t stride)
{
    return add_sizes(scale_size(type[3] ? type[3] - 1 : 0, stride), size_of(r, type[2]));
}

/* What decorations that follow one another say about one member. */
struct member {
    uint32_t number, offset, stride;
    bool has_offset;
};

static uint64_t member_end(const struct reading *r, const uint32_t *at, const struct member *m)
{
    if (!m->has_offset || m->number >= spirv_length(at) - 2)
        return 0;
    uint32_t type = at[2 + m->number];
    bool is_matrix = m->stride && is_def(r, type, SPIRV_OP_TYPE_MATRIX);
    uint64_t size = is_matrix ? matrix_size(r, def_of(r, type), m->stride) : size_of(r, type);
    return add_sizes(m->offset, size);
}

/* From the offsets of the members, as far as they say so. */
static uint64_t struct_size(const struct reading *r, const uint32_t *at)
{
    struct member m = { .number = NO_MEMBER };
    uint64_t size = 0;

    for (uint32_t i = r->first_deco[at[1]]; i; i = r->deco.v[i - 1].next) {
        const struct deco *d = &r->deco.v[i - 1];
        if (d->member != m.number) {
            size = MAX(size, member_end(r, at, &m));
            m = (struct member){ .number = d->member };
        }
        if (d->kind == DECORATION_OFFSET) {
            m.offset = d->value;
            m.has_offset = true;
        } else if (d->kind == DECORATION_MATRIX_STRIDE) {
            m.stride = d->value;
        }
    }
    return MAX(size, member_end(r, at, &m));
}

static uint64_t pointer_size(uint32_t storage)
{
    return storage == STORAGE_PHYSICAL ? sizeof(uint64_t) : 0;
}

static uint64_t type_size(const struct reading *r, const uint32_t *at)
{
    switch (spirv_op(at)) {
    case SPIRV_OP_TYPE_INT:
    case SPIRV_OP_TYPE_FLOAT:
        return at[2] / 8;
    case SPIRV_OP_TYPE_VECTOR:
    case SPIRV_OP_TYPE_MATRIX:
        return scale_size(size_of(r, at[2]), at[3]);
    case SPIRV_OP_TYPE_ARRAY:
        return array_size(r, at);
    case SPIRV_OP_TYPE_STRUCT:
        return struct_size(r, at);
    case SPIRV_OP_TYPE_POINTER:
        return pointer_size(at[2]);
    default:
        return 0;
    }
}

/* ---- one instruction ---- */

/* Text of at most the words that are left; NULL if it does not end there. */
static const char *text_at(const uint32_t *at, uint32_t word)
{
    const char *text = (const char *)(at + word);
    size_t room = ((size_t)spirv_length(at) - word) * sizeof *at;

    return memchr(text, 0, room) ? text : NULL;
}

/* The only compute entry point, or that of several which is called main. */
static enum err read_entry(struct reading *r, const uint32_t *at)
{
    const char *name = text_at(at, 3);

    if (at[1] != MODEL_COMPUTE)
        return ERR_OK;
    if (!name || strlen(name) >= SPIRV_NAME_MAX)
        return refuse("the name of an entry point has no end or is too long");
    r->n_entries++;
    bool is_main = strcmp(name, "main") == 0;
    if (r->n_entries > 1 && !is_main)
        return ERR_OK;
    r->is_main = is_main;
    r->entry = at[2];
    memcpy(r->info->entry, name, strlen(name) + 1);
    return ERR_OK;
}

static enum err read_extension(struct reading *r, const uint32_t *at)
{
    const char *name = text_at(at, 1);
    char *copy;

    if (!name)
        return refuse("the name of an extension has no end");
    if (!(copy = mem_strdup(name)))
        return ERR_NO_MEMORY;
    enum err err = VEC_PUSH(&r->info->extension, copy);
    if (err)
        mem_free(copy);
    return err;
}

/* A local size may be said before it is known which entry point counts: the last of those is kept
 * which belong to the entry so far. */
static enum err read_mode(struct reading *r, const uint32_t *at)
{
    bool by_id = spirv_op(at) == SPIRV_OP_EXECUTION_MODE_ID;

    if (at[1] != r->entry || at[2] != (by_id ? MODE_LOCAL_SIZE_ID : MODE_LOCAL_SIZE))
        return ERR_OK;
    if (spirv_length(at) < 6)
        return refuse("a local size without three numbers");
    *(by_id ? &r->mode_id : &r->mode) = (uint32_t)(at - r->words);
    return ERR_OK;
}

static enum err read_type(struct reading *r, const uint32_t *at)
{
    enum err err = define(r, at, 1);

    if (!err)
        r->size[at[1]] = type_size(r, at);
    return err;
}

static enum err read_forward(struct reading *r, const uint32_t *at)
{
    if (at[1] >= r->bound)
        return refuse("an id is out of bounds");
    r->size[at[1]] = pointer_size(at[2]);
    return ERR_OK;
}

static enum err read_spec(struct reading *r, const uint32_t *at)
{
    enum err err = define(r, at, 2);

    return err ? err : VEC_PUSH(&r->spec, (uint32_t)(at - r->words));
}

static enum err read_composite(struct reading *r, const uint32_t *at)
{
    uint32_t built_in;
    enum err err;

    TRY(define(r, at, 2));
    if (find_deco(r, at[2], DECORATION_BUILT_IN, &built_in) && built_in == BUILT_IN_WORKGROUP_SIZE)
        err = VEC_PUSH(&r->built_in, (uint32_t)(at - r->words));
out:
    return err;
}

/* Those of functions concern nobody else. */
static enum err read_variable(struct reading *r, const uint32_t *at)
{
    enum err err;

    if (r->in_function)
        return ERR_OK;
    TRY(define(r, at, 2));
    err = VEC_PUSH(&r->variable, (uint32_t)(at - r->words));
out:
    return err;
}

static enum err read_capability(struct reading *r, const uint32_t *at)
{
    return VEC_PUSH(&r->info->capability, at[1]);
}

static enum err read_model(struct reading *r, const uint32_t *at)
{
    (void)at;
    r->has_model = true;
    return ERR_OK;
}

static enum err read_constant(struct reading *r, const uint32_t *at)
{
    return define(r, at, 2);
}

static enum err read_function(struct reading *r, const uint32_t *at)
{
    if (r->in_function)
        return refuse("a function within a function");
    r->in_function = true;
    r->has_function |= at[2] == r->entry;
    return ERR_OK;
}

static enum err read_function_end(struct reading *r, const uint32_t *at)
{
    (void)at;
    if (!r->in_function)
        return refuse("a function ends that did not begin");
    r->in_function = false;
    return ERR_OK;
}

/* Instructions that say something, with the fewest words they have. */
static const struct {
    enum spirv_op op;
    uint32_t least;
    enum err (*read)(struct reading *r, const uint32_t *at);
} readers[] = {
    { SPIRV_OP_EXTENSION, 2, read_extension },
    { SPIRV_OP_MEMORY_MODEL, 3, read_model },
    { SPIRV_OP_ENTRY_POINT, 4, read_entry },
    { SPIRV_OP_EXECUTION_MODE, 3, read_mode },
    { SPIRV_OP_EXECUTION_MODE_ID, 3, read_mode },
    { SPIRV_OP_CAPABILITY, 2, read_capability },
    { SPIRV_OP_TYPE_BOOL, 2, read_type },
    { SPIRV_OP_TYPE_INT, 4, read_type },
    { SPIRV_OP_TYPE_FLOAT, 3, read_type },
    { SPIRV_OP_TYPE_VECTOR, 4, read_type },
    { SPIRV_OP_TYPE_MATRIX, 4, read_type },
    { SPIRV_OP_TYPE_ARRAY, 4, read_type },
    { SPIRV_OP_TYPE_RUNTIME_ARRAY, 3, read_type },
    { SPIRV_OP_TYPE_STRUCT, 2, read_type },
    { SPIRV_OP_TYPE_POINTER, 4, read_type },
    { SPIRV_OP_TYPE_FORWARD_POINTER, 3, read_forward },
    { SPIRV_OP_CONSTANT, 4, read_constant },
    { SPIRV_OP_CONSTANT_COMPOSITE, 3, read_composite },
    { SPIRV_OP_SPEC_CONSTANT_TRUE, 3, read_spec },
    { SPIRV_OP_SPEC_CONSTANT_FALSE, 3, read_spec },
    { SPIRV_OP_SPEC_CONSTANT, 4, read_spec },
    { SPIRV_OP_SPEC_CONSTANT_COMPOSITE, 3, read_composite },
    { SPIRV_OP_FUNCTION, 5, read_function },
    { SPIRV_OP_FUNCTION_END, 1, read_function_end },
    { SPIRV_OP_VARIABLE, 4, read_variable },
    { SPIRV_OP_DECORATE, 3, decorate },
    { SPIRV_OP_MEMBER_DECORATE, 4, decorate },
};

static enum err read_instruction(struct reading *r, const uint32_t *at)
{
    enum spirv_op op = spirv_op(at);

    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        if (readers[i].op != op)
            continue;
        if (spirv_length(at) < readers[i].least)
            return refuse("an instruction is too short");
        return readers[i].read(r, at);
    }
    return ERR_OK;
}

static enum err walk(struct reading *r)
{
    enum err err = ERR_OK;

    for (size_t i = HEADER_WORDS; i < r->n; i += spirv_length(r->words + i)) {
        uint32_t length = spirv_length(r->words + i);
        if (!length || length > r->n - i)
            return refuse("an instruction goes beyond its end");
        TRY(read_instruction(r, r->words + i));
    }
    if (r->in_function)
        return refuse("its last function has no end");
out:
    return err;
}

/* ---- what it says together ---- */

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct spirv_spec *)a)->id, y = ((const struct spirv_spec *)b)->id;

    return (x > y) - (x < y);
}

static enum err add_spec(struct reading *r, const uint32_t *at)
{
    struct spirv_spec s = { .kind = SPIRV_SPEC_BOOL,
                            .value = spirv_op(at) == SPIRV_OP_SPEC_CONSTANT_TRUE };
    const uint32_t *type = def_of(r, at[1]);

    if (!find_deco(r, at[2], DECORATION_SPEC_ID, &s.id))
        return ERR_OK;
    if (spirv_op(at) == SPIRV_OP_SPEC_CONSTANT) {
        bool is_int = type && spirv_op(type) == SPIRV_OP_TYPE_INT;
        if (!type || (!is_int && spirv_op(type) != SPIRV_OP_TYPE_FLOAT))
            return refuse("a specialization constant that is no number");
        if (type[2] != 32) /* keeps the module's own value */
            return ERR_OK;
        s.kind = !is_int ? SPIRV_SPEC_FLOAT : type[3] ? SPIRV_SPEC_INT : SPIRV_SPEC_UINT;
        s.value = at[3];
    }
    if (spirv_find_spec(r->info, s.id) >= 0)
        return ERR_OK;
    if (r->info->spec.n == SPIRV_MAX_SPEC)
        return refuse("too many specialization constants");
    return VEC_PUSH(&r->info->spec, s);
}

static enum err take_specs(struct reading *r)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->spec.n; i++)
        TRY(add_spec(r, r->words + r->spec.v[i]));
    if (r->info->spec.n)
        qsort(r->info->spec.v, r->info->spec.n, sizeof *r->info->spec.v, by_id);
out:
    return err;
}

static void take_size(struct reading *r, int axis, uint32_t id)
{
    uint32_t spec;

    r->info->local_size[axis] = value_of(r, id);
    if (is_def(r, id, SPIRV_OP_SPEC_CONSTANT) && find_deco(r, id, DECORATION_SPEC_ID, &spec))
        r->info->local_spec[axis] = spirv_find_spec(r->info, spec);
}

/* A constant that is the workgroup's size counts for more than what the entry point says. */
static enum err take_local_size(struct reading *r)
{
    const uint32_t *built_in = r->built_in.n ? r->words + r->built_in.v[0] : NULL;

    r->info->has_size_id = r->mode_id != 0;
    for (int i = 0; i < 3; i++) {
        r->info->local_spec[i] = -1;
        if (built_in && spirv_length(built_in) >= 6)
            take_size(r, i, built_in[3 + i]);
        else if (r->mode_id)
            take_size(r, i, r->words[r->mode_id + 3 + (uint32_t)i]);
        else if (r->mode)
            r->info->local_size[i] = r->words[r->mode + 3 + (uint32_t)i];
        if (!r->info->local_size[i])
            return refuse("its workgroups have no size");
    }
    return ERR_OK;
}

static int by_binding(const void *a, const void *b)
{
    uint32_t x = ((const struct spirv_binding *)a)->binding,
             y = ((const struct spirv_binding *)b)->binding;

    return (x > y) - (x < y);
}

static enum err add_binding(struct reading *r, const uint32_t *at, uint32_t type)
{
    uint32_t set = 0, number = 0;

    if (!find_deco(r, at[2], DECORATION_SET, &set) ||
        !find_deco(r, at[2], DECORATION_BINDING, &number))
        return refuse("a buffer without set and binding");
    if (set)
        return err_set(ERR_ARG, "[spirv] Binding %u of set %u: only set 0 is there.", number, set);
    if (!is_def(r, type, SPIRV_OP_TYPE_STRUCT))
        return err_set(ERR_ARG, "[spirv] Binding %u is not one storage buffer.", number);
    if (number >= SPIRV_MAX_BINDINGS)
        return err_set(ERR_ARG, "[spirv] Binding %u: there are %d at most.", number,
                       SPIRV_MAX_BINDINGS);
    for (size_t i = 0; i < r->info->binding.n; i++) {
        struct spirv_binding *b = &r->info->binding.v[i];
        if (b->binding != number)
            continue;
        b->min_size = MAX(b->min_size, size_of(r, type));
        return ERR_OK;
    }
    return VEC_PUSH(&r->info->binding, (struct spirv_binding){ number, size_of(r, type) });
}

/* Buffers are blocks of the class StorageBuffer or, before that was there, decorated ones of the
 * class Uniform. */
static enum err take_variable(struct reading *r, const uint32_t *at)
{
    const uint32_t *pointer = def_of(r, at[1]);
    uint32_t storage = at[3], number = 0;

    if (!pointer || spirv_op(pointer) != SPIRV_OP_TYPE_POINTER)
        return refuse("a variable whose type is no pointer");
    uint32_t type = pointer[3];
    if (storage == STORAGE_WORKGROUP)
        r->info->shared_size = add_sizes(r->info->shared_size, size_of(r, type));
    if (storage == STORAGE_PUSH_CONSTANT) {
        r->info->push_size = (uint32_t)MIN(MAX(size_of(r, type), r->info->push_size), UINT32_MAX);
        return ERR_OK;
    }
    if (storage == STORAGE_BUFFER ||
        (storage == STORAGE_UNIFORM && find_deco(r, type, DECORATION_BUFFER_BLOCK, NULL)))
        return add_binding(r, at, type);
    if (storage != STORAGE_UNIFORM && storage != STORAGE_UNIFORM_CONSTANT)
        return ERR_OK;
    (void)find_deco(r, at[2], DECORATION_BINDING, &number);
    return err_set(ERR_ARG, "[spirv] Binding %u is %s: arrays are storage buffers.", number,
                   storage == STORAGE_UNIFORM ? "a uniform buffer" : "an image or a sampler");
}

static enum err take_variables(struct reading *r)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->variable.n; i++)
        TRY(take_variable(r, r->words + r->variable.v[i]));
    if (r->info->binding.n)
        qsort(r->info->binding.v, r->info->binding.n, sizeof *r->info->binding.v, by_binding);
out:
    return err;
}

static enum err check_whole(const struct reading *r)
{
    if (!r->n_entries)
        return refuse("it has no compute entry point");
    if (r->n_entries > 1 && !r->is_main)
        return refuse("it has several compute entry points, none of them called main");
    if (!r->has_model)
        return refuse("it has no memory model");
    if (!r->has_function)
        return refuse("its entry point is no function");
    return ERR_OK;
}

static enum err read_header(struct reading *r)
{
    const uint32_t *w = r->words;

    if (r->n < HEADER_WORDS || w[0] != MAGIC)
        return refuse(r->n && w[0] == MAGIC_SWAPPED ? "its bytes are in the other order"
                                                    : "it does not begin as SPIR-V does");
    if (w[1] & 0xff0000ffu || w[1] < 0x00010000u || w[1] > 0x00010600u)
        return refuse("its version of SPIR-V is none from 1.0 to 1.6");
    if (!w[3] || w[3] > MAX_BOUND)
        return refuse("the bound of its ids is out of range");
    if (w[4])
        return refuse("its schema is not 0");
    r->info->version = w[1];
    r->bound = w[3];
    return ERR_OK;
}

static enum err alloc_tables(struct reading *r)
{
    r->def = mem_alloc_array(r->bound, sizeof *r->def);
    r->first_deco = mem_alloc_array(r->bound, sizeof *r->first_deco);
    r->size = mem_alloc_array(r->bound, sizeof *r->size);
    return r->def && r->first_deco && r->size ? ERR_OK : ERR_NO_MEMORY;
}

enum err spirv_reflect(struct spirv_info *out, const uint32_t *words, size_t n)
{
    struct reading r = { .words = words, .n = n, .info = out };
    enum err err;

    TRY(read_header(&r));
    TRY(alloc_tables(&r));
    TRY(walk(&r));
    TRY(check_whole(&r));
    TRY(take_specs(&r));
    TRY(take_local_size(&r));
    err = take_variables(&r);
out:
    mem_free(r.def);
    mem_free(r.first_deco);
    mem_free(r.size);
    VEC_FINI(&r.deco);
    VEC_FINI(&r.variable);
    VEC_FINI(&r.spec);
    VEC_FINI(&r.built_in);
    return err;
}
