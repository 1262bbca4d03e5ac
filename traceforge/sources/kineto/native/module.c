/* The Python module `_scanner`. In: bytes of whole events. Out: columns of raw.occurrence.

   A Scanner reads units of text in which everything is plain, and declines all others, of which nothing remains. After
   each unit Python tells the identifiers of the kinds that are new, and gets the arguments that it wants to look at.
   Plain: sound JSON in sound UTF-8; no half surrogate pairs, no keys of columns twice or with escapes, no numbers in
   columns that are of other types, too large, negative durations, or absent starts. Not handled: two threads at once in
   one Scanner (refused). */
#include "arrow.h"
#include "json.h"

#include <stdlib.h>

#define MOST_BYTES ((Py_ssize_t)1 << 30)

typedef struct {
    uint32_t start, length; /* of the arguments; of length 0 where there are none */
    bool is_collective;
} Args;

typedef struct {
    PyObject_HEAD
    KindTable kinds;
    Columns columns;
    Args *args; /* of the rows of the last unit */
    size_t args_capacity;
    PyObject *text;        /* the last unit, until its kinds are told */
    size_t settled_rows;   /* rows whose kinds are told */
    uint32_t settled_kinds;
    bool is_busy;
} Scanner;

enum Outcome { READ, DECLINED, NO_MEMORY };

/* Forget the last unit, unless its kinds were told. */
static void drop_unit(Scanner *self) {
    columns_shorten(&self->columns, self->settled_rows);
    kinds_shorten(&self->kinds, self->settled_kinds);
    PyObject *text = self->text;
    self->text = NULL;
    Py_XDECREF(text);
}

static bool keep_args(Scanner *self, const Row *row, const char *text) {
    size_t place = self->columns.count - self->settled_rows;
    if (place == self->args_capacity) {
        size_t wanted = place ? 2 * place : 1024;
        Args *args = realloc(self->args, wanted * sizeof *args);
        if (!args) return false;
        self->args = args;
        self->args_capacity = wanted;
    }
    uint32_t start = row->args.length ? (uint32_t)(row->args.text - text) : 0;
    self->args[place] = (Args){start, row->args.length, row->is_collective};
    return true;
}

/* Read a unit; needs no Python. */
static enum Outcome scan(Scanner *self, const char *text, const char *end, int64_t event_id) {
    Row row;
    for (const char *p = skip_blank(text, end);; p = skip_blank(p + 1, end)) {
        if (!(p = scan_event(p, end, &row))) return DECLINED;
        int64_t kind = kind_index(&self->kinds, row.kind);
        if (kind < 0 || !columns_reserve(&self->columns, 1) || !keep_args(self, &row, text)) return NO_MEMORY;
        row.values[KIND_ID] = kind;
        row.values[EVENT_ID] = event_id++;
        row.present |= 1u << KIND_ID | 1u << EVENT_ID;
        columns_append(&self->columns, &row);
        p = skip_blank(p, end);
        if (p == end) return READ;
        if (*p != ',') return DECLINED;
    }
}

static PyObject *token_bytes(const char *text, uint32_t length) {
    return length ? PyBytes_FromStringAndSize(text, length) : Py_NewRef(Py_None);
}

static PyObject *kind_tuple(const KindTable *table, const Kind *kind) {
    PyObject *parts = PyTuple_New(KIND_PARTS);
    const char *text = table->texts + kind->text;
    for (int part = 0; parts && part < KIND_PARTS; part++) {
        PyObject *token = token_bytes(text, kind->lengths[part]);
        text += kind->lengths[part];
        if (!token || PyTuple_SetItem(parts, part, token) < 0) Py_CLEAR(parts);
    }
    return parts;
}

static PyObject *new_kinds(const Scanner *self) {
    const KindTable *table = &self->kinds;
    PyObject *list = PyList_New(table->count - self->settled_kinds);
    for (uint32_t i = self->settled_kinds; list && i < table->count; i++) {
        PyObject *parts = kind_tuple(table, &table->kinds[i]);
        if (!parts || PyList_SetItem(list, i - self->settled_kinds, parts) < 0) Py_CLEAR(list);
    }
    return list;
}

/* Whether another thread is scanning; sets the error. */
static bool is_in_use(const Scanner *self) {
    if (self->is_busy) PyErr_SetString(PyExc_RuntimeError, "another thread is scanning");
    return self->is_busy;
}

