#include "lm/tokenizer/keyed.h"

#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"

uint64_t keyed_key[2];

static void draw(void)
{
    /* Without a source of random numbers addresses and the clock are what others know least. */
    if (getentropy(keyed_key, sizeof keyed_key) != 0) {
        keyed_key[0] = (uint64_t)clock_ns() ^ (uint64_t)(uintptr_t)&keyed_key;
        keyed_key[1] = (uint64_t)clock_thread_ns() * 0x9e3779b97f4a7c15ull;
    }
    keyed_key[1] |= 1;
}

void keyed_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, draw);
}
