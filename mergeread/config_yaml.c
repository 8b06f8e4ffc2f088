/* See config_yaml.h. libyaml gives events with line and column; its messages are put into our words. */
#include "config_yaml.h"

#include <yaml.h>

#include "alloc.h"

struct builder {
    const char *name;
    struct silt_yaml *tree;
    struct silt_err *err;
    size_t open[SILT_YAML_DEPTH_MAX]; /* collections not closed yet, outermost first */
    size_t last[SILT_YAML_DEPTH_MAX]; /* the last child of each so far */
    size_t depth;
    unsigned documents;
};

void silt_yaml_release(struct silt_yaml *tree)
{
    silt_free(tree->nodes);
    silt_buf_release(&tree->bytes);
    memset(tree, 0, sizeof *tree);
}

static SILT_PRINTF(4, 5) enum silt_status
    refuse(const struct builder *b, size_t line, size_t column, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return silt_fail(b->err, SILT_ERR_CONFIG, "%s:%zu:%zu: %s", b->name, line, column, text);
}

static enum silt_status refuse_at(const struct builder *b, const yaml_mark_t *mark,
                                  const char *text)
{
    return refuse(b, mark->line + 1, mark->column + 1, "%s", text);
}

/* Hangs a new node into the innermost open collection. */
static enum silt_status add(struct builder *b, enum silt_yaml_kind kind, const yaml_event_t *event,
                            size_t *ret)
{
    struct silt_yaml *tree = b->tree;
    void *nodes = tree->nodes;
    if (silt_grow(&nodes, &tree->cap, tree->count + 1, sizeof *tree->nodes) != 0)
        return silt_fail(b->err, SILT_ERR_MEMORY, NULL);
    tree->nodes = nodes;
    size_t node = tree->count++;
    tree->nodes[node] = (struct silt_yaml_node){.kind = kind,
                                                .line = (uint32_t)event->start_mark.line + 1,
                                                .column = (uint32_t)event->start_mark.column + 1,
                                                .first = SILT_YAML_NONE,
                                                .next = SILT_YAML_NONE};
    if (b->depth == 0) {
        tree->root = node;
    } else {
        size_t *last = &b->last[b->depth - 1];
        if (*last == SILT_YAML_NONE)
            tree->nodes[b->open[b->depth - 1]].first = node;
        else
            tree->nodes[*last].next = node;
        *last = node;
    }
    *ret = node;
    return SILT_OK;
}

static enum silt_status add_scalar(struct builder *b, const yaml_event_t *event)
{
    size_t node;
    if (event->data.scalar.anchor)
        return refuse_at(b, &event->start_mark, "anchors (&name) are not supported");
    if (event->data.scalar.tag)
        return refuse_at(b, &event->start_mark, "tags (!name) are not supported");
    enum silt_status status = add(b, SILT_YAML_SCALAR, event, &node);
    if (status != SILT_OK) return status;
    struct silt_yaml_node *at = &b->tree->nodes[node];
    at->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    at->text = b->tree->bytes.len;
    at->text_len = event->data.scalar.length;
    /* A terminator after each, so that the bytes are never NULL and a text can be shown. */
    if (silt_buf_put(&b->tree->bytes, event->data.scalar.value, at->text_len) != SILT_OK ||
        silt_buf_put_u8(&b->tree->bytes, 0) != SILT_OK)
        return silt_fail(b->err, SILT_ERR_MEMORY, NULL);
    return SILT_OK;
}

static enum silt_status add_collection(struct builder *b, enum silt_yaml_kind kind,
                                       const yaml_event_t *event, const yaml_char_t *anchor,
                                       const yaml_char_t *tag)
{
    size_t node;
    if (anchor) return refuse_at(b, &event->start_mark, "anchors (&name) are not supported");
    if (tag) return refuse_at(b, &event->start_mark, "tags (!name) are not supported");
    if (b->depth == SILT_YAML_DEPTH_MAX)
        return refuse_at(b, &event->start_mark, "nested too deeply for a settings file");
    enum silt_status status = add(b, kind, event, &node);
    if (status != SILT_OK) return status;
    b->open[b->depth] = node;
    b->last[b->depth] = SILT_YAML_NONE;
    b->depth++;
    return SILT_OK;
}

static enum silt_status take_event(struct builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents++ > 0)
            return refuse_at(b, &event->start_mark,
                             "a second document begins here; a settings file is one document");
        return SILT_OK;
    case YAML_ALIAS_EVENT:
        return refuse_at(b, &event->start_mark, "aliases (*name) are not supported");
    case YAML_SCALAR_EVENT: return add_scalar(b, event);
    case YAML_MAPPING_START_EVENT:
        return add_collection(b, SILT_YAML_MAP, event, event->data.mapping_start.anchor,
                              event->data.mapping_start.tag);
    case YAML_SEQUENCE_START_EVENT:
        return add_collection(b, SILT_YAML_LIST, event, event->data.sequence_start.anchor,
                              event->data.sequence_start.tag);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: b->depth--; return SILT_OK;
    default: return SILT_OK;
    }
}

