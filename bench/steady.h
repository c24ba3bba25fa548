/* When the times of repeated work have settled. */
#pragma once

#include <stdbool.h>

struct steady_rule {
    int samples;        /* in a row that agree */
    double tolerance;   /* of them: the longest over the shortest, less 1 */
    double hold;        /* seconds that they go on at least */
    double least, most; /* seconds from the beginning; most ends it in any case */
};

/* Of a load that shows the clock: the first time in a process, when nobody knows how fast it can
 * be, and later, with a bound. A clock may stay low for a good part of a second before it rises,
 * and all times agree as long. */
extern const struct steady_rule steady_first, steady_later;

struct steady {
    const struct steady_rule *rule;
    double bound;     /* longer times have not settled, however well they agree; 0: none */
    double began;     /* on the caller's clock, as all times that follow */
    double since;     /* the end of the first of those that agree */
    double low, high; /* of them */
    int n;
    bool is_settled;
};

void steady_begin(struct steady *s, const struct steady_rule *rule, double bound, double now);
/* One more repetition took so long and ended now. True: no further one is needed, because the times
 * have settled (is_settled) or because there is no time left. */
bool steady_add(struct steady *s, double seconds, double now);
