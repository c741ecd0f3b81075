// Private to author/: the layouts of documents.
#ifndef CAIRN_AUTHOR_FMT_H
#define CAIRN_AUTHOR_FMT_H

#include "author/author.h"

enum code fmt_json(struct str text, struct arena *arena, struct buf *out, struct error *err) MUST_CHECK;
// Line by line; what it does not understand it leaves as it is. The caller proves that the result means the same.
void fmt_yaml(struct str text, struct buf *out);

// A document as YAML: block style, short values on one line, texts of several lines as block texts.
void yaml_document(struct buf *out, const struct json *document);

#endif
