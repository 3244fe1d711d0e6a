/* TREC files in one pass: parse, rank and match the rows of each query, without Python objects.
 *
 * The kernel reads only what is plain: lines with exactly the expected columns, numbers in plain
 * decimal spelling, valid UTF-8, no document twice in a query. About anything else it says nothing:
 * it declines the block (returns None), and the code in Python, which defines what a line means,
 * reads that block. So there is one place for messages and findings, and the kernel cannot differ.
 *
 * Blocks are independent of each other and are worked on without the GIL, so threads share them.
 * Only the limited API of Python 3.11 is used: one build serves all later versions.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define RARELY(x) __builtin_expect(!!(x), 0)
#else
#define RARELY(x) (x)
#endif

/* --- texts --------------------------------------------------------------------------------- */

typedef struct {
    const char *at;
    size_t size;
} Text;

static int same_text(Text a, Text b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

/* The order of UTF-8 bytes is the order of code points. */
static int compare_texts(Text a, Text b)
{
    int order = memcmp(a.at, b.at, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static uint64_t seed; /* another one in every process, so that nobody can make hashes collide */

static uint64_t load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ seed) * 0x9E3779B97F4A7C15u;
    a ^= a >> 32;
    a = (a + b) * 0xC2B2AE3D27D4EB4Fu;
    return a ^ (a >> 29);
}

static uint64_t hash_text(Text text)
{
    const char *at = text.at;
    size_t left = text.size;
    uint64_t hash = left;
    while (left > 8) {
        hash = mix(hash, load8(at));
        at += 8;
        left -= 8;
    }
    uint64_t last = 0;
    memcpy(&last, at, left);
    return mix(hash, last);
}

/* --- growing arrays ------------------------------------------------------------------------ */

typedef struct {
    int32_t *data;
    size_t count, room;
} Numbers;

/* Every allocation that fails ends here; the caller sees `failed` and raises MemoryError. */
static int push(Numbers *numbers, int64_t value)
{
    if (RARELY(numbers->count == numbers->room)) {
        size_t room = numbers->room ? numbers->room * 2 : 1024;
        int32_t *data = realloc(numbers->data, room * sizeof *data);
        if (data == NULL)
            return -1;
        numbers->data = data;
        numbers->room = room;
    }
    numbers->data[numbers->count++] = (int32_t)value;
    return 0;
}

static PyObject *as_bytes(const Numbers *numbers)
{
    return PyBytes_FromStringAndSize((const char *)numbers->data,
                                     (Py_ssize_t)(numbers->count * sizeof *numbers->data));
}

/* --- lines --------------------------------------------------------------------------------- */

enum { BLANK = 1, NEWLINE = 2 };

static const uint8_t KIND[256] = {
    [' '] = BLANK, ['\t'] = BLANK, ['\r'] = BLANK, ['\v'] = BLANK, ['\f'] = BLANK,
    ['\n'] = NEWLINE,
};

enum { WORDS = 6 };

/* Read the next line that is neither blank nor a comment; return its words, at most WORDS of them.
 * 0: the end; WORDS + 1: there are more. */
static int next_line(const char **at, const char *end, Text words[WORDS])
{
    const char *p = *at;
    for (;;) {
        int count = 0;
        while (p < end && KIND[(uint8_t)*p] == BLANK)
            p++;
        if (p < end && *p == '#') {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            p = newline ? newline : end;
        }
        while (p < end && *p != '\n') {
            const char *begin = p;
            while (p < end && !KIND[(uint8_t)*p])
                p++;
            if (count < WORDS) {
                words[count].at = begin;
                words[count].size = (size_t)(p - begin);
            }
            count++;
            while (p < end && KIND[(uint8_t)*p] == BLANK)
                p++;
        }
        if (p < end)
            p++; /* the newline */
        if (count || p >= end) {
            *at = p;
            return count > WORDS ? WORDS + 1 : count;
        }
    }
}

/* --- numbers ------------------------------------------------------------------------------- */

static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The nearest double to mantissa / 10^places, for places up to 19, by one exact division. */
static double divide(uint64_t mantissa, int places)
{
#ifdef __SIZEOF_INT128__
    static const uint64_t TENS[] = {1u,
                                    10u,
                                    100u,
                                    1000u,
                                    10000u,
                                    100000u,
                                    1000000u,
                                    10000000u,
                                    100000000u,
                                    1000000000u,
                                    10000000000u,
                                    100000000000u,
                                    1000000000000u,
                                    10000000000000u,
                                    100000000000000u,
                                    1000000000000000u,
                                    10000000000000000u,
                                    100000000000000000u,
                                    1000000000000000000u,
                                    10000000000000000000u};
    /* the quotient of a number of at least 127 bits and one of at most 64 has at least 63 */
    int shift = 63 + __builtin_clzll(mantissa);
    unsigned __int128 wide = (unsigned __int128)mantissa << shift;
    unsigned __int128 quotient = wide / TENS[places];
    int sticky = quotient * TENS[places] != wide;
    int drop = 0; /* bits beyond the 64 that are kept; of these 53 stay, and the rest rounds */
    while (quotient >> (64 + drop))
        drop++;
    sticky |= (quotient & (((unsigned __int128)1 << drop) - 1)) != 0;
    uint64_t bits = (uint64_t)(quotient >> drop) | (uint64_t)sticky;
    /* converting rounds to nearest even, and the lowest bit says that something lies below it */
    return ldexp((double)bits, drop - shift);
#else
    (void)mantissa;
    (void)places;
    return NAN; /* the caller asks strtod */
#endif
}

/* Read a plain decimal number as Python's float() does. 0: it is spelled otherwise. */
static int read_number(Text text, double *value)
{
    const char *p = text.at, *end = text.at + text.size;
    int negative = 0, exponent = 0;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    uint64_t mantissa = 0;
    int digits = 0, places = 0, read = 0; /* digits that count; after the point; in all */
    for (; p < end && *p >= '0' && *p <= '9'; p++, read++) {
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        digits += mantissa != 0;
    }
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9'; p++, read++, places++) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
            digits += mantissa != 0;
        }
    if (!read)
        return 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        int minus = 0, any = 0;
        p++;
        if (p < end && (*p == '-' || *p == '+'))
            minus = *p++ == '-';
        for (; p < end && *p >= '0' && *p <= '9' && exponent < 1000; p++, any = 1)
            exponent = exponent * 10 + (*p - '0');
        if (!any)
            return 0;
        exponent = minus ? -exponent : exponent;
    }
    if (p != end)
        return 0;
    exponent -= places;
    double found = NAN;
    if (digits <= 19) { /* else the mantissa has overflowed */
        if (mantissa == 0)
            found = 0.0;
        else if (mantissa <= (1ull << 53) && exponent >= -22 && exponent <= 22)
            found = exponent < 0 ? (double)mantissa / POWERS[-exponent]
                                 : (double)mantissa * POWERS[exponent];
        else if (exponent < 0 && exponent >= -19)
            found = divide(mantissa, -exponent);
    }
    if (isnan(found)) {
        char copy[64], *stop;
        if (text.size >= sizeof copy)
            return 0;
        memcpy(copy, text.at, text.size);
        copy[text.size] = 0;
        *value = strtod(copy, &stop);
        return *stop == 0 && isfinite(*value); /* another decimal point stops it, too */
    }
    *value = negative ? -found : found;
    return 1;
}

