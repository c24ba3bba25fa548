/* SPIR-V modules of others: one compute entry point, and what a caller has to give it.
 *
 * The words are data from outside. Whatever they are, reading them stays within them, and what
 * cannot be a compute module of storage buffers is refused with the name of what is wrong. */
#pragma once

#include "base/mem.h"

/* Storage buffers: bindings 0, 1, ... of set 0. */
#define SPIRV_MAX_BINDINGS 32
#define SPIRV_MAX_SPEC 32
#define SPIRV_NAME_MAX 128

struct spirv_binding {
    uint32_t binding;
    uint64_t min_size; /* bytes of what has a size: a runtime array has none */
};

enum spirv_capability {
#define CAPABILITY(name, number) SPIRV_CAP_##name = number,
#include "spirv/capabilities.def"
};

enum spirv_spec_kind { SPIRV_SPEC_BOOL, SPIRV_SPEC_INT, SPIRV_SPEC_UINT, SPIRV_SPEC_FLOAT };
struct spirv_spec {
    uint32_t id, value;        /* of 32 bits; the module's own */
    enum spirv_spec_kind kind; /* BOOL: 0 or 1 */
};

struct spirv_info {
    uint32_t version; /* such as 0x00010500 for 1.5 */
    char entry[SPIRV_NAME_MAX];
    uint32_t local_size[3];
    int local_spec[3]; /* number in spec of the constant that decides, or -1 */
    bool has_size_id;  /* the size is said by the ids of constants, as modules of 1.6 may */
    uint32_t push_size;
    uint64_t shared_size;              /* bytes that workgroups share, as far as types say */
    VEC(struct spirv_binding) binding; /* ascending */
    VEC(struct spirv_spec) spec;       /* ascending ids; those of 32 bits */
    VEC(uint32_t) capability;
    VEC(char *) extension;
};

struct spirv_module {
    refcount rc;
    uint64_t hash; /* of the words */
    uint32_t *words;
    size_t n_words;
    struct spirv_info info;
};

/* A copy of the bytes, read and checked. ERR_ARG with "[spirv] REASON"; where SPIRV-Tools can be
 * opened at run time its validator has the last word. Thread-safety: safe; modules are constant. */
MUST_CHECK enum err spirv_new(struct spirv_module **out, const void *bytes, size_t n);
struct spirv_module *spirv_ref(struct spirv_module *m);
void spirv_unref(struct spirv_module **m);
bool spirv_equal(const struct spirv_module *a, const struct spirv_module *b);

/* The name of a capability, "" if it is none that is known here. */
const char *spirv_capability_name(uint32_t capability);

/* The storage buffer of that binding, or NULL. */
const struct spirv_binding *spirv_find_binding(const struct spirv_info *info, uint32_t binding);
/* Number in info->spec of the constant with that id, or -1. */
int spirv_find_spec(const struct spirv_info *info, uint32_t id);

/* ---- parts of spirv_new ---- */

/* reflect.c; fills *out, which spirv_info_fini releases in any case. */
MUST_CHECK enum err spirv_reflect(struct spirv_info *out, const uint32_t *words, size_t n);
void spirv_info_fini(struct spirv_info *info);
/* validate.c: ERR_OK without SPIRV-Tools. */
MUST_CHECK enum err spirv_validate(const uint32_t *words, size_t n);
bool spirv_can_validate(void);
