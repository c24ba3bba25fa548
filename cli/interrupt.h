/* Ctrl-C: who works looks whether it came, who waits for input waits for it, too. */
#pragma once

#include "base/common.h"

/* From now on SIGINT does not end the process, unless there is no file to remember it with. */
void interrupt_catch(void);
bool interrupt_came(void);
/* Forgets what came until now; what comes meanwhile may stay. */
void interrupt_forget(void);
/* Readable from Ctrl-C until it is forgotten; -1 where nothing is caught. */
int interrupt_fd(void);
