#include "lm/jinja/jinja.h"

#include "lm/jinja/eval.h"

/* Far more than conversations take that fill a context, and little enough for one to wait for. */
static const struct jinja_limits defaults = {
    .steps = 50000000,
    .memory = (size_t)256 << 20,
    .output = (size_t)64 << 20,
    .depth = 500,
};

struct jinja {
    struct arena mem;
    const struct jnode *body;
};

static struct jinja_limits limits_of(const struct jinja_limits *l)
{
    return (struct jinja_limits){
        .steps = l->steps ? l->steps : defaults.steps,
        .memory = l->memory ? l->memory : defaults.memory,
        .output = l->output ? l->output : defaults.output,
        .depth = l->depth ? l->depth : defaults.depth,
    };
}

enum err jinja_create(struct jinja **out, const char *text, size_t n)
{
    struct jin j = { .limits = defaults };
    struct jinja *t = mem_alloc(sizeof *t);
    struct str source = { 0 };
    struct jtoks toks = { 0 };
    struct jval kept;

    if (!t)
        return ERR_NO_MEMORY;
    jin_normalise(&j, &source, text, n);
    kept = jin_take(&j, &source);
    if (jin_ok(&j))
        jin_lex(&j, &toks, kept.s->v, kept.s->n);
    t->body = jin_parse(&j, &toks);
    t->mem = j.mem;
    VEC_FINI(&toks);
    if (jin_ok(&j)) {
        *out = t;
        return ERR_OK;
    }
    jinja_destroy(&t);
    return err_note_raise(&j.note);
}

void jinja_destroy(struct jinja **pt)
{
    struct jinja *t = *pt;

    *pt = NULL;
    if (!t)
        return;
    arena_fini(&t->mem);
    mem_free(t);
}

static void render(struct jin *j, const struct jinja *t, const struct jinja_request *r)
{
    struct jval vars = jin_from_json(j, r->vars, r->n_vars);
    struct jscope *before;

    if (jin_ok(j) && vars.kind != J_DICT)
        jin_fail(j, "its variables must be an object");
    if (jin_ok(j) && r->prepare)
        r->prepare(j, vars.d);
    if (!jin_ok(j) || !scope_enter(j, NULL, &before))
        return;
    j->vars = vars.d;
    jin_exec(j, t->body);
}

enum err jinja_render(struct str *out, const struct jinja *t, const struct jinja_request *r)
{
    struct str text = { 0 };
    struct jin j = { .limits = limits_of(&r->limits), .out = &text, .now = r->now };

    render(&j, t, r);
    if (jin_ok(&j) && text.n)
        jin_fail_with(&j, str_add(out, text.v, text.n));
    VEC_FINI(&text);
    arena_fini(&j.mem);
    return jin_ok(&j) ? ERR_OK : err_note_raise(&j.note);
}