/* --- what is not plain --------------------------------------------------------------------- */

static int is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (*p < 0x80) {
            while (end - p >= 8 && !(load8((const char *)p) & 0x8080808080808080u))
                p += 8;
            while (p < end && *p < 0x80)
                p++;
            continue;
        }
        int more = *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : 1;
        if (*p < 0xC2 || *p > 0xF4 || end - p <= more)
            return 0;
        /* no overlong forms, no surrogates, nothing above U+10FFFF */
        uint8_t low = *p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80;
        uint8_t high = *p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF;
        if (p[1] < low || p[1] > high)
            return 0;
        for (int i = 2; i <= more; i++)
            if ((p[i] & 0xC0) != 0x80)
                return 0;
        p += more + 1;
    }
    return 1;
}

/* Whether an id begins with a blank of Unicode: it may be blank as a whole. */
static int begins_blank(Text id)
{
    const uint8_t *p = (const uint8_t *)id.at;
    if (p[0] < 0xC2)
        return 0;
    if (p[0] == 0xC2)
        return p[1] == 0x85 || p[1] == 0xA0;
    return p[0] >= 0xE1 && p[0] <= 0xE3 && (p[1] == 0x80 || p[1] == 0x81 || p[1] == 0x9A);
}

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

/* --- sets of names ------------------------------------------------------------------------- */

/* Numbers of names, by open addressing; `slots` is a power of two, 0 means empty. */
typedef struct {
    uint32_t *numbers;
    size_t slots;
} Table;

