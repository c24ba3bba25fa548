#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* The kernel gives SIGINT to any thread that takes it, those of libraries among them, so it does
 * not end a wait of the thread that reads lines: a byte in a pipe does. That byte is all that is
 * kept of a Ctrl-C, so that whoever works and whoever waits cannot disagree about it. */
static int ends[2] = { -1, -1 };

static void on_interrupt(int number)
{
    int before = errno;

    (void)number;
    (void)!write(ends[1], "", 1); /* a pipe that is full tells of it already */
    errno = before;
}

void interrupt_catch(void)
{
    struct sigaction a = { .sa_handler = on_interrupt };

    if (ends[0] < 0 && pipe(ends) != 0)
        return; /* the process ends, as it always did */
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

bool interrupt_came(void)
{
    struct pollfd p = { .fd = ends[0], .events = POLLIN };
    int n;

    while ((n = poll(&p, 1, 0)) < 0 && errno == EINTR)
        ;
    return n > 0;
}

void interrupt_forget(void)
{
    char bytes[64];

    while (ends[0] >= 0 && read(ends[0], bytes, sizeof bytes) > 0)
        ;
}

int interrupt_fd(void)
{
    return ends[0];
}
