/* What the leak checker of AddressSanitizer must not hold against the tests: memory that graphics
 * drivers keep to themselves. The sanitizer calls this function by name. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libvulkan_\n"
           "leak:libLLVM\n"
           "leak:libnvidia\n";
}
