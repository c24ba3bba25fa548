/* The module mlx.core and its submodules. */
#include "args.h"
#include "closure.h"
#include "custom.h"
#include "device.h"
#include "distributed.h"
#include "export.h"
#include "function.h"
#include "hand.h"
#include "index.h"
#include "random_state.h"
#include "stream_context.h"
#include "tree.h"

PyObject *core_module;

/* The module of a name, which is part of mlx.core; borrowed. Made the first time. */
static PyObject *module_of(const char *name)
{
    PyObject *m;

    if (strcmp(name, "mlx.core") == 0)
        return core_module;
    m = PyImport_AddModule(name);
    if (m && PyModule_AddObjectRef(core_module, strrchr(name, '.') + 1, m) < 0)
        return NULL;
    return m;
}

static bool add_functions(void)
{
    for (const struct function_table *t = function_tables; t->module; t++) {
        PyObject *m = module_of(t->module);
        if (!m || PyModule_AddFunctions(m, t->methods) < 0)
            return false;
    }
    return true;
}

static bool add_aliases(void)
{
    for (const struct function_alias *a = function_aliases; a->module; a++) {
        PyObject *m = module_of(a->module), *from = module_of(a->target_module);
        PyObject *f = from ? PyObject_GetAttrString(from, a->target) : NULL;
        if (!m || !f || !module_add(m, a->name, f))
            return false;
    }
    return true;
}

static bool add_constants(void)
{
    static const struct {
        const char *name;
        double value;
    } constants[] = {
        { "e", 2.71828182845904523536 },
        { "euler_gamma", 0.57721566490153286061 },
        { "pi", 3.14159265358979323846 },
        { "inf", Py_HUGE_VAL },
        { "nan", Py_NAN },
    };

    for (size_t k = 0; k < sizeof constants / sizeof *constants; k++)
        if (!module_add(core_module, constants[k].name, PyFloat_FromDouble(constants[k].value)))
            return false;
    return PyModule_AddStringConstant(core_module, "__version__", MLX_PYTHON_VERSION) == 0 &&
           PyModule_AddObjectRef(core_module, "newaxis", Py_None) == 0;
}

PyObject *hand_array_namespace_info(struct frame *f)
{
    PyObject *m = PyImport_ImportModule("mlx._array_api");
    PyObject *res = m ? PyObject_CallMethod(m, "NamespaceInfo", NULL) : NULL;

    (void)f;
    Py_XDECREF(m);
    return res;
}

static bool init_parts(void)
{
    static bool (*const inits[])(PyObject *) = {
        dtype_init,  dtype_query_init,  device_init,         print_init,       array_init,
        index_init,  tree_init,         stream_context_init, function_init,    closure_init,
        custom_init, random_state_init, export_init,         distributed_init,
    };

    for (size_t k = 0; k < sizeof inits / sizeof *inits; k++)
        if (!inits[k](core_module))
            return false;
    return true;
}

/* NOLINTNEXTLINE(readability-identifier-naming): Python looks for this name */
PyMODINIT_FUNC PyInit_core(void);

/* NOLINTNEXTLINE(readability-identifier-naming) */
PyMODINIT_FUNC PyInit_core(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "mlx.core",
        .m_doc = "Arrays of numbers, lazy, on the CPU and on GPUs through Vulkan.",
        .m_size = -1,
    };
    PyObject *fix = PyImport_ImportModule("mlx._reprlib_fix");

    if (!fix)
        return NULL;
    Py_DECREF(fix);
    if (!error_init() || !(core_module = PyModule_Create(&definition)))
        return NULL;
    if (!args_init() || !init_parts() || !add_functions() || !add_aliases() || !add_constants())
        Py_CLEAR(core_module);
    return core_module;
}
