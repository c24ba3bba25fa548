#include "lm/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/clock.h"
#include "base/mem.h"

/* Patterns come from files, so everything they may cost is limited; those of tokenizers stay far
 * below all of it.
 *
 * The JIT compiler's own stack grows up to this; what needs more is matched without it. */
#define JIT_STACK_START ((size_t)32 << 10)
#define JIT_STACK_MAX ((size_t)1 << 20)
/* Backtracking that needs more memory than this, in KiB, is given up; so is an attempt to match at
 * one place that takes more steps than this and some for each byte of the text, or goes deeper. */
#define HEAP_LIMIT (64u << 10)
#define MATCH_LIMIT 1000000u
#define MATCH_LIMIT_PER_BYTE 8u
#define DEPTH_LIMIT 1000000u
/* Longer patterns are refused, before and after the translation. */
#define PATTERN_MAX ((size_t)64 << 10)
#define TRANSLATED_MAX ((size_t)1 << 20)
/* The processor's time that a pattern may take: so much, and so much more for each byte that it is
 * asked about. 50 to 200 ns are usual. */
#define FREE_NS ((int64_t)2000000000)
#define BYTE_NS ((int64_t)5000)
/* A step may run over the whole text, and a search tries all its places. So a search looks at a
 * window of places at a time, each twice as long as the one before, and at the clock between them.
 * An attempt has few steps at first; where these are not enough the search goes on slowly, from
 * windows of one place and with more steps, and at last with calls to this file between the parts
 * of the pattern, which look at the clock, too. */
#define FIRST_WINDOW ((size_t)512)
#define QUICK_WORK 5000000u
#define QUICK_LIMIT 1000u
#define SLOW_LIMIT (1u << 18)
#define CALLS_PER_LOOK 64
/* Reading the clock takes longer than most searches: while windows are short, one of so many stands
 * for all. */
#define LONG_WINDOW ((size_t)4096)
#define SEARCHES_PER_SAMPLE 64

struct rx {
    pcre2_general_context *memory;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    pcre2_code *code;
    pcre2_code *watched; /* the same with calls of look; made when it is needed */
    pcre2_match_data *match;
    bool jit;
    struct str pattern; /* translated */
    uint32_t options;
    unsigned searches, calls;
    int64_t used_ns, granted_ns; /* since it was made */
    int64_t watch_ns;            /* when the watched match began */
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

static enum err compile(pcre2_code **out, const struct rx *rx, uint32_t more_options)
{
    PCRE2_SPTR pattern = (PCRE2_SPTR)(rx->pattern.v ? rx->pattern.v : "");
    pcre2_compile_context *context = pcre2_compile_context_create(rx->memory);
    PCRE2_UCHAR reason[256];
    int code;
    size_t at;

    if (!context)
        return ERR_NO_MEMORY;
    pcre2_set_max_pattern_length(context, TRANSLATED_MAX);
    *out = pcre2_compile(pattern, rx->pattern.n, rx->options | more_options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (*out)
        return ERR_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return ERR_NO_MEMORY;
    pcre2_get_error_message(code, reason, sizeof reason);
    return err_set(ERR_ARG, "%s (at %zu of %.*s)", (char *)reason, at,
                   (int)MIN(rx->pattern.n, (size_t)200), (const char *)pattern);
}

static bool is_spent(const struct rx *rx, int64_t more)
{
    return rx->used_ns + more > rx->granted_ns + FREE_NS;
}

/* Between the parts of a watched pattern. */
static int look(pcre2_callout_block *block, void *data)
{
    struct rx *rx = data;

    (void)block;
    if (++rx->calls % CALLS_PER_LOOK || !is_spent(rx, clock_thread_ns() - rx->watch_ns))
        return 0;
    return PCRE2_ERROR_CALLOUT;
}

static enum err prepare(struct rx *rx)
{
    rx->match = pcre2_match_data_create(1, rx->memory);
    rx->context = pcre2_match_context_create(rx->memory);
    if (!rx->match || !rx->context)
        return ERR_NO_MEMORY;
    pcre2_set_callout(rx->context, look, rx);
    pcre2_set_heap_limit(rx->context, HEAP_LIMIT);
    pcre2_set_depth_limit(rx->context, DEPTH_LIMIT);
    rx->jit = pcre2_jit_compile(rx->code, PCRE2_JIT_COMPLETE) == 0;
    if (rx->jit)
        rx->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, rx->memory);
    if (rx->stack)
        pcre2_jit_stack_assign(rx->context, NULL, rx->stack);
    return ERR_OK;
}

enum err rx_create(struct rx **out, const char *pattern, size_t n, unsigned flags)
{
    struct rx *rx = NULL;
    enum err err = ERR_NO_MEMORY;

