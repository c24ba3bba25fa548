#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* The kernel gives SIGINT to any thread that takes it, those of libraries among them, so it does
 * not end a wait of the thread that reads lines: a byte in a pipe does. */
static int ends[2] = { -1, -1 };
static atomic_bool came;

static void on_interrupt(int number)
{
    int before = errno;

    (void)number;
    atomic_store(&came, true);
    /* a pipe that is full or was not made has nobody to tell */
    (void)!write(ends[1], "", 1);
    errno = before;
}

void interrupt_catch(void)
{
    struct sigaction a = { .sa_handler = on_interrupt };

    if (ends[0] < 0 && pipe(ends) == 0)
        for (int i = 0; i < 2; i++) {
            fcntl(ends[i], F_SETFL, O_NONBLOCK);
            fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        }
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

bool interrupt_came(void)
{
    return atomic_load(&came);
}

void interrupt_forget(void)
{
    char bytes[64];

    while (read(ends[0], bytes, sizeof bytes) > 0)
        ;
    atomic_store(&came, false);
}

int interrupt_fd(void)
{
    return ends[0];
}
