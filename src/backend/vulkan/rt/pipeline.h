/* Pipelines by (module, specialization): in memory, and through a VkPipelineCache on disk. */
#pragma once

#include <stdio.h>

#include "base/common.h"
#include "base/err.h"

/* What the encoder needs to dispatch: opaque outside pipeline.c and encoder.c. */
struct vk_pipe;
struct vk_form;

#define VK_MAX_SPEC 32

struct vk_pipe_params {
    const char *name;      /* for debug labels, statistics and traces */
    uint64_t key;          /* identifies the module: equal keys mean equal words */
    const uint32_t *words; /* SPIR-V; read only when the pipeline is not there yet */
    size_t n_words;
    const uint32_t *spec;
    int n_spec;
    uint32_t subgroup_size; /* required size, 0 = the driver's choice */
    uint32_t n_addr;        /* device addresses that the push constants begin with; some may be 0 */
    const struct vk_form *form; /* NULL: that of our kernels; lives as long as the device */
};

/* Finds or builds. A build holds no lock that other pipelines need. While a recording looks
 * what is missing (recording.h), a pipeline that is not there is only noted, and what *out points
 * to must not be used. Thread-safety: safe. */
MUST_CHECK enum err vk_pipe_get(const struct vk_pipe **out, const struct vk_pipe_params *p);

/* Threads that build pipelines at a time. */
int vk_pipe_builders(void);
/* Builds those of n pipelines that are not there yet, in several threads. Blocks until all are
 * done; the first failure is returned, the others are still built. Thread-safety: safe. */
MUST_CHECK enum err vk_pipe_prefetch(const struct vk_pipe_params *params, size_t n);

/* How many pipelines each kernel has and how often they were found in memory, a line each. */
void vk_pipe_print(FILE *out);
