/* YAML text to a small tree that knows where each of its nodes stands. Only what a settings file needs: one document of maps, lists and
 * scalars; anchors, aliases, tags, tabs for indentation and more than one document are refused in words. The only yaml.h user. */
#ifndef SILT_CONFIG_YAML_H
#define SILT_CONFIG_YAML_H

#include "bytes.h"

#define SILT_YAML_TEXT_MAX (1u << 20) /* bytes of a settings file */
#define SILT_YAML_DEPTH_MAX 16u       /* collections within collections */
#define SILT_YAML_NONE ((size_t)-1)

enum silt_yaml_kind { SILT_YAML_SCALAR, SILT_YAML_MAP, SILT_YAML_LIST };

struct silt_yaml_node {
    enum silt_yaml_kind kind;
    bool plain;            /* a scalar without quotes */
    uint32_t line, column; /* from 1; the column counts characters */
    size_t text, text_len; /* of a scalar: in the tree's bytes */
    size_t first; /* a collection's first child, or NONE; a map's children alternate key, value */
    size_t next;  /* the next child of the same parent, or NONE */
};

/* {0}, filled once, released. Nodes are named by index; root is NONE for a document without content. */
struct silt_yaml {
    struct silt_yaml_node *nodes;
    size_t count, cap;
    size_t root;
    struct silt_buf bytes;
};
void silt_yaml_release(struct silt_yaml *tree);

/* Fails with SILT_ERR_CONFIG ("NAME:LINE:COLUMN: ..."), SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_yaml_parse(const char *name, struct silt_view text,
                                               struct silt_yaml *ret, struct silt_err *err);

static inline struct silt_view silt_yaml_text(const struct silt_yaml *tree, size_t node)
{
    return (struct silt_view){tree->bytes.at + tree->nodes[node].text, tree->nodes[node].text_len};
}
/* A map's value by its key, or NONE. */
size_t silt_yaml_get(const struct silt_yaml *tree, size_t map, const char *key);

#endif