static PyObject *Scanner_scan(Scanner *self, PyObject *arguments) {
    PyObject *text;
    long long first_event_id;
    if (!PyArg_ParseTuple(arguments, "SL", &text, &first_event_id)) return NULL;
    if (is_in_use(self)) return NULL;
    drop_unit(self);
    Py_ssize_t size = PyBytes_Size(text);
    if (size > MOST_BYTES) Py_RETURN_NONE;
    const char *bytes = PyBytes_AsString(text);
    self->text = Py_NewRef(text);
    enum Outcome outcome;
    self->is_busy = true;
    Py_BEGIN_ALLOW_THREADS
    outcome = scan(self, bytes, bytes + size, first_event_id);
    Py_END_ALLOW_THREADS
    self->is_busy = false;
    if (outcome == READ) return new_kinds(self);
    drop_unit(self);
    if (outcome == NO_MEMORY) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* The identifiers of the new kinds, and whether the arguments of their events are wanted. */
static bool learn_kinds(Scanner *self, PyObject *ids, const char *wants) {
    for (uint32_t i = self->settled_kinds; i < self->kinds.count; i++) {
        Py_ssize_t place = i - self->settled_kinds;
        PyObject *number = PySequence_GetItem(ids, place);
        if (!number) return false;
        long id = PyLong_AsLong(number);
        Py_DECREF(number);
        if (id == -1 && PyErr_Occurred()) return false;
        self->kinds.kinds[i].id = (int32_t)id;
        self->kinds.kinds[i].wants_args = wants[place] != 0;
    }
    return true;
}

static bool add_args(Scanner *self, PyObject *list, size_t row, const Args *args) {
    long long event_id = ((const int64_t *)(const void *)self->columns.values[EVENT_ID])[row];
    int kind_id = ((const int32_t *)(const void *)self->columns.values[KIND_ID])[row];
    const char *text = PyBytes_AsString(self->text) + args->start;
    PyObject *found = Py_BuildValue("Liy#", event_id, kind_id, text, (Py_ssize_t)args->length);
    if (!found) return false;
    bool is_added = PyList_Append(list, found) == 0;
    Py_DECREF(found);
    return is_added;
}

/* Put identifiers in the place of indices, and list the arguments that are wanted. */
static bool settle_rows(Scanner *self, PyObject *list, bool wants_all) {
    int32_t *kind_ids = (int32_t *)(void *)self->columns.values[KIND_ID];
    for (size_t row = self->settled_rows; row < self->columns.count; row++) {
        const Kind *kind = &self->kinds.kinds[kind_ids[row]];
        const Args *args = &self->args[row - self->settled_rows];
        kind_ids[row] = kind->id;
        bool is_wanted = wants_all || kind->wants_args || args->is_collective;
        if (is_wanted && args->length && !add_args(self, list, row, args)) return false;
    }
    return true;
}

static PyObject *Scanner_settle(Scanner *self, PyObject *arguments) {
    PyObject *ids;
    const char *wants;
    Py_ssize_t wants_count;
    int wants_all;
    if (!PyArg_ParseTuple(arguments, "Oy#p", &ids, &wants, &wants_count, &wants_all)) return NULL;
    if (is_in_use(self)) return NULL;
    if (!self->text || wants_count != self->kinds.count - self->settled_kinds) {
        PyErr_SetString(PyExc_ValueError, "not the kinds of the last unit");
        return NULL;
    }
    PyObject *list = PyList_New(0);
    if (!list) return NULL;
    if (!learn_kinds(self, ids, wants) || !settle_rows(self, list, wants_all)) {
        Py_DECREF(list);
        drop_unit(self);
        return NULL;
    }
    self->settled_rows = self->columns.count;
    self->settled_kinds = self->kinds.count;
    drop_unit(self);
    return list;
}

static PyObject *Scanner_take(Scanner *self, PyObject *Py_UNUSED(ignored)) {
    if (is_in_use(self)) return NULL;
    drop_unit(self);
    size_t capacity = self->columns.capacity;
    PyObject *capsules = NULL;
    if (columns_reserve(&self->columns, 1)) capsules = arrow_capsules(&self->columns);
    else PyErr_NoMemory();
    columns_free(&self->columns);
    self->settled_rows = 0;
    if (capsules && !columns_reserve(&self->columns, capacity)) Py_CLEAR(capsules);
    return capsules || PyErr_Occurred() ? capsules : PyErr_NoMemory();
}

static PyObject *Scanner_forget_kinds(Scanner *self, PyObject *Py_UNUSED(ignored)) {
    if (is_in_use(self)) return NULL;
    drop_unit(self);
    self->settled_kinds = 0;
    kinds_shorten(&self->kinds, 0);
    Py_RETURN_NONE;
}

static PyObject *Scanner_row_count(Scanner *self, void *Py_UNUSED(ignored)) {
    return PyLong_FromSize_t(self->settled_rows);
}

static void Scanner_dealloc(Scanner *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(self->text);
    columns_free(&self->columns);
    kinds_free(&self->kinds);
    free(self->args);
    free_object(self);
    Py_DECREF(type);
}

static PyMethodDef scanner_methods[] = {
    {"scan", (PyCFunction)Scanner_scan, METH_VARARGS,
     "scan(text, first_event_id): the new kinds of a unit, each as tokens; None where it is declined."},
    {"settle", (PyCFunction)Scanner_settle, METH_VARARGS,
     "settle(ids, wants, wants_all): take the last unit's rows; its wanted arguments, with event and kind."},
    {"take", (PyCFunction)Scanner_take, METH_NOARGS, "take(): all rows gathered, as `__arrow_c_array__` returns them."},
    {"forget_kinds", (PyCFunction)Scanner_forget_kinds, METH_NOARGS, "forget_kinds(): all kinds are new again."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef scanner_attributes[] = {
    {"row_count", (getter)Scanner_row_count, NULL, "Rows gathered since the last `take`.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot scanner_slots[] = {
    {Py_tp_doc, "Reads plain events; see module.c."},
    {Py_tp_new, (void *)PyType_GenericNew},
    {Py_tp_dealloc, (void *)Scanner_dealloc},
    {Py_tp_methods, scanner_methods},
    {Py_tp_getset, scanner_attributes},
    {0, NULL},
};

static PyType_Spec scanner_spec = {
    .name = "traceforge.sources.kineto.native._scanner.Scanner",
    .basicsize = sizeof(Scanner),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = scanner_slots,
};

static int add_types(PyObject *module) {
    PyObject *type = PyType_FromSpec(&scanner_spec);
    int result = type ? PyModule_AddObjectRef(module, "Scanner", type) : -1;
    Py_XDECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)add_types},
    {0, NULL},
};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_scanner",
    .m_doc = "Plain Kineto events to columns; the idea is told in module.c.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__scanner(void) { return PyModuleDef_Init(&module_definition); }
