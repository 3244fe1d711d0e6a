/* Lists of documents by query, with numbers or without: from Python objects, and from lines of JSON.
 *
 * Both become columns, or are drawn as they are read. Nothing here calls code of others: only exact
 * dicts, lists, texts and numbers are looked at, so that no object changes meanwhile. */
#ifndef FINDWELL_LISTS_H
#define FINDWELL_LISTS_H

#include "drawing.h"

typedef struct {
    Texts queries, docs;
    double *numbers; /* of the documents */
    size_t room;
    Numbers counts; /* documents of each query */
    Names met;      /* queries, where one may come back */
    Text iteration;
} Lists;

static void free_lists(Lists *lists)
{
    free_texts(&lists->queries);
    free_texts(&lists->docs);
    free(lists->numbers);
    free(lists->counts.data);
    free_names(&lists->met);
    memset(lists, 0, sizeof *lists);
}

static int append(Lists *lists, Text doc, double number)
{
    if (add_text(&lists->docs, doc) != 0)
        return FAILED;
    if (RARELY(lists->room != lists->docs.room)) {
        double *numbers = realloc(lists->numbers, lists->docs.room * sizeof *numbers);
        if (numbers == NULL)
            return FAILED;
        lists->numbers = numbers;
        lists->room = lists->docs.room;
    }
    lists->numbers[lists->docs.count - 1] = number;
    return PLAIN;
}

/* Begin a query of a file; it is declined if it was there before. */
static int begin_query(Lists *lists, Text query)
{
    size_t before = lists->met.count;
    if (add_name(&lists->met, query) != PLAIN || add_text(&lists->queries, query) != 0)
        return FAILED;
    return lists->met.count == before ? DECLINED : PLAIN;
}

/* Sort the judgements of a query: the highest grade comes first. */
static void best_first(Drawing *d)
{
    for (size_t i = 1; i < d->count; i++)
        if (d->rows[i].score > d->rows[i - 1].score) {
            sort_rows(d->rows, d->spare, d->count, 0);
            break;
        }
}

/* End a query whose rows are judgements; it is declined if a document occurs twice. */
static int end_judgements(Drawing *d, Lists *lists)
{
    if (d->count && !number_rows(d))
        return DECLINED;
    best_first(d);
    for (size_t i = 0; i < d->count; i++)
        if (append(lists, d->rows[i].doc, d->rows[i].score) != PLAIN)
            return FAILED;
    int failed = push(&lists->counts, (int64_t)d->count);
    d->count = 0;
    return failed ? FAILED : PLAIN;
}

static int may_be_blank(Text id)
{
    return !id.size || (uint8_t)*id.at <= ' ' || begins_blank(id);
}

/* --- columns of lists ----------------------------------------------------------------------- */

/* Return (queries, how many documents each has, documents, numbers); nothing is left here. */
static PyObject *columns_tuple(Lists *lists)
{
    size_t size = lists->docs.count * sizeof *lists->numbers;
    PyObject *queries = new_column(take_made(&lists->queries));
    PyObject *docs = new_column(take_made(&lists->docs));
    PyObject *numbers = new_memory(lists->numbers, size);
    lists->numbers = NULL;
    PyObject *counts = take_numbers(&lists->counts);
    PyObject *result = NULL;
    if (queries && docs && numbers && counts)
        result = PyTuple_Pack(4, queries, counts, docs, numbers);
    Py_XDECREF(queries);
    Py_XDECREF(counts);
    Py_XDECREF(docs);
    Py_XDECREF(numbers);
    free_lists(lists);
    return result;
}

/* --- Python objects ------------------------------------------------------------------------- */

enum { PIECE_ROWS = 1 << 17, PIECE_BYTES = 1 << 28, FEW = 64 };

typedef struct {
    Lists *pieces; /* the last one grows */
    size_t count;
    Drawing drawing; /* to sort judgements */
    int judged, listed;
} Packing;

static int take_id(PyObject *object, Text *id)
{
    Py_ssize_t size;
    if (!PyUnicode_CheckExact(object))
        return DECLINED;
    id->at = PyUnicode_AsUTF8AndSize(object, &size);
    if (id->at == NULL) { /* half of a surrogate pair */
        PyErr_Clear();
        return DECLINED;
    }
    id->size = (size_t)size;
    return may_be_blank(*id) ? DECLINED : PLAIN;
}

