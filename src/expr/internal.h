// What the files of expr/ share.
#ifndef CAIRN_EXPR_INTERNAL_H
#define CAIRN_EXPR_INTERNAL_H

#include "expr/expr.h"

struct ref_match {
    struct ref ref;
    size_t offset, len; // in the text; the '$' counts
    bool known;
};

enum ref_style {
    REF_IN_TEXT = 1, // $node.output[.field...]; a field has no '-', since text may go on with one
    REF_IN_WHEN,     // also $node.field
};

// A reference that starts at the '$' at `at`. False: there is none. Unknown nodes match with known = false.
bool ref_at(struct str text, size_t at, const struct scope *scope, enum ref_style style, struct ref_match *out);
// scope->lookup, with a message in `err` whatever the caller's function does.
enum code ref_value(const struct ref *ref, const struct scope *scope, struct arena *arena, struct json *out,
                    struct error *err) MUST_CHECK;

// ---- the shell tracker: where in a script we are. shell.c knows quotes and expansions, shell_word.c commands and words.
enum frame_kind {
    FRAME_TOP = 1,  // commands: the whole text
    FRAME_SUB,      // commands: $( ) <( ) >( )
    FRAME_BACKTICK, // commands: ` `
    FRAME_PAREN,    // commands: ( )
    FRAME_CASE,     // commands: case ... esac
    FRAME_SINGLE,   // ' '
    FRAME_ANSI,     // $' '
    FRAME_DOUBLE,   // " "
    FRAME_BRACE,    // ${ }
    FRAME_ARITH,    // $(( )) (( )) $[ ]
    FRAME_HEREDOC,  // the body of a here-document whose delimiter is not quoted
    FRAME_COMMENT,
};

enum case_phase { CASE_SUBJECT = 1, CASE_IN, CASE_PATTERN, CASE_BODY };
enum brace_mode { BRACE_WORD = 1, BRACE_PATTERN, BRACE_SUBSCRIPT, BRACE_OFFSET };
enum verb { VERB_NONE, VERB_EVAL, VERB_LET };

#define NO_WORD SIZE_MAX

struct frame {
    enum frame_kind kind;
    // commands
    size_t word;        // where the word starts, or NO_WORD
    bool plain;         // the word has no quotes and no expansions
    bool command;       // a reserved word may stand here
    bool verb_open;     // the first word of a simple command is still to come
    bool list;          // words only, no commands: a=( ), @( ), [[ ( ) ]]
    bool target;        // the word is a redirection's target
    bool function;      // the word is the name of a function
    bool condition;     // inside [[ ]]
    bool subscript;     // inside name[ ]
    bool odd;           // FRAME_BACKTICK: holds escapes that the shell reads twice
    bool pattern_begun; // CASE_PATTERN: not its first word
    enum verb verb;
    enum case_phase phase;
    uint32_t parens; // FRAME_ARITH, CASE_PATTERN: open ones
    // ${ }
    enum brace_mode mode;
    uint32_t brackets;
    bool quoted;  // FRAME_BRACE: the outside is double-quoted
    bool pair;    // FRAME_BRACE: between ' and ' there, which hide } and " but quote nothing
    bool bracket; // FRAME_ARITH: $[ ]
};

enum { FRAME_COUNT_MAX = 64, HEREDOC_COUNT_MAX = 16 };

struct heredoc {
    struct str delimiter;
    bool quoted, strip;
    size_t level; // frame whose next newline starts the body
};

struct shell {
    struct str text;
    size_t at, end;
    const struct scope *scope;
    struct arena *arena;
    struct error *err;
    struct frame frames[FRAME_COUNT_MAX];
    size_t frame_count;
    struct heredoc heredocs[HEREDOC_COUNT_MAX];
    size_t heredoc_count;
    // what has been written so far
    struct buf out;
    struct buf prelude; // goes before it
    size_t copied;      // of text
    struct subst_env *env;
    struct str *env_refs; // as written; same index as env
    size_t env_count, env_capacity, ref_capacity, env_size;
    size_t ref_count; // CAIRN_REF_n given out
};

enum quoting {
    QUOTING_BARE = 1,
    QUOTING_DOUBLE,
    QUOTING_SINGLE,
    QUOTING_ANSI,
    QUOTING_ARITH, // evaluated as an expression by the shell itself
    QUOTING_TEXT,  // here-document with a quoted delimiter: nothing is expanded
};

// Walks sh->text and calls shell_replace for each known reference outside comments.
enum code shell_scan(struct shell *sh) MUST_CHECK;
// `number`: the shell will evaluate the value as arithmetic, which can run commands; only digits may pass.
enum code shell_replace(struct shell *sh, const struct ref_match *match, enum quoting place, bool number) MUST_CHECK;
// The variable `name` is used by the text.
enum code shell_variable(struct shell *sh, struct str name) MUST_CHECK;
void shell_copy(struct shell *sh, size_t to);

enum code shell_push(struct shell *sh, enum frame_kind kind) MUST_CHECK;
void shell_pop(struct shell *sh);
struct frame *shell_top(struct shell *sh);
bool frame_is_command(const struct frame *frame);
enum code shell_commands(struct shell *sh) MUST_CHECK; // one step in a frame of commands
enum code shell_dollar(struct shell *sh) MUST_CHECK;   // one step at a '$'
enum code shell_range(struct shell *sh, size_t end) MUST_CHECK;
bool shell_is_arith(const struct shell *sh, size_t from);
// Does the clause of [[ ]] around `at` compare numbers?
bool shell_clause_is_arith(const struct shell *sh, size_t at);
enum code shell_heredoc_open(struct shell *sh) MUST_CHECK;
enum code shell_heredoc_bodies(struct shell *sh, size_t level) MUST_CHECK;
size_t shell_level(const struct shell *sh);

#endif
