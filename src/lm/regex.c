#include "lm/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/mem.h"

/* The JIT compiler's own stack grows up to this; what needs more is matched without it. */
#define JIT_STACK_START ((size_t)32 << 10)
#define JIT_STACK_MAX ((size_t)1 << 20)
/* Backtracking that needs more memory than this, in KiB, is given up. */
#define HEAP_LIMIT (64u << 10)

struct rx {
    pcre2_general_context *memory;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    pcre2_code *code;
    pcre2_match_data *match;
    bool jit;
};

static void *alloc_hook(size_t n, void *data)
{
    (void)data;
    return mem_alloc(n);
}

static void free_hook(void *p, void *data)
{
    (void)data;
    mem_free(p);
}

static enum err compile(struct rx *rx, const char *pattern, size_t n, unsigned flags)
{
    /* "^" and "$" belong to lines in Oniguruma. */
    uint32_t options =
        flags & RX_LITERAL ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *context = pcre2_compile_context_create(rx->memory);
    PCRE2_UCHAR reason[256];
    int code;
    size_t at;

    if (!context)
        return ERR_NO_MEMORY;
    rx->code = pcre2_compile((PCRE2_SPTR)pattern, n, options | PCRE2_UTF, &code, &at, context);
    pcre2_compile_context_free(context);
    if (rx->code)
        return ERR_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return ERR_NO_MEMORY;
    pcre2_get_error_message(code, reason, sizeof reason);
    return err_set(ERR_ARG, "%s (at %zu of %.*s)", (char *)reason, at, (int)MIN(n, (size_t)200),
                   pattern);
}

static enum err prepare(struct rx *rx)
{
    rx->match = pcre2_match_data_create(1, rx->memory);
    rx->context = pcre2_match_context_create(rx->memory);
    if (!rx->match || !rx->context)
        return ERR_NO_MEMORY;
    pcre2_set_heap_limit(rx->context, HEAP_LIMIT);
    rx->jit = pcre2_jit_compile(rx->code, PCRE2_JIT_COMPLETE) == 0;
    if (rx->jit)
        rx->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, rx->memory);
    if (rx->stack)
        pcre2_jit_stack_assign(rx->context, NULL, rx->stack);
    return ERR_OK;
}

enum err rx_create(struct rx **out, const char *pattern, size_t n, unsigned flags)
{
    struct rx *rx = mem_alloc(sizeof *rx);
    struct str translated = { 0 };
    enum err err = ERR_NO_MEMORY;

    if (!rx || !(rx->memory = pcre2_general_context_create(alloc_hook, free_hook, NULL)))
        goto out;
    if (flags & RX_LITERAL)
        TRY(str_add(&translated, pattern, n));
    else
        TRY(rx_translate(&translated, pattern, n));
    TRY(compile(rx, translated.v ? translated.v : "", translated.n, flags));
    TRY(prepare(rx));
    *out = rx;
    rx = NULL;
out:
    rx_destroy(&rx);
    VEC_FINI(&translated);
    return err;
}

void rx_destroy(struct rx **prx)
{
    struct rx *rx = *prx;

    *prx = NULL;
    if (!rx)
        return;
    pcre2_match_data_free(rx->match);
    pcre2_match_context_free(rx->context);
    pcre2_jit_stack_free(rx->stack);
    pcre2_code_free(rx->code);
    pcre2_general_context_free(rx->memory);
    mem_free(rx);
}

void rx_iter_init(struct rx_iter *it, struct rx *rx, const char *s, size_t n)
{
    *it = (struct rx_iter){ .rx = rx, .s = n ? s : "", .n = n };
}

static int match_at(const struct rx *rx, const struct rx_iter *it)
{
    PCRE2_SPTR s = (PCRE2_SPTR)it->s;
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;

    if (rx->jit)
        rc =
            pcre2_jit_match(rx->code, s, it->n, it->at, PCRE2_NO_UTF_CHECK, rx->match, rx->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(rx->code, s, it->n, it->at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, rx->match,
                         rx->context);
    return rc;
}

enum err rx_next(struct rx_iter *it, bool *found)
{
    PCRE2_UCHAR reason[128];

    *found = false;
    while (it->at <= it->n) {
        int rc = match_at(it->rx, it);
        if (rc == PCRE2_ERROR_NOMATCH)
            return ERR_OK;
        if (rc == PCRE2_ERROR_NOMEMORY)
            return ERR_NO_MEMORY;
        if (rc < 0) {
            pcre2_get_error_message(rc, reason, sizeof reason);
            return err_set(ERR_RUNTIME, "pattern of the tokenizer: %s", (char *)reason);
        }
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(it->rx->match);
        if (span[0] == span[1] && it->matched && it->last == span[1]) {
            it->at += it->at < it->n ? u8_length(it->s[it->at]) : 1;
            continue;
        }
        it->start = span[0];
        it->at = it->last = it->end = span[1];
        it->matched = *found = true;
        return ERR_OK;
    }
    return ERR_OK;
}