static int take_number(PyObject *object, double *number)
{
    if (Py_IS_TYPE(object, &PyFloat_Type))
        *number = PyFloat_AsDouble(object);
    else if (Py_IS_TYPE(object, &PyLong_Type) || PyLong_Check(object)) {
        *number = PyLong_AsDouble(object);
        if (*number == -1.0 && PyErr_Occurred()) { /* too large */
            PyErr_Clear();
            return DECLINED;
        }
    }
    else if (PyFloat_Check(object)) /* of NumPy */
        *number = PyFloat_AsDouble(object);
    else
        return DECLINED;
    return isfinite(*number) ? PLAIN : DECLINED;
}

/* Begin the next piece; NULL: there is no memory. */
static Lists *next_piece(Packing *p)
{
    Lists *pieces = realloc(p->pieces, (p->count + 1) * sizeof *pieces);
    if (pieces == NULL)
        return NULL;
    p->pieces = pieces;
    memset(&pieces[p->count], 0, sizeof *pieces);
    return &pieces[p->count++];
}

/* Sort the judgements that were appended last, few of which no document is among twice. */
static void sort_last(Lists *lists, size_t first)
{
    View *views = lists->docs.views;
    double *numbers = lists->numbers;
    for (size_t at = first + 1; at < lists->docs.count; at++) {
        View view = views[at];
        double number = numbers[at];
        size_t to = at;
        for (; to > first && numbers[to - 1] < number; to--) {
            views[to] = views[to - 1];
            numbers[to] = numbers[to - 1];
        }
        views[to] = view;
        numbers[to] = number;
    }
}

/* Pack a query; judgements that are many, or may be twice in a list, are sorted before. */
static int pack_query(Packing *p, Lists *lists, PyObject *key, PyObject *docs)
{
    PyObject *doc, *value;
    Text query = {NULL, 0}, id;
    double number = 1.0;
    size_t before = lists->docs.count;
    int is_list = PyList_CheckExact(docs);
    if (p->listed ? !is_list && !PyTuple_CheckExact(docs) : !PyDict_CheckExact(docs))
        return DECLINED;
    Py_ssize_t at = 0, size = PyObject_Size(docs);
    int sorted_before = p->judged && (p->listed || size > FEW);
    int outcome = take_id(key, &query);
    if (outcome == PLAIN && add_text(&lists->queries, query) != 0)
        outcome = FAILED;
    while (outcome == PLAIN) {
        if (!p->listed) {
            if (!PyDict_Next(docs, &at, &doc, &value))
                break;
            outcome = take_number(value, &number);
        }
        else if (at < size)
            doc = is_list ? PyList_GetItem(docs, at++) : PyTuple_GetItem(docs, at++);
        else
            break;
        if (outcome == PLAIN)
            outcome = take_id(doc, &id);
        if (outcome == PLAIN && id.size > INT32_MAX - lists->docs.used)
            outcome = DECLINED; /* a column could not hold it */
        if (outcome == PLAIN)
            outcome = sorted_before ? add_row(&p->drawing, id, number) : append(lists, id, number);
    }
    if (outcome == PLAIN && sorted_before)
        return end_judgements(&p->drawing, lists);
    if (outcome == PLAIN && p->judged)
        sort_last(lists, before);
    if (outcome == PLAIN && push(&lists->counts, (int64_t)(lists->docs.count - before)))
        outcome = FAILED;
    return outcome;
}

static int pack_objects(Packing *p, PyObject *data)
{
    PyObject *key, *docs;
    Lists *lists = NULL;
    int may_be_empty = !p->judged && !p->listed, outcome = PLAIN;
    /* queries without scores come last, as in the code in Python */
    for (int empty = 0; empty <= may_be_empty; empty++)
        for (Py_ssize_t at = 0; outcome == PLAIN && PyDict_Next(data, &at, &key, &docs);) {
            if (may_be_empty && empty != (PyDict_CheckExact(docs) && !PyDict_Size(docs)))
                continue;
            if (lists == NULL && (lists = next_piece(p)) == NULL)
                return FAILED;
            outcome = pack_query(p, lists, key, docs);
            if (lists->docs.count >= PIECE_ROWS || lists->docs.used >= PIECE_BYTES)
                lists = NULL;
        }
    return outcome;
}

