/* What belongs to Metal and CUDA: their modules, whose functions moved to mlx.core long ago, and
 * kernels in their languages. */
#include "args.h"
#include "hand.h"

PyObject *hand_never(struct frame *f)
{
    (void)f;
    Py_RETURN_FALSE;
}

/* Says once for each function that it is deprecated, then calls that of mlx.core. */
static PyObject *forward(const char *name, PyObject *arg)
{
    static PyObject *told;
    PyObject *key = PyUnicode_FromString(name), *f = NULL, *res = NULL;

    if (key && (told || (told = PySet_New(NULL)))) {
        if (!PySet_Contains(told, key))
            PySys_WriteStderr("mx.metal.%s is deprecated and will be removed in a future version. "
                              "Use mx.%s instead.\n",
                              name, name);
        if (PySet_Add(told, key) == 0)
            f = PyObject_GetAttr(core_module, key);
    }
    if (f)
        res = PyObject_CallFunctionObjArgs(f, arg, NULL); /* arg ends the list where it is NULL */
    Py_XDECREF(f);
    Py_XDECREF(key);
    return res;
}

PyObject *hand_metal_forward(struct frame *f)
{
    return forward(f->sig->name, f->sig->n ? f->slot[0] : NULL);
}

PyObject *hand_metal_device_info(struct frame *f)
{
    PyObject *gpu = PyObject_GetAttrString(core_module, "gpu");
    PyObject *res = gpu ? forward("device_info", gpu) : NULL;

    (void)f;
    Py_XDECREF(gpu);
    return res;
}

/* ---- kernels ---- */

static PyObject *no_metal(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    (void)self;
    (void)args;
    (void)n;
    (void)keywords;
    PyErr_SetString(PyExc_RuntimeError, "[metal_kernel] No Metal back-end.");
    return NULL;
}

PyObject *hand_fast_metal_kernel(struct frame *f)
{
    static PyMethodDef kernel = { "kernel", (PyCFunction)(void (*)(void))no_metal,
                                  METH_FASTCALL | METH_KEYWORDS,
                                  "An error: there is no Metal here." };

    (void)f;
    return PyCFunction_New(&kernel, NULL);
}

PyObject *hand_fast_no_cuda(struct frame *f)
{
    (void)f;
    PyErr_SetString(PyExc_RuntimeError, "[cuda_kernel] No CUDA back-end.");
    return NULL;
}