static int make_table(Table *table, size_t names)
{
    table->slots = 16;
    while (table->slots < names * 2)
        table->slots *= 2;
    table->numbers = calloc(table->slots, sizeof *table->numbers);
    return table->numbers ? 0 : -1;
}

/* --- rows of one query --------------------------------------------------------------------- */

typedef struct {
    Text doc;
    uint64_t hash;
    double score;
} Row;

/* Whether a row belongs behind another: by score, then perhaps by id, both descending. */
static int behind(const Row *a, const Row *b, int by_id)
{
    if (a->score != b->score)
        return a->score < b->score;
    return by_id && compare_texts(a->doc, b->doc) < 0;
}

/* Merge sort: stable, and no input makes it slow. */
static void sort_rows(Row *rows, Row *spare, size_t count, int by_id)
{
    for (size_t i = 0; i < count; i += 8) /* short stretches by insertion */
        for (size_t j = i + 1; j < i + 8 && j < count; j++) {
            Row row = rows[j];
            size_t k = j;
            for (; k > i && behind(&rows[k - 1], &row, by_id); k--)
                rows[k] = rows[k - 1];
            rows[k] = row;
        }
    Row *from = rows, *to = spare;
    for (size_t width = 8; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t left = i, middle = i + width < count ? i + width : count;
            size_t right = middle, end = i + 2 * width < count ? i + 2 * width : count;
            for (size_t k = i; k < end; k++)
                if (left < middle && (right == end || !behind(&from[left], &from[right], by_id)))
                    to[k] = from[left++];
                else
                    to[k] = from[right++];
        }
        Row *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, count * sizeof *rows);
}

/* The gold: its queries by name, and the documents of each query, which stand together. */
typedef struct {
    PyObject_HEAD
    Strings queries, docs;
    Py_buffer first;  /* int64 per query and one more: where its documents begin */
    Py_buffer item;   /* int32 per document */
    Py_buffer judged; /* bool per item */
    Table table;
} Index;

static int64_t find_query(const Index *index, Text name, int64_t guess)
{
    /* in the order of the gold, the next one is the likely one */
    if (guess < (int64_t)index->queries.size && same_text(text_at(&index->queries, (size_t)guess), name))
        return guess;
    size_t mask = index->table.slots - 1;
    for (size_t slot = hash_text(name) & mask; index->table.numbers[slot]; slot = (slot + 1) & mask) {
        uint32_t number = index->table.numbers[slot] - 1;
        if (same_text(text_at(&index->queries, number), name))
            return number;
    }
    return -1;
}

/* What is drawn from a block, and what is needed while it is. */
enum { PLAIN, DECLINED, FAILED };

enum { QUERY, RETRIEVED, EDGE_QUERY, EDGE_RANK, EDGE_ITEM, UNIT_QUERY, UNIT_RANK, TIE_QUERY,
       TIE_FIRST, TIE_LAST, UNSORTED, ARRAYS };

typedef struct {
    const Index *index;
    Row *rows, *spare; /* of the present query; `spare` is for sorting, and as long */
    size_t count, room;
    Table table;          /* the rows by document; values are row + 1 */
    Numbers found; /* member and row in turns */
    Numbers out[ARRAYS];
} Drawing;

static void free_drawing(Drawing *d)
{
    free(d->rows);
    free(d->spare);
    free(d->table.numbers);
    free(d->found.data);
    for (int i = 0; i < ARRAYS; i++)
        free(d->out[i].data);
}

static int add_row(Drawing *d, Text doc, double score)
{
    if (RARELY(d->count == d->room)) {
        size_t room = d->room ? d->room * 2 : 256;
        Row *rows = realloc(d->rows, room * sizeof *rows);
        if (rows == NULL)
            return FAILED;
        d->rows = rows;
        Row *spare = realloc(d->spare, room * sizeof *spare);
        if (spare == NULL)
            return FAILED;
        d->spare = spare;
        free(d->table.numbers);
        if (make_table(&d->table, room) != 0)
            return FAILED;
        d->room = room;
    }
    Row *row = &d->rows[d->count++];
    row->doc = doc;
    row->hash = hash_text(doc);
    row->score = score;
    return PLAIN;
}

/* Return the slot of a document among the rows; its number is 0 if there is none. */
static uint32_t *slot_of(const Drawing *d, Text doc, uint64_t hash, size_t mask)
{
    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        uint32_t number = d->table.numbers[slot];
        if (!number ||
            (d->rows[number - 1].hash == hash && same_text(d->rows[number - 1].doc, doc)))
            return &d->table.numbers[slot];
    }
}