/* Pack {query: {doc: number}} or {query: [doc]} into columns, piece by piece of whole queries. */
static PyObject *pack(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data, *result = NULL;
    Packing p = {0};
    if (!PyArg_ParseTuple(args, "Opp", &data, &p.listed, &p.judged))
        return NULL;
    int outcome = PyDict_CheckExact(data) ? pack_objects(&p, data) : DECLINED;
    if (outcome == FAILED)
        PyErr_NoMemory();
    else if (outcome == DECLINED)
        result = Py_NewRef(Py_None);
    else
        result = PyList_New((Py_ssize_t)p.count);
    for (size_t i = 0; i < p.count; i++) { /* Python may run code from here on: all is packed */
        PyObject *piece = outcome == PLAIN && result ? columns_tuple(&p.pieces[i]) : NULL;
        free_lists(&p.pieces[i]);
        if (outcome == PLAIN && result &&
            (piece == NULL || PyList_SetItem(result, (Py_ssize_t)i, piece) != 0))
            Py_CLEAR(result);
    }
    free(p.pieces);
    free_drawing(&p.drawing);
    return result;
}

/* --- lines of JSON: {"query": "q1", FIELD: ["d1", "d2"]} -------------------------------------- */

typedef struct {
    const char *at, *end;
    Text field;
} Json;

static int next_mark(Json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
    return json->at < json->end ? *json->at : '\n';
}

/* Read a string without escapes. */
static int next_string(Json *json, Text *text)
{
    if (next_mark(json) != '"')
        return DECLINED;
    const char *p = ++json->at;
    while (p < json->end && *p != '"' && *p != '\\' && (uint8_t)*p >= ' ')
        p++;
    if (p >= json->end || *p != '"')
        return DECLINED;
    text->at = json->at;
    text->size = (size_t)(p - json->at);
    json->at = p + 1;
    return PLAIN;
}

static int expect(Json *json, char mark)
{
    if (next_mark(json) != mark)
        return DECLINED;
    json->at++;
    return PLAIN;
}

/* Read the ids of a list into the rows. */
static int next_list(Json *json, Drawing *d, int falling)
{
    Text doc;
    if (expect(json, '[') != PLAIN)
        return DECLINED;
    if (next_mark(json) == ']') {
        json->at++;
        return PLAIN;
    }
    for (;;) {
        if (next_string(json, &doc) != PLAIN || may_be_blank(doc))
            return DECLINED;
        if (add_row(d, doc, falling ? -(double)d->count : 1.0) != PLAIN)
            return FAILED;
        int mark = next_mark(json);
        json->at++;
        if (mark == ']')
            return PLAIN;
        if (mark != ',')
            return DECLINED;
    }
}

/* Read the next record; 0: the end; -1: it is not plain; -2: no memory. */
static int next_record(Json *json, Drawing *d, Text *query, int falling)
{
    Text key;
    int names = 0, lists = 0, outcome = PLAIN;
    while (next_mark(json) == '\n') {
        if (json->at >= json->end)
            return 0;
        json->at++;
    }
    if (expect(json, '{') != PLAIN)
        return -1;
    for (int i = 0; i < 2; i++) {
        if ((i && expect(json, ',') != PLAIN) || next_string(json, &key) != PLAIN ||
            expect(json, ':') != PLAIN)
            return -1;
        if (same_text(key, (Text){"query", 5})) {
            names++;
            outcome = next_string(json, query);
        }
        else if (same_text(key, json->field)) {
            lists++;
            outcome = next_list(json, d, falling);
        }
        else
            return -1;
        if (outcome != PLAIN)
            return outcome == FAILED ? -2 : -1;
    }
    if (names != 1 || lists != 1 || may_be_blank(*query) || expect(json, '}') != PLAIN ||
        next_mark(json) != '\n')
        return -1;
    return 1;
}

#endif
