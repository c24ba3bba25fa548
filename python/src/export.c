/* mx.export_function, mx.exporter, mx.import_function, mx.export_to_dot. */
#include "export.h"

#include "args.h"
#include "closure.h"
#include "export_tell.h"
#include "function.h"
#include "hand.h"
#include "io_table.h"

/* ---- arguments: arrays one by one and by name, or a list of them and a dict ---- */

struct inputs {
    mlx_vector_array args;
    mlx_map_string_to_array named;
};

static void inputs_free(struct inputs *in)
{
    mlx_vector_array_free(in->args);
    mlx_map_string_to_array_free(in->named);
}

static bool add_arrays(mlx_vector_array vec, PyObject *list)
{
    for (Py_ssize_t i = 0; i < list_size(list); i++)
        if (!is_array(list_item(list, i)) ||
            !error_check(mlx_vector_array_append_value(vec, array_of(list_item(list, i)))))
            return false;
    return true;
}

/* False, perhaps without an exception, for what are no arguments. */
static bool read_inputs(struct inputs *in, PyObject *args, PyObject *keywords)
{
    Py_ssize_t n = PyTuple_Size(args);
    PyObject *list = args, *dict = keywords;

    if (n && !is_array(PyTuple_GetItem(args, 0))) {
        bool has_list = is_list(PyTuple_GetItem(args, 0));
        if (n > 1 + has_list || PyDict_Size(keywords))
            return false;
        list = has_list ? PyTuple_GetItem(args, 0) : NULL;
        dict = n == 1 + has_list ? PyTuple_GetItem(args, n - 1) : keywords;
    }
    in->args = mlx_vector_array_new();
    return PyDict_Check(dict) && (!list || add_arrays(in->args, list)) &&
           table_of_arrays(&in->named, dict, "export_function");
}

static bool inputs_from(struct inputs *in, PyObject *args, PyObject *keywords, const char *tag)
{
    *in = (struct inputs){ 0 };
    if (read_inputs(in, args, keywords))
        return true;
    inputs_free(in);
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError,
                 "[%s] Inputs are arrays, also by keyword, or a list of arrays and a dict of them.",
                 tag);
    return false;
}

/* ---- the function that is exported ---- */

static PyObject *outputs_of(PyObject *value)
{
    PyObject *res = NULL;

    if (is_array(value))
        return Py_BuildValue("[O]", value);
    if (is_list(value) && (res = PyList_New(0)))
        for (Py_ssize_t i = 0; i < list_size(value); i++)
            if (!is_array(list_item(value, i)) || PyList_Append(res, list_item(value, i)) < 0) {
                Py_CLEAR(res);
                break;
            }
    if (!res && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "[export_function] The function returns an array or a list of arrays, not %s.",
                     error_type_name(value));
    return res;
}

static int call_exported(mlx_vector_array *res, const mlx_vector_array in,
                         const mlx_map_string_to_array named, void *kept)
{
    PyObject *args = array_tuple(in), *keywords = table_arrays(named), *value = NULL;
    PyObject *leaves = NULL;
    int rc;

    if (args && keywords)
        value = PyObject_Call(closure_object(kept, 0), args, keywords);
    if (value)
        leaves = outputs_of(value);
    rc = closure_result(res, leaves);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    Py_XDECREF(value);
    Py_XDECREF(leaves);
    return rc;
}

/* A closure that keeps fun. */
static mlx_closure_kwargs exported_closure(PyObject *fun)
{
    void *kept = closure_keep((PyObject *const[]){ fun, NULL, NULL });
    mlx_closure_kwargs res = { NULL };

    if (kept)
        res = mlx_closure_kwargs_new_func_payload(call_exported, kept, closure_drop);
    if (kept && !res.ctx)
        closure_drop(kept);
    return res;
}

/* What export_function and exporter are told. */
struct export_params {
    PyObject *file, *fun;
    bool shapeless;
    PyObject *metadata; /* NULL or a str */
};

/* One that tells a function of Python's, instead of writing a file. */
static mlx_function_exporter teller_of(const struct export_params *p, struct export_teller *t)
{
    mlx_closure_kwargs closure = exported_closure(p->fun);
    mlx_function_exporter res =
        mlx_function_exporter_new_listener(export_tell, t, closure, p->shapeless);

    if (!res.ctx)
        error_raise();
    mlx_closure_kwargs_free(closure);
    return res;
}

