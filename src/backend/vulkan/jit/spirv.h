/* Writes SPIR-V modules at run time, and links functions of the packed library into them.
 *
 * Emission does not check each step: the first failure (memory) is kept in the module, later calls
 * do nothing useful but are safe, and spv_finish reports it. Thread-safety: one thread per module;
 * the library is constant. */
#pragma once

#include <spirv/unified1/spirv.h>

#include "base/common.h"
#include "base/err.h"
#include "base/mem.h"

/* ---- the library, generated from kernels/elementwise.comp by tools/gen_spirv_lib.py ---- */

/* Words whose bit in spv_lib_id_mask is set are numbers of ids: a global, a function, or a value
 * local to the function. */
extern const uint32_t spv_lib_words[];
extern const uint32_t spv_lib_id_mask[];

struct spv_lib_global { /* a type, a constant or the extended instruction set, without result id */
    uint32_t word, n_words;
    uint32_t is_typed; /* the first operand is a type */
};
extern const struct spv_lib_global spv_lib_globals[];
extern const uint32_t spv_lib_n_globals;

struct spv_lib_fn { /* sorted by name */
    const char *name;
    uint32_t word, n_words;
    uint32_t n_locals;
    uint32_t result; /* the global that is its result type */
    uint32_t weight; /* words with everything it calls: how much code a call adds when inlined */
};
extern const struct spv_lib_fn spv_lib_fns[];
extern const uint32_t spv_lib_n_fns;

/* Number of the function, -1 if there is none. */
int spv_lib_find(const char *name);

/* ---- modules ---- */

typedef VEC(uint32_t) spv_words;

struct spv_known {   /* a type or constant that is already in the module */
    uint32_t at, id; /* where in the section its instruction starts */
};

struct spv {
    enum err err;
    uint32_t bound;
    uint32_t caps[32];
    int n_caps;
    spv_words head, decorations, globals, code;
    size_t own_code; /* where the code begins that is not a kernel's: spirv_link.h */
    VEC(struct spv_known) known;
    VEC(uint32_t) pending; /* library functions to be linked */
    uint32_t *lib_ids;     /* ids of library globals, then functions; 0 = not in the module */
    uint32_t glsl_set;
    uint32_t version; /* of a kernel that was read */
};

MUST_CHECK enum err spv_init(struct spv *m);
void spv_fini(struct spv *m);

struct spv_entry {
    uint32_t function;         /* id of main */
    const uint32_t *variables; /* every global variable */
    int n_variables;
    uint32_t local_size;
    bool keep_special; /* NaN, infinities and signed zeros as IEEE 754 has them */
    bool round_even;   /* conversions to float16 round to nearest even */
};
/* Links what was called and joins the sections. *words (n of them) is the caller's, mem_free. */
MUST_CHECK enum err spv_finish(uint32_t **words, size_t *n, struct spv *m,
                               const struct spv_entry *entry);

/* The same for a module that goes on from a kernel's (spirv_link.h): its head is there, and is to
 * be completed with modes for the function that is the kernel's main. */
MUST_CHECK enum err spv_finish_linked(uint32_t **words, size_t *n, struct spv *m,
                                      const struct spv_entry *entry);

uint32_t spv_id(struct spv *m);
void spv_capability(struct spv *m, SpvCapability cap);

/* Types and constants are made once and found again. */
uint32_t spv_type_void(struct spv *m);
uint32_t spv_type_bool(struct spv *m);
uint32_t spv_type_int(struct spv *m, uint32_t bits, bool is_signed);
uint32_t spv_type_float(struct spv *m, uint32_t bits);
uint32_t spv_type_vector(struct spv *m, uint32_t component, uint32_t n);
uint32_t spv_type_pointer(struct spv *m, SpvStorageClass storage, uint32_t type);
uint32_t spv_const_u32(struct spv *m, uint32_t value);
uint32_t spv_const_u64(struct spv *m, uint64_t value);

/* Any type or constant by opcode. type 0: the instruction has none. */
uint32_t spv_global(struct spv *m, SpvOp op, uint32_t type, const uint32_t *operands, int n);
/* The same without looking for an equal one: types that get decorations of their own. */
uint32_t spv_global_new(struct spv *m, SpvOp op, uint32_t type, const uint32_t *operands, int n);

void spv_decorate(struct spv *m, const uint32_t *operands, int n);
void spv_decorate_member(struct spv *m, const uint32_t *operands, int n);

/* Begins the function of that id. */
void spv_function(struct spv *m, uint32_t id, uint32_t result, uint32_t type);
/* An instruction of the function being written. type 0: no type and no result; returns the id. */
uint32_t spv_emit(struct spv *m, SpvOp op, uint32_t type, const uint32_t *operands, int n);
void spv_label(struct spv *m, uint32_t id);

/* Id of a library function; it is linked by spv_finish. */
uint32_t spv_lib_id(struct spv *m, int fn);

/* Words as they are, and a type or constant that is in them from word `at` of the globals on. For
 * spirv_link.c, which reads what others wrote. */
enum spv_section { SPV_HEAD, SPV_DECORATIONS, SPV_GLOBALS, SPV_CODE };
void spv_copy(struct spv *m, enum spv_section section, const uint32_t *words, size_t n);
void spv_know(struct spv *m, size_t at, uint32_t id);

#define SPV_WORDS(...)                                                                             \
    (const uint32_t[]){ __VA_ARGS__ }, (int)ARRAY_LEN(((uint32_t[]){ __VA_ARGS__ }))
/* spv_op(m, SpvOpIAdd, type, a, b) */
#define spv_op(m, op, type, ...) spv_emit(m, op, type, SPV_WORDS(__VA_ARGS__))
#define spv_do(m, op, ...) ((void)spv_emit(m, op, 0, SPV_WORDS(__VA_ARGS__)))