/* Line and column of a byte offset: libyaml has none for bytes that are no characters. */
static enum silt_status refuse_bytes(const struct builder *b, struct silt_view text, size_t offset)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        if (text.at[i] == '\n') {
            line++;
            column = 1;
        } else if ((text.at[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    unsigned byte = offset < text.len ? text.at[offset] : 0;
    return refuse(b, line, column, "byte 0x%02x is not UTF-8 text", byte);
}

static enum silt_status refuse_syntax(const struct builder *b, struct silt_view text,
                                      const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR) return silt_fail(b->err, SILT_ERR_MEMORY, NULL);
    if (parser->error == YAML_READER_ERROR) return refuse_bytes(b, text, parser->problem_offset);
    const char *problem = parser->problem ? parser->problem : "not YAML";
    const yaml_mark_t *mark = &parser->problem_mark;
    if (parser->context && strstr(parser->context, "simple key")) {
        /* libyaml notices the missing colon only at the next token, which may stand lines below. */
        mark = &parser->context_mark;
        problem = "a setting is written `name: value`; the colon is missing";
    } else if (parser->context && strstr(parser->context, "quoted scalar")) {
        mark = &parser->context_mark;
        problem = "the quoted text that begins here is not ended, or not well written";
    } else if (parser->context && strstr(parser->context, "flow")) {
        problem = "a comma or a closing bracket is missing before this";
    } else if (strstr(problem, "mapping values are not allowed")) {
        problem = "a colon is not expected here; is the line indented rightly, or a quote missing?";
    } else if (strstr(problem, "did not find expected key")) {
        problem = "this is not a setting of the block above; is it indented rightly?";
    } else if (strstr(problem, "cannot start any token")) {
        problem = "this character cannot begin a value without quotes";
    }
    return refuse_at(b, mark, problem);
}

/* Tabs in front of a line: YAML forbids them as indentation, and what libyaml says about them does not name them. */
static enum silt_status check_tabs(const struct builder *b, struct silt_view text)
{
    size_t line = 1, column = 1;
    bool indentation = true;
    for (size_t i = 0; i < text.len; i++, column++) {
        uint8_t c = text.at[i];
        if (c == '\n') {
            line++;
            column = 0;
            indentation = true;
        } else if (c == '\t' && indentation) {
            return refuse(b, line, column, "a tab; indent with spaces");
        } else if (c != ' ') {
            indentation = false;
        }
    }
    return SILT_OK;
}

static enum silt_status build(struct builder *b, struct silt_view text, yaml_parser_t *parser)
{
    yaml_event_t event;
    enum silt_status status = SILT_OK;
    yaml_event_type_t type = YAML_NO_EVENT;
    while (status == SILT_OK && type != YAML_STREAM_END_EVENT) {
        if (!yaml_parser_parse(parser, &event)) return refuse_syntax(b, text, parser);
        type = event.type;
        status = take_event(b, &event);
        yaml_event_delete(&event);
    }
    return status;
}

enum silt_status silt_yaml_parse(const char *name, struct silt_view text, struct silt_yaml *ret,
                                 struct silt_err *err)
{
    struct silt_yaml tree = {.root = SILT_YAML_NONE};
    struct builder b = {.name = name, .tree = &tree, .err = err};
    yaml_parser_t parser;
    if (text.len > SILT_YAML_TEXT_MAX)
        return silt_fail(err, SILT_ERR_CONFIG, "%s: %zu bytes are too many for a settings file",
                         name, text.len);
    enum silt_status status = check_tabs(&b, text);
    if (status != SILT_OK) return status;
    if (!yaml_parser_initialize(&parser)) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, text.len ? text.at : (const uint8_t *)"", text.len);
    status = build(&b, text, &parser);
    yaml_parser_delete(&parser);
    if (status != SILT_OK) {
        silt_yaml_release(&tree);
        return status;
    }
    *ret = tree;
    return SILT_OK;
}

size_t silt_yaml_get(const struct silt_yaml *tree, size_t map, const char *key)
{
    for (size_t at = tree->nodes[map].first; at != SILT_YAML_NONE;) {
        size_t value = tree->nodes[at].next;
        if (tree->nodes[at].kind == SILT_YAML_SCALAR &&
            silt_view_equal(silt_yaml_text(tree, at), silt_view_str(key)))
            return value;
        at = tree->nodes[value].next;
    }
    return SILT_YAML_NONE;
}