/* Enter the rows of a query into the table, and return its mask; 0 if a document occurs twice. */
static size_t number_rows(Drawing *d)
{
    size_t slots = 16; /* only as many as these rows need, so that they stay in the cache */
    while (slots < d->count * 2)
        slots *= 2;
    memset(d->table.numbers, 0, slots * sizeof *d->table.numbers);
    for (size_t i = 0; i < d->count; i++) {
        uint32_t *slot = slot_of(d, d->rows[i].doc, d->rows[i].hash, slots - 1);
        if (RARELY(*slot))
            return 0;
        *slot = (uint32_t)i + 1;
    }
    return slots - 1;
}

static int by_rank(const void *a, const void *b)
{
    const int32_t *x = a, *y = b; /* member, row: by row, then by member */
    return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[0] > y[0]) - (x[0] < y[0]);
}

/* Rank and match the rows of one query. */
static int draw_query(Drawing *d, int64_t query)
{
    const Index *index = d->index;
    Row *rows = d->rows;
    size_t count = d->count;
    int failed = 0, rising = 0, tied = 0;
    for (size_t i = 1; i < count; i++) {
        rising |= rows[i].score > rows[i - 1].score;
        tied |= rows[i].score == rows[i - 1].score;
    }
    if (rising) {
        failed |= push(&d->out[UNSORTED], query);
        tied = 1; /* not known before they are sorted */
    }
    if (rising || tied)
        sort_rows(rows, d->spare, count, 1);
    if (tied)
        for (size_t i = 0, j; i < count; i = j) {
            for (j = i + 1; j < count && rows[j].score == rows[i].score; j++)
                ;
            if (j - i > 1)
                failed |= push(&d->out[TIE_QUERY], query) |
                          push(&d->out[TIE_FIRST], (int64_t)i + 1) |
                          push(&d->out[TIE_LAST], (int64_t)j);
        }
    size_t mask = number_rows(d);
    if (!mask)
        return DECLINED;
    const int64_t *first = index->first.buf;
    const int32_t *item = index->item.buf;
    const uint8_t *judged = index->judged.buf;
    d->found.count = 0;
    for (int64_t member = first[query]; member < first[query + 1]; member++) {
        Text doc = text_at(&index->docs, (size_t)member);
        uint32_t number = *slot_of(d, doc, hash_text(doc), mask);
        if (number)
            failed |= push(&d->found, member) | push(&d->found, number - 1);
    }
    if (d->found.count)
        qsort(d->found.data, d->found.count / 2, 2 * sizeof *d->found.data, by_rank);
    int64_t last = -1; /* the unit that was listed last */
    for (size_t i = 0; i < d->found.count; i += 2) {
        int64_t what = item[d->found.data[i]], rank = d->found.data[i + 1] + 1;
        failed |= push(&d->out[EDGE_QUERY], query) | push(&d->out[EDGE_RANK], rank) |
                  push(&d->out[EDGE_ITEM], what);
        if (judged[what] && rank != last) {
            failed |= push(&d->out[UNIT_QUERY], query) | push(&d->out[UNIT_RANK], rank);
            last = rank;
        }
    }
    failed |= push(&d->out[QUERY], query) | push(&d->out[RETRIEVED], (int64_t)count);
    d->count = 0;
    return failed ? FAILED : PLAIN;
}

/* --- names that the gold does not have, each once ------------------------------------------- */

typedef struct {
    Text *names;
    size_t count, room;
    Table table;
} Names;

static void free_names(Names *names)
{
    free(names->names);
    free(names->table.numbers);
}

static int add_name(Names *names, Text name)
{
    if (names->count == names->room) {
        size_t room = names->room ? names->room * 2 : 256;
        Text *grown = realloc(names->names, room * sizeof *grown);
        if (grown == NULL)
            return FAILED;
        names->names = grown;
        names->room = room;
        free(names->table.numbers);
        if (make_table(&names->table, room) != 0)
            return FAILED;
        for (size_t i = 0; i < names->count; i++) {
            size_t slot = hash_text(grown[i]) & (names->table.slots - 1);
            while (names->table.numbers[slot])
                slot = (slot + 1) & (names->table.slots - 1);
            names->table.numbers[slot] = (uint32_t)i + 1;
        }
    }
    size_t slot = hash_text(name) & (names->table.slots - 1);
    for (; names->table.numbers[slot]; slot = (slot + 1) & (names->table.slots - 1))
        if (same_text(names->names[names->table.numbers[slot] - 1], name))
            return PLAIN;
    names->table.numbers[slot] = (uint32_t)names->count + 1;
    names->names[names->count++] = name;
    return PLAIN;
}

