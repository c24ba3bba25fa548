/* What the leak checker of AddressSanitizer must not hold against the tests: memory that graphics
 * drivers and layers keep to themselves. Nothing of ours is C++, and stacks may end in its
 * library's operator new. The sanitizer calls this function by name. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libvulkan_\n"
           "leak:libVkLayer\n"
           "leak:libLLVM\n"
           "leak:libstdc++\n"
           "leak:libnvidia\n";
}
