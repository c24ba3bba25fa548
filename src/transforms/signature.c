#include "transforms/signature.h"

static bool fits(const struct out_desc *want, const struct arr *a, bool shapeless)
{
    return want->dtype == a->dtype && want->shape.ndim == a->ndim &&
           (shapeless || shp_same_dims(want->shape.d, a->shape, a->ndim));
}

/* Both are sorted. */
static bool has_names(const struct signature *s, const struct call_inputs *c)
{
    size_t n_named = call_named(c), found = 0;

    for (size_t i = 0; i < n_named && found < s->n_names; i++)
        if (strcmp(s->names[found], c->named->list.v[i].name) == 0)
            found++;
    return found == s->n_names;
}

bool signature_fits(const struct signature *s, const struct call_inputs *c, bool shapeless)
{
    if (s->n != c->in.n + call_named(c) || !has_names(s, c))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (!fits(&s->in[i], call_input(c, i), shapeless))
            return false;
    return true;
}

static enum err print_input(struct text *t, const char *name, size_t number,
                            const struct out_desc *d)
{
    enum err err = name ? text_add(t, "  \"%s\": ", name) : text_add(t, "  %zu: ", number);

    return err ? err : text_add(t, "%s %s\n", shp_text(&d->shape), dt_name(d->dtype));
}

enum err signature_print(struct text *t, const struct signature *s, size_t number)
{
    size_t n_plain = s->n - s->n_names;
    enum err err;

    TRY(text_add(t, " %zu. Function with %zu positional inputs and %zu keyword inputs:\n", number,
                 n_plain, s->n_names));
    for (size_t i = 0; i < s->n; i++) {
        TRY(text_add(t, " "));
        TRY(print_input(t, i < n_plain ? NULL : s->names[i - n_plain], i + 1, &s->in[i]));
    }
out:
    return err;
}

enum err call_print(struct text *t, const struct call_inputs *c)
{
    size_t n_named = call_named(c);
    struct out_desc d;
    enum err err;

    TRY(text_add(t, "\nCalled with %zu positional inputs and %zu keyword inputs:\n", c->in.n,
                 n_named));
    for (size_t i = 0; i < c->in.n + n_named; i++) {
        const struct arr *a = call_input(c, i);
        arr_shape(&d.shape, a);
        d.dtype = (enum dtype)a->dtype;
        TRY(print_input(t, i < c->in.n ? NULL : c->named->list.v[i - c->in.n].name, i + 1, &d));
    }
out:
    return err;
}