    if (n > PATTERN_MAX)
        return err_set(ERR_UNSUPPORTED, "a pattern of %zu bytes is too long, the limit is %zu", n,
                       PATTERN_MAX);
    if (!(rx = mem_alloc(sizeof *rx)) ||
        !(rx->memory = pcre2_general_context_create(alloc_hook, free_hook, NULL)))
        goto out;
    if (flags & RX_LITERAL)
        TRY(str_add(&rx->pattern, pattern, n));
    else
        TRY(rx_translate(&rx->pattern, pattern, n));
    /* "^" and "$" belong to lines in Oniguruma. */
    rx->options = PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT |
                  (flags & RX_LITERAL ? PCRE2_LITERAL
                                      : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
    TRY(compile(&rx->code, rx, 0));
    TRY(prepare(rx));
    *out = rx;
    rx = NULL;
out:
    rx_destroy(&rx);
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
    pcre2_code_free(rx->watched);
    VEC_FINI(&rx->pattern);
    pcre2_general_context_free(rx->memory);
    mem_free(rx);
}

void rx_iter_init(struct rx_iter *it, struct rx *rx, const char *s, size_t n)
{
    *it = (struct rx_iter){ .rx = rx, .s = n ? s : "", .n = n, .steps = SLOW_LIMIT };
    if (n > QUICK_WORK / SLOW_LIMIT)
        it->steps = (uint32_t)MAX(QUICK_WORK / n, (size_t)QUICK_LIMIT);
    rx->granted_ns += (int64_t)MIN(n, (size_t)INT32_MAX) * BYTE_NS;
}

static int match_watched(struct rx *rx, const struct rx_iter *it)
{
    enum err err = rx->watched ? ERR_OK : compile(&rx->watched, rx, PCRE2_AUTO_CALLOUT);
    size_t steps = MIN(it->n, (size_t)INT32_MAX / MATCH_LIMIT_PER_BYTE);

    if (err != ERR_OK)
        return PCRE2_ERROR_NOMEMORY;
    pcre2_set_match_limit(rx->context, MATCH_LIMIT + MATCH_LIMIT_PER_BYTE * (uint32_t)steps);
    rx->watch_ns = clock_thread_ns();
    return pcre2_match(rx->watched, (PCRE2_SPTR)it->s, it->n, it->at, PCRE2_NO_UTF_CHECK, rx->match,
                       rx->context);
}

/* A match that begins at it->at or behind it, but not behind `last`. */
static int match_before(struct rx *rx, const struct rx_iter *it, size_t last)
{
    PCRE2_SPTR s = (PCRE2_SPTR)it->s;

    pcre2_set_offset_limit(rx->context, last);
    pcre2_set_match_limit(rx->context, it->slow ? SLOW_LIMIT : it->steps);
    if (rx->jit)
        return pcre2_jit_match(rx->code, s, it->n, it->at, PCRE2_NO_UTF_CHECK, rx->match,
                               rx->context);
    return pcre2_match(rx->code, s, it->n, it->at, PCRE2_NO_UTF_CHECK, rx->match, rx->context);
}

static bool is_short(int rc)
{
    return rc == PCRE2_ERROR_JIT_STACKLIMIT || rc == PCRE2_ERROR_MATCHLIMIT;
}

/* The same with a look at the clock: at every call where the search is long, else now and then. */
static int match_timed(struct rx *rx, const struct rx_iter *it, size_t last)
{
    bool is_long = it->slow || it->window >= LONG_WINDOW;

    if (!is_long && ++rx->searches % SEARCHES_PER_SAMPLE)
        return match_before(rx, it, last);
    int64_t start = clock_thread_ns();
    int rc = match_before(rx, it, last);
    if (it->slow && is_short(rc))
        rc = match_watched(rx, it);
    rx->used_ns += (clock_thread_ns() - start) * (is_long ? 1 : SEARCHES_PER_SAMPLE);
    return rc;
}

/* The last place of the window that begins at it->at: a whole character, or the end of the text. */
static size_t window_end(const struct rx_iter *it)
{
    size_t last = it->n - it->at > it->window ? it->at + it->window : it->n;

    return last < it->n ? u8_last(it->s, last + 1) : last;
}

static enum err search(struct rx_iter *it, bool *found)
{
    PCRE2_UCHAR reason[128];

    it->slow = false;
    for (it->window = FIRST_WINDOW;; it->window *= 2) {
        size_t last = window_end(it);
        int rc = match_timed(it->rx, it, last);
        if (rc == PCRE2_ERROR_CALLOUT || is_spent(it->rx, 0))
            return err_set(ERR_RUNTIME, "pattern of the tokenizer: takes too long");
        *found = rc >= 0;
        if (rc >= 0 || (rc == PCRE2_ERROR_NOMATCH && last == it->n))
            return ERR_OK;
        if (rc == PCRE2_ERROR_NOMEMORY)
            return ERR_NO_MEMORY;
        if (is_short(rc) && !it->slow) {
            it->slow = true;
            it->window = 0;
        } else if (rc != PCRE2_ERROR_NOMATCH) {
            pcre2_get_error_message(rc, reason, sizeof reason);
            return err_set(ERR_RUNTIME, "pattern of the tokenizer: %s", (char *)reason);
        } else {
            it->at = last + u8_length(it->s[last]);
            it->window += it->window == 0;
        }
    }
}

enum err rx_next(struct rx_iter *it, bool *found)
{
    enum err err = ERR_OK;

    *found = false;
    while (it->at <= it->n) {
        TRY(search(it, found));
        if (!*found)
            return ERR_OK;
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(it->rx->match);
        /* \K sets the beginning, and in a lookaround that is reached through a group it may do so
         * anywhere. */
        if (span[0] > span[1] || span[1] > it->n || span[0] < it->last)
            return err_set(ERR_UNSUPPORTED,
                           "pattern of the tokenizer: its \\K makes a match begin behind its end "
                           "or within the one before (bytes %zu to %zu)",
                           (size_t)span[0], (size_t)span[1]);
        if (span[0] == span[1] && it->matched && it->last == span[1]) {
            *found = false;
            it->at += it->at < it->n ? u8_length(it->s[it->at]) : 1;
            continue;
        }
        it->start = span[0];
        it->at = it->last = it->end = span[1];
        it->matched = true;
        return ERR_OK;
    }
out:
    return err;
}
