/* A batch handed over without a copy. In: columns. Out: Arrow's C data interface, in two capsules.

   Idea: a struct array with one child a column; each child frees its own two buffers when its reader releases it.
   Source: https://arrow.apache.org/docs/format/CDataInterface.html (structs copied from there, as it asks for). */
#include "arrow.h"

#include <stdlib.h>
#include <string.h>

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

/* A whole tree in one piece of memory, the root's; children that were moved away outlive it as copies. */
typedef struct {
    struct ArrowSchema root, children[COLUMN_COUNT];
    struct ArrowSchema *pointers[COLUMN_COUNT];
} SchemaTree;

typedef struct {
    struct ArrowArray root, children[COLUMN_COUNT];
    struct ArrowArray *pointers[COLUMN_COUNT];
    const void *no_buffer;
} ArrayTree;

static void release_child_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    schema->release = NULL;
    free(schema->private_data);
}

static void release_column(struct ArrowArray *array) {
    const void **buffers = array->private_data;
    free((void *)(uintptr_t)buffers[0]);
    free((void *)(uintptr_t)buffers[1]);
    free(buffers);
    array->release = NULL;
}

static void release_array(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    array->release = NULL;
    free(array->private_data);
}

static SchemaTree *schema_tree(void) {
    SchemaTree *tree = calloc(1, sizeof *tree);
    if (!tree) return NULL;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        tree->children[i] = (struct ArrowSchema){.format = COLUMNS[i].format,
                                                 .name = COLUMNS[i].name,
                                                 .flags = ARROW_FLAG_NULLABLE,
                                                 .release = release_child_schema};
        tree->pointers[i] = &tree->children[i];
    }
    tree->root = (struct ArrowSchema){.format = "+s",
                                      .name = "",
                                      .n_children = COLUMN_COUNT,
                                      .children = tree->pointers,
                                      .release = release_schema,
                                      .private_data = tree};
    return tree;
}

static int64_t absent_count(const uint8_t *valid, size_t count) {
    int64_t present = 0;
    for (size_t i = 0; i < (count + 7) / 8; i++) /* bits behind the last row are 0 */
        for (uint8_t bits = valid[i]; bits; bits &= (uint8_t)(bits - 1)) present++;
    return (int64_t)count - present;
}

/* A column that owns its buffers; those of `columns` are left where memory is lacking. */
static bool take_column(struct ArrowArray *array, Columns *columns, int i) {
    const void **buffers = calloc(2, sizeof *buffers);
    if (!buffers) return false;
    int64_t absent = absent_count(columns->valid[i], columns->count);
    if (absent) buffers[0] = columns->valid[i];
    else free(columns->valid[i]);
    buffers[1] = columns->values[i];
    columns->valid[i] = NULL;
    columns->values[i] = NULL;
    *array = (struct ArrowArray){.length = (int64_t)columns->count,
                                 .null_count = absent,
                                 .n_buffers = 2,
                                 .buffers = buffers,
                                 .release = release_column,
                                 .private_data = buffers};
    return true;
}

static ArrayTree *array_tree(Columns *columns) {
    ArrayTree *tree = calloc(1, sizeof *tree);
    if (!tree) return NULL;
    for (int i = 0; i < COLUMN_COUNT; i++) tree->pointers[i] = &tree->children[i];
    tree->root = (struct ArrowArray){.length = (int64_t)columns->count,
                                     .n_buffers = 1,
                                     .n_children = COLUMN_COUNT,
                                     .buffers = &tree->no_buffer,
                                     .children = tree->pointers,
                                     .release = release_array,
                                     .private_data = tree};
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (!take_column(&tree->children[i], columns, i)) {
            release_array(&tree->root);
            return NULL;
        }
    columns_free(columns);
    return tree;
}

static void free_schema_capsule(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release) schema->release(schema);
    free(schema);
}

static void free_array_capsule(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release) array->release(array);
    free(array);
}

static PyObject *schema_capsule(void) {
    SchemaTree *tree = schema_tree();
    struct ArrowSchema *moved = malloc(sizeof *moved);
    if (!tree || !moved) {
        free(tree);
        free(moved);
        return PyErr_NoMemory();
    }
    *moved = tree->root;
    PyObject *capsule = PyCapsule_New(moved, "arrow_schema", free_schema_capsule);
    if (!capsule) {
        moved->release(moved);
        free(moved);
    }
    return capsule;
}

static PyObject *array_capsule(Columns *columns) {
    ArrayTree *tree = array_tree(columns);
    struct ArrowArray *moved = malloc(sizeof *moved);
    if (!tree || !moved) {
        if (tree) release_array(&tree->root);
        free(moved);
        return PyErr_NoMemory();
    }
    *moved = tree->root;
    PyObject *capsule = PyCapsule_New(moved, "arrow_array", free_array_capsule);
    if (!capsule) {
        moved->release(moved);
        free(moved);
    }
    return capsule;
}

PyObject *arrow_capsules(Columns *columns) {
    PyObject *schema = schema_capsule();
    if (!schema) return NULL;
    PyObject *array = array_capsule(columns);
    PyObject *pair = array ? PyTuple_Pack(2, schema, array) : NULL;
    Py_DECREF(schema);
    Py_XDECREF(array);
    return pair;
}