static PyObject *as_list(const Names *names)
{
    PyObject *list = PyList_New((Py_ssize_t)names->count);
    for (size_t i = 0; list && i < names->count; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(names->names[i].at, (Py_ssize_t)names->names[i].size,
                                              "strict");
        if (name == NULL || PyList_SetItem(list, (Py_ssize_t)i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* --- a block of a run ------------------------------------------------------------------------ */

typedef struct {
    Drawing drawing;
    Names extra;
    char *seen;      /* per query: whether it was met in this block */
    int64_t rows;    /* lines that are rows */
    int64_t sampled; /* bytes that hold the first of them */
    int scattered;   /* a query was met, left, and met again */
} Block;

enum { SAMPLE = 1000 };

static int is_plain(const char *data, const char *end)
{
    return memchr(data, 0, (size_t)(end - data)) == NULL &&
           is_utf8((const uint8_t *)data, (const uint8_t *)end);
}

/* Read query, document and score of the next line of a run. 0: the end; -1: it is not plain. */
static int next_row(const char **at, const char *end, int columns, int narrow, Text *query, Text *doc,
                    double *score)
{
    Text words[WORDS];
    int count = next_line(at, end, words);
    if (count == 0)
        return 0;
    if (count != columns || !read_number(words[4], score) || begins_blank(words[2]) ||
        begins_blank(words[0]))
        return -1;
    if (narrow)
        *score = (double)(float)*score;
    *query = words[0];
    *doc = words[2];
    return isfinite(*score) ? 1 : -1;
}

/* Draw a block whose queries stand together; if one comes back, stop and say so. */
static int draw_contiguous(Block *block, const char *data, const char *end, int columns, int narrow)
{
    Drawing *d = &block->drawing;
    const char *at = data;
    Text present = {NULL, 0}, query, doc;
    int64_t number = -1;
    double score;
    int state, outcome = PLAIN;
    while ((state = next_row(&at, end, columns, narrow, &query, &doc, &score)) > 0) {
        if (!same_text(query, present)) {
            if (number >= 0 && (outcome = draw_query(d, number)) != PLAIN)
                return outcome;
            int64_t known = find_query(d->index, query, number + 1);
            present = query;
            if (known < 0 && add_name(&block->extra, query) != PLAIN)
                return FAILED;
            if (known >= 0 && block->seen[known]++) {
                block->scattered = 1;
                return PLAIN;
            }
            number = known;
        }
        if (number >= 0 && add_row(d, doc, score) != PLAIN)
            return FAILED;
        if (++block->rows == SAMPLE)
            block->sampled = at - data;
    }
    if (state < 0)
        return DECLINED;
    return number >= 0 ? draw_query(d, number) : PLAIN;
}

typedef struct {
    Row row;
    int64_t query;
} Scattered;

static int by_query(const void *a, const void *b)
{
    const Scattered *x = *(const Scattered *const *)a, *y = *(const Scattered *const *)b;
    if (x->query != y->query)
        return (x->query > y->query) - (x->query < y->query);
    return (x > y) - (x < y); /* as they were */
}

/* Draw a block whose queries are scattered: gather all rows, then go query by query. */
static int draw_scattered(Block *block, const char *data, const char *end, int columns, int narrow)
{
    Drawing *d = &block->drawing;
    const char *at = data;
    Scattered *rows = NULL, **order = NULL, next;
    size_t count = 0, room = 0;
    Text present = {NULL, 0}, query, doc;
    int64_t number = -1;
    double score;
    int state, outcome = FAILED;
    while ((state = next_row(&at, end, columns, narrow, &query, &doc, &score)) > 0) {
        if (!same_text(query, present)) {
            number = find_query(d->index, query, number + 1);
            present = query;
            if (number < 0 && add_name(&block->extra, query) != PLAIN)
                goto done;
        }
        if (++block->rows == SAMPLE)
            block->sampled = at - data;
        if (number < 0)
            continue;
        if (count == room) {
            room = room ? room * 2 : 4096;
            Scattered *grown = realloc(rows, room * sizeof *rows);
            if (grown == NULL)
                goto done;
            rows = grown;
        }
        next.query = number;
        next.row.doc = doc;
        next.row.score = score;
        rows[count++] = next;
    }
    outcome = DECLINED;
    if (state < 0)
        goto done;
    outcome = FAILED;
    order = malloc((count ? count : 1) * sizeof *order);
    if (order == NULL)
        goto done;
    for (size_t i = 0; i < count; i++)
        order[i] = &rows[i];
    qsort(order, count, sizeof *order, by_query);
    outcome = PLAIN;
    for (size_t i = 0; i < count && outcome == PLAIN; i++) {
        outcome = add_row(d, order[i]->row.doc, order[i]->row.score);
        if (outcome == PLAIN && (i + 1 == count || order[i + 1]->query != order[i]->query))
            outcome = draw_query(d, order[i]->query);
    }
done:
    free(rows);
    free(order);
    return outcome;
}

static void clear_block(Block *block)
{
    for (int i = 0; i < ARRAYS; i++)
        block->drawing.out[i].count = 0;
    block->drawing.count = 0;
    block->rows = 0;
    block->sampled = 0;
}

static PyObject *index_draw(PyObject *self, PyObject *args)
{
    Py_buffer data;
    int columns, narrow, outcome = DECLINED;
    if (!PyArg_ParseTuple(args, "y*ip", &data, &columns, &narrow))
        return NULL;
    if (data.len >= INT32_MAX) { /* numbers of rows and places in the block would not fit */
        PyBuffer_Release(&data);
        return Py_NewRef(Py_None);
    }
    Block block = {.drawing.index = (Index *)self};
    const char *begin = data.buf, *end = begin + data.len;
    Py_BEGIN_ALLOW_THREADS
    block.seen = calloc(block.drawing.index->queries.size + 1, 1);
    if (block.seen == NULL)
        outcome = FAILED;
    else if (is_plain(begin, end))
        outcome = draw_contiguous(&block, begin, end, columns, narrow);
    if (outcome == PLAIN && block.scattered) {
        clear_block(&block);
        outcome = draw_scattered(&block, begin, end, columns, narrow);
    }
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (outcome == FAILED)
        PyErr_NoMemory();
    else if (outcome == DECLINED)
        result = Py_NewRef(Py_None);
    else {
        PyObject *arrays = PyTuple_New(ARRAYS), *extra = as_list(&block.extra);
        for (int i = 0; arrays && i < ARRAYS; i++) {
            PyObject *array = as_bytes(&block.drawing.out[i]);
            if (array == NULL || PyTuple_SetItem(arrays, i, array) != 0)
                Py_CLEAR(arrays);
        }
        if (arrays && extra)
            result = Py_BuildValue("(NNLL)", arrays, extra, (long long)block.rows,
                                   (long long)(block.sampled ? block.sampled : data.len));
        else {
            Py_XDECREF(arrays);
            Py_XDECREF(extra);
        }
    }
    free_drawing(&block.drawing);
    free_names(&block.extra);
    free(block.seen);
    PyBuffer_Release(&data);
    return result;
}

/* Spread the lines of a block by query: parts of equal numbers of queries, and one of the rest. */
static PyObject *index_split(PyObject *self, PyObject *args)
{
    Py_buffer data; /* a block of a file: much less than 2 GB, unless a line is that long */
    int parts;
    if (!PyArg_ParseTuple(args, "y*i", &data, &parts))
        return NULL;
    const Index *index = (Index *)self;
    const char *at = data.buf, *end = at + data.len;
    char *bytes = malloc((size_t)data.len + 1);
    size_t *first = calloc((size_t)parts + 2, sizeof *first);
    Numbers where = {0}; /* part, begin and end of stretches of lines */
    int failed = bytes == NULL || first == NULL;
    Py_BEGIN_ALLOW_THREADS
    Text words[WORDS], present = {NULL, 0};
    int64_t number = -1, part = parts;
    const char *begin = at;
    while (!failed && next_line(&at, end, words)) {
        if (!same_text(words[0], present)) {
            number = find_query(index, words[0], number + 1);
            present = words[0];
            part = number < 0 ? parts : number * parts / (int64_t)index->queries.size;
        }
        failed |= push(&where, part) | push(&where, begin - (const char *)data.buf) |
                  push(&where, at - (const char *)data.buf);
        if (!failed)
            first[part + 1] += (size_t)(at - begin);
        begin = at;
    }
    for (int i = 0; !failed && i <= parts; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; !failed && i < where.count; i += 3) { /* `first` becomes the end */
        size_t size = (size_t)(where.data[i + 2] - where.data[i + 1]);
        memcpy(bytes + first[where.data[i]], (const char *)data.buf + where.data[i + 1], size);
        first[where.data[i]] += size;
    }
    Py_END_ALLOW_THREADS
    PyObject *result = failed ? PyErr_NoMemory() : PyList_New(parts + 1);
    for (int i = 0; result && i <= parts; i++) {
        size_t from = i ? first[i - 1] : 0;
        PyObject *piece = PyBytes_FromStringAndSize(bytes + from, (Py_ssize_t)(first[i] - from));
        if (piece == NULL || PyList_SetItem(result, i, piece) != 0)
            Py_CLEAR(result);
    }
    free(bytes);
    free(first);
    free(where.data);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kw))
{
    PyObject *queries, *docs, *first, *item, *judged;
    if (!PyArg_ParseTuple(args, "OOOOO", &queries, &docs, &first, &item, &judged))
        return NULL;
    allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
    Index *index = (Index *)allocate(type, 0);
    if (index == NULL)
        return NULL;
    if (take_strings(&index->queries, queries) != 0 || take_strings(&index->docs, docs) != 0 ||
        PyObject_GetBuffer(first, &index->first, PyBUF_SIMPLE) != 0 ||
        PyObject_GetBuffer(item, &index->item, PyBUF_SIMPLE) != 0 ||
        PyObject_GetBuffer(judged, &index->judged, PyBUF_SIMPLE) != 0)
        goto failed;
    if (index->first.len != (Py_ssize_t)((index->queries.size + 1) * sizeof(int64_t)) ||
        index->item.len != (Py_ssize_t)(index->docs.size * sizeof(int32_t)) ||
        index->docs.size >= INT32_MAX || index->queries.size >= INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
        goto failed;
    }
    if (make_table(&index->table, index->queries.size) != 0) {
        PyErr_NoMemory();
        goto failed;
    }
    for (size_t i = 0; i < index->queries.size; i++) {
        size_t slot = hash_text(text_at(&index->queries, i)) & (index->table.slots - 1);
        while (index->table.numbers[slot])
            slot = (slot + 1) & (index->table.slots - 1);
        index->table.numbers[slot] = (uint32_t)i + 1;
    }
    return (PyObject *)index;
failed:
    Py_DECREF(index);
    return NULL;
}

static void index_free(PyObject *self)
{
    Index *index = (Index *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_buffer *buffers[] = {&index->first, &index->item, &index->judged};
    for (int i = 0; i < 3; i++)
        if (buffers[i]->obj)
            PyBuffer_Release(buffers[i]);
    free_strings(&index->queries);
    free_strings(&index->docs);
    free(index->table.numbers);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef INDEX_METHODS[] = {
    {"draw", index_draw, METH_VARARGS, "Draw the rows of a block of a run; None: it is not plain."},
    {"split", index_split, METH_VARARGS, "Spread the lines of a block by query."},
    {0},
};

static PyType_Slot INDEX_SLOTS[] = {
    {Py_tp_doc, "The queries of a gold and the documents of each."},
    {Py_tp_new, index_new},
    {Py_tp_methods, INDEX_METHODS},
    {Py_tp_dealloc, index_free},
    {0},
};

static PyType_Spec INDEX = {"karat.native._kernel.Index", sizeof(Index), 0, Py_TPFLAGS_DEFAULT,
                            INDEX_SLOTS};

/* --- a block of judgements ------------------------------------------------------------------ */

typedef struct {
    Names queries;
    Text *docs;
    double *grades;
    size_t count, room;
    Numbers counts;
    Text iteration;
} Judgements;

static int close_query(Drawing *d, Judgements *found)
{
    if (!d->count)
        return PLAIN;
    if (!number_rows(d))
        return DECLINED;
    for (size_t i = 1; i < d->count; i++)
        if (d->rows[i].score > d->rows[i - 1].score) {
            sort_rows(d->rows, d->spare, d->count, 0);
            break;
        }
    if (found->count + d->count > found->room) {
        size_t room = (found->count + d->count) * 2;
        Text *docs = realloc(found->docs, room * sizeof *docs);
        if (docs == NULL)
            return FAILED;
        found->docs = docs;
        double *grades = realloc(found->grades, room * sizeof *grades);
        if (grades == NULL)
            return FAILED;
        found->grades = grades;
        found->room = room;
    }
    for (size_t i = 0; i < d->count; i++) {
        found->docs[found->count] = d->rows[i].doc;
        found->grades[found->count++] = d->rows[i].score;
    }
    int failed = push(&found->counts, (int64_t)d->count);
    d->count = 0;
    return failed ? FAILED : PLAIN;
}

static int read_judgements(Drawing *d, Judgements *found, const char *at, const char *end)
{
    Text words[WORDS], present = {NULL, 0};
    double grade;
    int count, outcome;
    while ((count = next_line(&at, end, words)) != 0) {
        if (count != 4 || !read_number(words[3], &grade))
            return DECLINED;
        if (!same_text(words[0], present)) {
            if ((outcome = close_query(d, found)) != PLAIN)
                return outcome;
            size_t before = found->queries.count;
            present = words[0];
            if (add_name(&found->queries, present) != PLAIN)
                return FAILED;
            if (found->queries.count == before)
                return DECLINED; /* a query that comes back */
        }
        if (found->iteration.at == NULL)
            found->iteration = words[1];
        if (!same_text(found->iteration, words[1]))
            return DECLINED;
        if (add_row(d, words[2], grade) != PLAIN)
            return FAILED;
    }
    return close_query(d, found);
}

static PyObject *read_qrels(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    int outcome = DECLINED;
    if (!PyArg_ParseTuple(args, "y*", &data))
        return NULL;
    if (data.len >= INT32_MAX) {
        PyBuffer_Release(&data);
        return Py_NewRef(Py_None);
    }
    const char *begin = data.buf, *end = begin + data.len;
    Drawing drawing = {0};
    Judgements found = {0};
    Made *queries = NULL, *docs = NULL;
    Py_BEGIN_ALLOW_THREADS
    if (is_plain(begin, end))
        outcome = read_judgements(&drawing, &found, begin, end);
    if (outcome == PLAIN) {
        queries = make_strings(found.queries.names, found.queries.count);
        docs = make_strings(found.docs, found.count);
        if (queries == NULL || docs == NULL)
            outcome = FAILED;
    }
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (outcome == PLAIN)
        result = Py_BuildValue(
            "(NNNNy#)", new_column(queries), as_bytes(&found.counts), new_column(docs),
            PyBytes_FromStringAndSize((const char *)found.grades,
                                      (Py_ssize_t)(found.count * sizeof *found.grades)),
            found.iteration.at, (Py_ssize_t)found.iteration.size);
    else {
        free_made(queries);
        free_made(docs);
        result = outcome == FAILED ? PyErr_NoMemory() : Py_NewRef(Py_None);
    }
    free_drawing(&drawing);
    free_names(&found.queries);
    free(found.docs);
    free(found.grades);
    free(found.counts.data);
    PyBuffer_Release(&data);
    return result;
}

/* Return where the lines of the last query of a block begin. */
static PyObject *last_query(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "y*", &data))
        return NULL;
    const char *begin = data.buf, *end = begin + data.len, *cut = end, *line = end;
    Text last = {NULL, 0}, words[WORDS];
    while (line > begin) {
        const char *stop = line - 1; /* the newline of the line before, or its last character */
        const char *start = stop;
        while (start > begin && start[-1] != '\n')
            start--;
        const char *at = start;
        if (next_line(&at, line, words)) {
            if (last.at == NULL)
                last = words[0];
            if (!same_text(last, words[0]))
                break;
            cut = start;
        }
        line = start;
    }
    PyBuffer_Release(&data);
    return PyLong_FromSsize_t(last.at == NULL ? 0 : cut - begin);
}

static PyMethodDef METHODS[] = {
    {"read_qrels", read_qrels, METH_VARARGS,
     "Read a block of judgements, the highest grade of each query first; None: it is not plain."},
    {"last_query", last_query, METH_VARARGS, "Return where the lines of the last query begin."},
    {0},
};

/* Raised with every change of what Python sees, so that a kernel built earlier is not used. */
enum { INTERFACE = 2 };

static int execute(PyObject *module)
{
    uintptr_t address = (uintptr_t)module;
    seed = (uint64_t)address * 0x9E3779B97F4A7C15u;
    column_type = (PyTypeObject *)PyType_FromSpec(&COLUMN);
    PyObject *index = PyType_FromSpec(&INDEX);
    if (column_type == NULL || index == NULL)
        return -1;
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) |
           PyModule_AddObjectRef(module, "Index", index);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, execute}, {0}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel",
    .m_doc = "TREC files, parsed, ranked and matched in one pass.",
    .m_methods = METHODS, .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&MODULE); }
