/* What sanitizers must not hold against the tests. They call these functions by name. */
const char *__lsan_default_suppressions(void);
const char *__tsan_default_suppressions(void);

/* Memory that graphics drivers and layers keep to themselves. Nothing of ours is C++, and stacks
 * may end in its library's operator new. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libvulkan_\n"
           "leak:libVkLayer\n"
           "leak:libLLVM\n"
           "leak:libstdc++\n"
           "leak:libnvidia\n";
}

/* OpenBLAS has threads of its own, and how they wait for each other is not seen. */
const char *__tsan_default_suppressions(void)
{
    return "race:libopenblas\n";
}