static mlx_function_exporter exporter_of(const struct export_params *p)
{
    const char *name = PyUnicode_AsUTF8AndSize(p->file, NULL);
    const char *text = p->metadata ? PyUnicode_AsUTF8AndSize(p->metadata, NULL) : "";
    mlx_function_exporter res = { NULL };
    mlx_closure_kwargs closure;

    if (!name || !text)
        return res;
    closure = exported_closure(p->fun);
    res = mlx_function_exporter_new_kwargs(name, closure, p->shapeless, text);
    if (!res.ctx)
        error_raise();
    mlx_closure_kwargs_free(closure);
    return res;
}

/* ---- export_function ---- */

static bool check_params(const struct export_params *p, const char *who, bool may_call)
{
    if (p->metadata && !PyUnicode_Check(p->metadata)) {
        PyErr_Format(PyExc_TypeError, "%s(): metadata must be a str or None, not %s.", who,
                     error_type_name(p->metadata));
        return false;
    }
    if (!PyUnicode_Check(p->file) && !(may_call && PyCallable_Check(p->file))) {
        PyErr_Format(PyExc_TypeError, "%s(): the file must be a str%s, not %s.", who,
                     may_call ? " or a function" : "", error_type_name(p->file));
        return false;
    }
    if (p->metadata && PyUnicode_GetLength(p->metadata) && !PyUnicode_Check(p->file)) {
        PyErr_Format(PyExc_ValueError, "[%s] Metadata go into a file.", who);
        return false;
    }
    return function_check(p->fun, who);
}

/* Takes what is no argument of the function out of the keywords. Shapeless and metadata may be
 * absent. */
static bool take_keywords(struct export_params *p, PyObject *keywords)
{
    PyObject *shapeless = PyDict_GetItemString(keywords, "shapeless");
    PyObject *metadata = PyDict_GetItemString(keywords, "metadata");

    if (shapeless && shapeless != Py_True && shapeless != Py_False) {
        PyErr_Format(PyExc_TypeError, "export_function(): shapeless must be a bool, not %s.",
                     error_type_name(shapeless));
        return false;
    }
    p->shapeless = shapeless == Py_True;
    p->metadata = metadata == Py_None ? NULL : Py_XNewRef(metadata);
    return (!shapeless || PyDict_DelItemString(keywords, "shapeless") == 0) &&
           (!metadata || PyDict_DelItemString(keywords, "metadata") == 0);
}

static bool export_once(const struct export_params *p, PyObject *args, PyObject *keywords)
{
    struct export_teller teller = { p->file, mlx_node_namer_new() };
    mlx_function_exporter x = { NULL };
    struct inputs in;
    bool ok;

    if (!inputs_from(&in, args, keywords, "export_function")) {
        mlx_node_namer_free(teller.namer);
        return false;
    }
    x = PyUnicode_Check(p->file) ? exporter_of(p) : teller_of(p, &teller);
    ok = x.ctx && error_check(mlx_function_exporter_apply_kwargs(x, in.args, in.named));
    mlx_function_exporter_free(x);
    mlx_node_namer_free(teller.namer);
    inputs_free(&in);
    return ok;
}

static PyObject *export_function(PyObject *all, PyObject *keywords)
{
    struct export_params p = { 0 };
    Py_ssize_t n = PyTuple_Size(all);
    PyObject *args = NULL;
    bool ok = false;

    if (n < 2) {
        PyErr_SetString(PyExc_TypeError, "export_function(): a file and a function are wanted.");
        return NULL;
    }
    p.file = PyTuple_GetItem(all, 0);
    p.fun = PyTuple_GetItem(all, 1);
    if (take_keywords(&p, keywords) && check_params(&p, "export_function", true) &&
        (args = PyTuple_GetSlice(all, 2, n)))
        ok = export_once(&p, args, keywords);
    Py_XDECREF(args);
    Py_XDECREF(p.metadata);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* A function of any arguments and keywords, called with a tuple and a dict. */
static PyObject *call_packed(PyObject *(*fn)(PyObject *, PyObject *), PyObject *const *args,
                             Py_ssize_t n, PyObject *names)
{
    PyObject *tuple = PyTuple_New(n), *dict = PyDict_New(), *res = NULL;
    bool ok = tuple && dict;

    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = PyTuple_SetItem(tuple, i, Py_NewRef(args[i])) == 0;
    for (Py_ssize_t i = 0; ok && names && i < PyTuple_Size(names); i++)
        ok = PyDict_SetItem(dict, PyTuple_GetItem(names, i), args[n + i]) == 0;
    if (ok)
        res = fn(tuple, dict);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return res;
}

PyObject *core_export_function(PyObject *self, PyObject *const *args, Py_ssize_t n,
                               PyObject *keywords)
{
    (void)self;
    return call_packed(export_function, args, n, keywords);
}

/* ---- exporters ---- */

static PyTypeObject *exporter_type;

struct exporter_object {
    PyObject_HEAD mlx_function_exporter exporter;
    PyObject *fun; /* what the exporter keeps as well, for the collector */
};

PyObject *hand_exporter(struct frame *f)
{
    struct export_params p = { .file = f->slot[0],
                               .fun = f->slot[1],
                               .shapeless = f->v[2].b,
                               .metadata = f->given[3] ? f->slot[3] : NULL };
    struct exporter_object *o;
    mlx_function_exporter x;

    if (!check_params(&p, "exporter", false) || !(x = exporter_of(&p)).ctx)
        return NULL;
    o = PyObject_GC_New(struct exporter_object, exporter_type);
    if (!o) {
        mlx_function_exporter_free(x);
        return NULL;
    }
    o->exporter = x;
    o->fun = Py_NewRef(p.fun);
    PyObject_GC_Track(o);
    return (PyObject *)o;
}

static PyObject *exporter_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *dict = keywords ? Py_NewRef(keywords) : PyDict_New();
    struct inputs in;
    bool ok = dict && inputs_from(&in, args, dict, "export_function");

    if (ok) {
        ok = error_check(mlx_function_exporter_apply_kwargs(
            ((struct exporter_object *)self)->exporter, in.args, in.named));
        inputs_free(&in);
    }
    Py_XDECREF(dict);
    return ok ? Py_NewRef(Py_None) : NULL;
}

