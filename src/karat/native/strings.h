/* Columns of strings: those of polars are read in place, and those that were read become columns of
 * polars, both by Arrow's C data interface, so that no library has to be linked. */
#ifndef KARAT_STRINGS_H
#define KARAT_STRINGS_H

#include "lines.h"

/* --- columns of strings, as Arrow passes them between libraries ---------------------------- */

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

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

typedef struct { /* a string: its bytes where they are few, else the buffer that holds them */
    int32_t size;
    char begin[4];
    int32_t buffer;
    int32_t offset;
} View;

enum { INLINE = 12 };

/* The strings of a column in one piece, read in place; the array keeps them alive. */
typedef struct {
    struct ArrowArray array;
    size_t size;
} Strings;

static Text text_at(const Strings *strings, size_t number)
{
    const View *view = (const View *)strings->array.buffers[1] + strings->array.offset + number;
    Text text = {view->begin, (size_t)view->size};
    if (view->size > INLINE)
        text.at = (const char *)strings->array.buffers[2 + view->buffer] + view->offset;
    return text;
}

static void free_strings(Strings *strings)
{
    if (strings->array.release)
        strings->array.release(&strings->array);
    memset(strings, 0, sizeof *strings);
}

/* Take the strings of an object with __arrow_c_stream__: views, in one piece, without nulls. */
static int take_strings(Strings *strings, PyObject *column)
{
    struct ArrowSchema schema = {0};
    struct ArrowArray more = {0};
    int fine = 0;
    PyObject *capsule = PyObject_CallMethod(column, "__arrow_c_stream__", NULL);
    if (capsule == NULL)
        return -1;
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream == NULL)
        goto done;
    fine = stream->get_schema(stream, &schema) == 0 && strcmp(schema.format, "vu") == 0 &&
           stream->get_next(stream, &strings->array) == 0;
    if (fine && strings->array.release) {
        fine = strings->array.null_count == 0 && stream->get_next(stream, &more) == 0 &&
               more.release == NULL;
        strings->size = (size_t)strings->array.length;
    }
    if (!fine)
        PyErr_SetString(PyExc_TypeError, "strings in one piece and without nulls are needed");
done:
    if (more.release)
        more.release(&more);
    if (schema.release)
        schema.release(&schema);
    Py_DECREF(capsule);
    return fine ? 0 : -1;
}

/* Strings that the kernel made, for whoever asks with __arrow_c_array__, once. */
typedef struct {
    View *views;
    char *bytes; /* of those that are too long for a view */
    size_t count, used;
    int64_t sizes[1];
    const void *buffers[4];
} Made;

static void free_made(Made *made)
{
    if (made == NULL)
        return;
    free(made->views);
    free(made->bytes);
    free(made);
}

static Made *make_strings(const Text *texts, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += texts[i].size > INLINE ? texts[i].size : 0;
    Made *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->views = calloc(count ? count : 1, sizeof(View));
    made->bytes = malloc(used ? used : 1);
    if (made->views == NULL || made->bytes == NULL || used > INT32_MAX) {
        free_made(made);
        return NULL;
    }
    made->count = count;
    for (size_t i = 0; i < count; i++) {
        View *view = &made->views[i];
        view->size = (int32_t)texts[i].size;
        if (texts[i].size <= INLINE) {
            memcpy(view->begin, texts[i].at, texts[i].size);
            continue;
        }
        memcpy(view->begin, texts[i].at, sizeof view->begin);
        view->offset = (int32_t)made->used;
        memcpy(made->bytes + made->used, texts[i].at, texts[i].size);
        made->used += texts[i].size;
    }
    return made;
}

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array)
{
    free_made(array->private_data);
    array->release = NULL;
}

static void drop_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release)
        schema->release(schema);
    free(schema);
}

static void drop_array(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release)
        array->release(array);
    free(array);
}

typedef struct {
    PyObject_HEAD
    Made *made;
} Column;

static PyObject *column_export(PyObject *self, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kw))
{
    Made *made = ((Column *)self)->made;
    if (made == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the column was taken already");
        return NULL;
    }
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    struct ArrowArray *array = calloc(1, sizeof *array);
    PyObject *first = NULL, *second = NULL;
    if (schema == NULL || array == NULL) {
        free(schema);
        free(array);
        return PyErr_NoMemory();
    }
    *schema = (struct ArrowSchema){.format = "vu", .name = "", .release = release_schema};
    first = PyCapsule_New(schema, "arrow_schema", drop_schema);
    if (first == NULL) {
        free(schema);
        free(array);
        return NULL;
    }
    second = PyCapsule_New(array, "arrow_array", drop_array);
    if (second == NULL) {
        free(array);
        Py_DECREF(first);
        return NULL;
    }
    made->sizes[0] = (int64_t)made->used;
    made->buffers[1] = made->views;
    made->buffers[2] = made->bytes;
    made->buffers[3] = made->sizes;
    *array = (struct ArrowArray){.length = (int64_t)made->count,
                                 .n_buffers = 4,
                                 .buffers = made->buffers,
                                 .release = release_array,
                                 .private_data = made};
    ((Column *)self)->made = NULL;
    return Py_BuildValue("(NN)", first, second);
}

static void column_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free_made(((Column *)self)->made);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef COLUMN_METHODS[] = {
    {"__arrow_c_array__", (PyCFunction)(void (*)(void))column_export,
     METH_VARARGS | METH_KEYWORDS, "Hand the strings over, once."},
    {0},
};

static PyType_Slot COLUMN_SLOTS[] = {
    {Py_tp_doc, "Strings that were read, for libraries that take Arrow data."},
    {Py_tp_methods, COLUMN_METHODS},
    {Py_tp_dealloc, column_free},
    {0},
};

static PyType_Spec COLUMN = {"karat.native._kernel.Column", sizeof(Column), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             COLUMN_SLOTS};
static PyTypeObject *column_type;

static PyObject *new_column(Made *made)
{
    Column *column = PyObject_New(Column, column_type);
    if (column == NULL) {
        free_made(made);
        return NULL;
    }
    column->made = made;
    return (PyObject *)column;
}

#endif
