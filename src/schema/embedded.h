// Files as tools/embed writes them at build time, ascending by name: the schemas of schemas/ (names are relative to it), the
// tables that lie beside them and are no schemas, the templates of examples/, the scripts that tasks of playbooks
// run, the schemas of the stores in SQL, and the texts of `cairn help`.
#ifndef CAIRN_SCHEMA_EMBEDDED_H
#define CAIRN_SCHEMA_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
};

extern const struct embedded_file embedded_files[]; // at least one element; only embedded_file_count are files
extern const size_t embedded_file_count;
extern const struct embedded_file embedded_tables[];
extern const size_t embedded_table_count;
extern const struct embedded_file embedded_templates[];
extern const size_t embedded_template_count;
extern const struct embedded_file embedded_scripts[];
extern const size_t embedded_script_count;
extern const struct embedded_file embedded_sqls[];
extern const size_t embedded_sql_count;
extern const struct embedded_file embedded_helps[];
extern const size_t embedded_help_count;

#endif