static PyObject *exporter_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!error_check(mlx_function_exporter_close(((struct exporter_object *)self)->exporter)))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *exporter_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static int exporter_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct exporter_object *)self)->fun);
    return 0;
}

static int exporter_clear(PyObject *self)
{
    struct exporter_object *o = (struct exporter_object *)self;

    mlx_function_exporter_free(o->exporter);
    o->exporter.ctx = NULL;
    Py_CLEAR(o->fun);
    return 0;
}

static void exporter_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    exporter_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- import_function ---- */

static PyObject *imported_call(struct function_object *f, PyObject *args, PyObject *keywords)
{
    mlx_imported_function fun = { f->handle };
    mlx_vector_array out = { NULL };
    PyObject *res = NULL;
    struct inputs in;

    if (!inputs_from(&in, args, keywords, "import_function::call"))
        return NULL;
    if (error_check(mlx_imported_function_apply_kwargs(&out, fun, in.args, in.named)))
        res = array_tuple(out);
    inputs_free(&in);
    mlx_vector_array_free(out);
    return res;
}

static void imported_end(struct function_object *f)
{
    mlx_imported_function_free((mlx_imported_function){ f->handle });
}

static PyObject *metadata_of(mlx_imported_function fun)
{
    mlx_string text = mlx_string_new();
    PyObject *res = NULL;

    if (error_check(mlx_imported_function_metadata(&text, fun)))
        res = PyUnicode_FromString(mlx_string_data(text));
    mlx_string_free(text);
    return res;
}

PyObject *hand_import_function(struct frame *f)
{
    static const struct function_kind kind = { imported_call, imported_end };
    mlx_imported_function fun = mlx_imported_function_new(f->v[0].text);
    struct function_object *res;
    PyObject *text, *pair = NULL;

    if (!fun.ctx)
        return error_raise();
    if (!(res = function_make(&kind, NULL))) {
        mlx_imported_function_free(fun);
        return NULL;
    }
    res->handle = fun.ctx;
    if (!f->v[1].b)
        return (PyObject *)res;
    if ((text = metadata_of(fun)))
        pair = PyTuple_Pack(2, (PyObject *)res, text);
    Py_XDECREF(text);
    Py_DECREF((PyObject *)res);
    return pair;
}

/* ---- the type of exporters ---- */

bool export_init(PyObject *m)
{
    static PyMethodDef methods[] = {
        { "close", exporter_close, METH_NOARGS, "close($self, /)\n--\n\nEnds the file." },
        { "__enter__", exporter_enter, METH_NOARGS, NULL },
        { "__exit__", exporter_close, METH_VARARGS, NULL },
        { 0 },
    };
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"Writes a function for several kinds of arguments into a file; each "
                             "call adds one. Made by exporter()." },
        { Py_tp_call, exporter_call },
        { Py_tp_methods, methods },
        { Py_tp_traverse, exporter_traverse },
        { Py_tp_clear, exporter_clear },
        { Py_tp_dealloc, exporter_dealloc },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.FunctionExporter",
                         .basicsize = sizeof(struct exporter_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    return (exporter_type = type_add(m, &spec)) != NULL;
}
