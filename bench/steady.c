#include "bench/steady.h"

const struct steady_rule steady_first = { 5, 0.02, 0.2, 1.5, 4.0 };
const struct steady_rule steady_later = { 5, 0.02, 0, 0, 1.0 };

void steady_begin(struct steady *s, const struct steady_rule *rule, double bound, double now)
{
    *s = (struct steady){ .rule = rule, .bound = bound, .began = now };
}

/* One that does not agree with those before it is the first of others. */
static void take(struct steady *s, double seconds, double now)
{
    double low = s->n && s->low < seconds ? s->low : seconds;
    double high = s->n && s->high > seconds ? s->high : seconds;

    if (s->n && high <= low * (1 + s->rule->tolerance)) {
        s->low = low;
        s->high = high;
        s->n++;
        return;
    }
    s->low = s->high = seconds;
    s->since = now;
    s->n = 1;
}

bool steady_add(struct steady *s, double seconds, double now)
{
    const struct steady_rule *r = s->rule;

    take(s, seconds, now);
    s->is_settled = s->n >= r->samples && now - s->since >= r->hold && now - s->began >= r->least &&
                    (s->bound <= 0 || s->high <= s->bound);
    return s->is_settled || now - s->began >= r->most;
}
