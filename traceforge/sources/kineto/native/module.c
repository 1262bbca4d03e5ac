/* The Python module `_scanner`. In: bytes of whole events. Out: columns of raw.occurrence.

   A Scanner reads units of text in which everything is plain, and declines all others, of which nothing remains. After
   each unit Python tells the identifiers of the kinds that are new, and gets the arguments that it wants to look at, and
   those of communication where they are new.
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
    KindTable calls;       /* distinct arguments of communication; only the first part is used */
    CallKey key;           /* of the call at hand */
    Texts texts;
    size_t settled_rows;   /* rows whose kinds are told */
    uint32_t settled_kinds, settled_calls;
    size_t settled_texts;
    bool is_busy;
} Scanner;

enum Outcome { READ, DECLINED, NO_MEMORY };

/* Forget the last unit, unless its kinds were told. */
static void drop_unit(Scanner *self) {
    columns_shorten(&self->columns, self->settled_rows);
    kinds_shorten(&self->kinds, self->settled_kinds);
    kinds_shorten(&self->calls, self->settled_calls);
    texts_shorten(&self->texts, self->settled_texts);
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

/* The identifiers of the new kinds, and what is asked of the arguments of their events. */
static bool learn_kinds(Scanner *self, PyObject *ids, const char *asks) {
    for (uint32_t i = self->settled_kinds; i < self->kinds.count; i++) {
        Py_ssize_t place = i - self->settled_kinds;
        PyObject *number = PySequence_GetItem(ids, place);
        if (!number) return false;
        long id = PyLong_AsLong(number);
        Py_DECREF(number);
        if (id == -1 && PyErr_Occurred()) return false;
        self->kinds.kinds[i].id = (int32_t)id;
        self->kinds.kinds[i].asks = (uint8_t)asks[place];
    }
    return true;
}

/* Add what `Py_BuildValue` made, which may be NULL, to a list. */
static bool add_to(PyObject *list, PyObject *found) {
    if (!found) return false;
    bool is_added = PyList_Append(list, found) == 0;
    Py_DECREF(found);
    return is_added;
}

/* A call of communication; which of the distinct ones it is, and its own sequence number, -1 where it has none. */
typedef struct {
    int64_t event_id, place, sequence;
} Call;

/* What is gathered while the rows of a unit are settled. */
typedef struct {
    PyObject *asked, *new_calls; /* lists */
    Call *calls;
    size_t call_count;
    bool wants_all;
} Settling;

static bool add_call(Scanner *self, Settling *to, int64_t event_id, const char *text, uint32_t length) {
    if (!call_key(&self->key, text, text + length)) return PyErr_NoMemory() != NULL;
    Token parts[KIND_PARTS] = {{self->key.text, (uint32_t)self->key.size}};
    int64_t known = self->calls.count, place = kind_index(&self->calls, parts);
    if (place < 0) return PyErr_NoMemory() != NULL;
    to->calls[to->call_count++] = (Call){event_id, place, self->key.sequence};
    if (place < known) return true;
    long long sequence = self->key.sequence;
    return add_to(to->new_calls, Py_BuildValue("y#L", text, (Py_ssize_t)length, sequence));
}

static bool settle_args(Scanner *self, Settling *to, size_t row, const Kind *kind, const Args *args) {
    int64_t event_id = ((const int64_t *)(const void *)self->columns.values[EVENT_ID])[row];
    const char *text = PyBytes_AsString(self->text) + args->start;
    bool is_kept = to->wants_all || kind->asks & ASKS_CALL;
    if (kind->asks & ASKS_TEXT) {
        PyObject *found = Py_BuildValue("Liy#", (long long)event_id, kind->id, text, (Py_ssize_t)args->length);
        if (!add_to(to->asked, found)) return false;
    }
    if (is_kept && !texts_append(&self->texts, event_id, text, args->length)) return PyErr_NoMemory() != NULL;
    if (!args->is_collective && !(is_kept && is_call(text, args->length))) return true;
    return add_call(self, to, event_id, text, args->length);
}

/* Put identifiers in the place of indices, and take the arguments that are asked for. */
static bool settle_rows(Scanner *self, Settling *to) {
    int32_t *kind_ids = (int32_t *)(void *)self->columns.values[KIND_ID];
    for (size_t row = self->settled_rows; row < self->columns.count; row++) {
        const Kind *kind = &self->kinds.kinds[kind_ids[row]];
        const Args *args = &self->args[row - self->settled_rows];
        kind_ids[row] = kind->id;
        bool is_asked = to->wants_all || kind->asks || args->is_collective;
        if (is_asked && args->length && !settle_args(self, to, row, kind, args)) return false;
    }
    return true;
}

static PyObject *settled(Scanner *self, Settling *to) {
    size_t rows = self->columns.count - self->settled_rows;
    to->asked = PyList_New(0);
    to->new_calls = PyList_New(0);
    to->calls = malloc((rows + 1) * sizeof *to->calls);
    PyObject *result = NULL;
    if (!to->calls) PyErr_NoMemory();
    else if (to->asked && to->new_calls && settle_rows(self, to))
        result = Py_BuildValue("OOy#", to->asked, to->new_calls, (const char *)to->calls,
                               (Py_ssize_t)(to->call_count * sizeof *to->calls));
    Py_XDECREF(to->asked);
    Py_XDECREF(to->new_calls);
    free(to->calls);
    return result;
}

static PyObject *Scanner_settle(Scanner *self, PyObject *arguments) {
    PyObject *ids;
    const char *asks;
    Py_ssize_t asks_count;
    int wants_all;
    if (!PyArg_ParseTuple(arguments, "Oy#p", &ids, &asks, &asks_count, &wants_all)) return NULL;
    if (is_in_use(self)) return NULL;
    if (!self->text || asks_count != self->kinds.count - self->settled_kinds) {
        PyErr_SetString(PyExc_ValueError, "not the kinds of the last unit");
        return NULL;
    }
    Settling to = {.wants_all = wants_all != 0};
    PyObject *result = learn_kinds(self, ids, asks) ? settled(self, &to) : NULL;
    if (result) {
        self->settled_rows = self->columns.count;
        self->settled_kinds = self->kinds.count;
        self->settled_calls = self->calls.count;
        self->settled_texts = self->texts.count;
    }
    drop_unit(self);
    return result;
}

static PyObject *Scanner_take(Scanner *self, PyObject *Py_UNUSED(ignored)) {
    if (is_in_use(self)) return NULL;
    drop_unit(self);
    size_t capacity = self->columns.capacity;
    PyObject *capsules = NULL;
    if (columns_reserve(&self->columns, 1)) capsules = arrow_of_columns(&self->columns);
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

static PyObject *Scanner_take_texts(Scanner *self, PyObject *Py_UNUSED(ignored)) {
    if (is_in_use(self)) return NULL;
    drop_unit(self);
    self->settled_texts = 0;
    if (!self->texts.count) Py_RETURN_NONE;
    PyObject *capsules = arrow_of_texts(&self->texts);
    return capsules || PyErr_Occurred() ? capsules : PyErr_NoMemory();
}

static PyObject *Scanner_forget_calls(Scanner *self, PyObject *Py_UNUSED(ignored)) {
    if (is_in_use(self)) return NULL;
    drop_unit(self);
    self->settled_calls = 0;
    kinds_shorten(&self->calls, 0);
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
    kinds_free(&self->calls);
    texts_free(&self->texts);
    free(self->key.text);
    free(self->args);
    free_object(self);
    Py_DECREF(type);
}

static PyMethodDef scanner_methods[] = {
    {"scan", (PyCFunction)Scanner_scan, METH_VARARGS,
     "scan(text, first_event_id): the new kinds of a unit, each as tokens; None where it is declined."},
    {"settle", (PyCFunction)Scanner_settle, METH_VARARGS,
     "settle(ids, asks, wants_all): take the last unit's rows; arguments asked for, new calls, and all calls."},
    {"take", (PyCFunction)Scanner_take, METH_NOARGS, "take(): all rows gathered, as `__arrow_c_array__` returns them."},
    {"take_texts", (PyCFunction)Scanner_take_texts, METH_NOARGS, "take_texts(): arguments kept, likewise; None without."},
    {"forget_calls", (PyCFunction)Scanner_forget_calls, METH_NOARGS, "forget_calls(): all calls are new again."},
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
