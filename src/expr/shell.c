// A tracker of bash's quoting: a stack of frames, one step per construct. It need not know what commands mean, only where
// quotes, expansions, comments and here-documents begin and end.
//
// Safety does not rest on it being right everywhere: values travel in variables, so a wrong guess can spoil how a value
// looks, not make it run. Two places are different and are therefore narrow: text of quoted here-documents (values become
// text; the lines are checked afterwards) and arithmetic (bash evaluates what it reads; only digits pass).
#include "expr/internal.h"

#include <string.h>

static char char_at(const struct shell *sh, size_t i)
{
    return i < sh->end ? sh->text.ptr[i] : '\0';
}

struct frame *shell_top(struct shell *sh)
{
    INVARIANT(sh->frame_count > 0);
    return &sh->frames[sh->frame_count - 1];
}

bool frame_is_command(const struct frame *frame)
{
    return frame->kind <= FRAME_CASE;
}

enum code shell_push(struct shell *sh, enum frame_kind kind)
{
    if (sh->frame_count == FRAME_COUNT_MAX)
        return error_set(sh->err, E_LIMIT, "the script nests quotes and expansions deeper than %d", FRAME_COUNT_MAX);
    sh->frames[sh->frame_count++] = (struct frame){.kind = kind, .word = NO_WORD, .command = true, .verb_open = true};
    return OK;
}

void shell_pop(struct shell *sh)
{
    // A here-document whose body has not begun when its command ends has none.
    while (sh->heredoc_count && sh->heredocs[sh->heredoc_count - 1].level == sh->frame_count - 1) sh->heredoc_count--;
    sh->frame_count--;
}

// The frame whose newlines start here-documents.
size_t shell_level(const struct shell *sh)
{
    size_t i = sh->frame_count - 1;
    while (i && (sh->frames[i].kind == FRAME_PAREN || sh->frames[i].kind == FRAME_CASE)) i--;
    return i;
}

static bool outside_is_double(const struct shell *sh)
{
    const struct frame *f = &sh->frames[sh->frame_count - 1];
    return f->kind == FRAME_DOUBLE || f->kind == FRAME_HEREDOC || f->kind == FRAME_ARITH ||
           (f->kind == FRAME_BRACE && f->quoted);
}

// ---- references

// What the place does with a value, from the innermost frame outwards to the command it belongs to.
static enum code refuse_or_restrict(struct shell *sh, const struct ref_match *match, bool *number)
{
    size_t i = sh->frame_count;
    while (i > 1 && (!frame_is_command(&sh->frames[i - 1]) || sh->frames[i - 1].list) &&
           sh->frames[i - 1].kind != FRAME_HEREDOC) {
        const struct frame *f = &sh->frames[i - 1];
        bool arithmetic = f->kind == FRAME_ARITH || (f->kind == FRAME_BRACE && f->mode >= BRACE_SUBSCRIPT);
        *number |= arithmetic;
        i--;
    }
    const struct frame *command = &sh->frames[i - 1];
    if (command->verb == VERB_EVAL)
        return error_set(sh->err, E_INVALID, "%.*s stands in an eval, which would run its value as a program",
                         STR_ARG(match->ref.text));
    *number |= command->verb == VERB_LET || command->subscript ||
               (command->condition && shell_clause_is_arith(sh, match->offset));
    for (i = 0; i < sh->frame_count; i++) {
        if (sh->frames[i].kind == FRAME_BACKTICK && sh->frames[i].odd)
            return error_set(sh->err, E_INVALID,
                             "%.*s stands in backquotes with escapes, which the shell reads twice; use $( )",
                             STR_ARG(match->ref.text));
    }
    return OK;
}

static enum quoting place_of(const struct frame *f)
{
    switch (f->kind) {
    case FRAME_SINGLE:
        return QUOTING_SINGLE;
    case FRAME_ANSI:
        return QUOTING_ANSI;
    case FRAME_ARITH:
        return QUOTING_ARITH;
    case FRAME_DOUBLE:
    case FRAME_HEREDOC:
        return QUOTING_DOUBLE;
    case FRAME_BRACE:
        if (f->mode >= BRACE_SUBSCRIPT) return QUOTING_ARITH;
        return f->quoted && f->mode == BRACE_WORD ? QUOTING_DOUBLE : QUOTING_BARE;
    case FRAME_TOP:
    case FRAME_SUB:
    case FRAME_BACKTICK:
    case FRAME_PAREN:
    case FRAME_CASE:
    case FRAME_COMMENT:
        break;
    }
    return QUOTING_BARE;
}

// At a '$': replaces a reference and moves behind it. *done is false when there is none.
static enum code try_reference(struct shell *sh, bool *done)
{
    struct ref_match match;
    struct str text = str_slice(sh->text, 0, sh->end);
    *done = ref_at(text, sh->at, sh->scope, REF_IN_TEXT, &match) && match.known;
    if (!*done) return OK;
    bool number = false;
    enum code rc = refuse_or_restrict(sh, &match, &number);
    if (!rc) rc = shell_replace(sh, &match, place_of(shell_top(sh)), number);
    sh->at += match.len;
    return rc;
}

// ---- expansions

// After "((": are these parentheses closed by "))"? Otherwise they are a subshell inside something.
bool shell_is_arith(const struct shell *sh, size_t from)
{
    uint32_t depth = 0;
    for (size_t i = from; i < sh->end; i++) {
        char c = sh->text.ptr[i];
        if (c == '\\') {
            i++;
        } else if (c == '\'' || c == '"') {
            for (i++; i < sh->end && sh->text.ptr[i] != c; i++) i += c == '"' && sh->text.ptr[i] == '\\';
        } else if (c == '(') {
            depth++;
        } else if (c == ')') {
            if (!depth) return char_at(sh, i + 1) == ')';
            depth--;
        }
    }
    return false;
}

// What follows the name (or its subscript) inside ${ }.
static void brace_operator(struct shell *sh, struct frame *f)
{
    char c = char_at(sh, sh->at);
    f->mode = BRACE_WORD;
    if (c == '[') {
        f->mode = BRACE_SUBSCRIPT;
        f->brackets = 0;
    } else if (c == ':' && char_at(sh, sh->at + 1) && strchr("-=?+", char_at(sh, sh->at + 1))) {
        sh->at += 2;
    } else if (c == ':') {
        f->mode = BRACE_OFFSET;
        sh->at++;
    } else if (c && strchr("#%/^,", c)) {
        f->mode = BRACE_PATTERN;
        sh->at++;
    }
}

static enum code brace_open(struct shell *sh)
{
    bool quoted = outside_is_double(sh);
    enum code rc = shell_push(sh, FRAME_BRACE);
    if (rc) return rc;
    struct frame *f = shell_top(sh);
    f->quoted = quoted;
    sh->at += 2;
    char c = char_at(sh, sh->at);
    char next = char_at(sh, sh->at + 1);
    if ((c == '!' || c == '#') && (char_is_word(next) || (next && strchr("@*?$-", next)))) sh->at++;
    size_t name = sh->at;
    while (char_is_word(char_at(sh, sh->at))) sh->at++;
    if (sh->at == name && char_at(sh, sh->at) && strchr("@*#?$!-", char_at(sh, sh->at))) sh->at++;
    rc = shell_variable(sh, str_slice(sh->text, name, sh->at));
    brace_operator(sh, f);
    return rc;
}

static enum code paren_open(struct shell *sh)
{
    bool arith = char_at(sh, sh->at + 2) == '(' && shell_is_arith(sh, sh->at + 3);
    sh->at += arith ? 3 : 2;
    return shell_push(sh, arith ? FRAME_ARITH : FRAME_SUB);
}

enum code shell_dollar(struct shell *sh)
{
    bool done;
    enum code rc = try_reference(sh, &done);
    if (rc || done) return rc;
    char next = char_at(sh, sh->at + 1);
    bool double_quoted = outside_is_double(sh);
    if (shell_top(sh)->kind == FRAME_BRACE && shell_top(sh)->mode == BRACE_PATTERN) double_quoted = false;
    switch (next) {
    case '(':
        return paren_open(sh);
    case '{':
        return brace_open(sh);
    case '[':
        sh->at += 2;
        rc = shell_push(sh, FRAME_ARITH);
        if (!rc) shell_top(sh)->bracket = true;
        return rc;
    case '\'':
        sh->at += double_quoted ? 1 : 2;
        return double_quoted ? OK : shell_push(sh, FRAME_ANSI);
    default:
        // $$ and its like are two characters; "$#" is no comment and "$$a.output" no reference.
        sh->at += next && strchr("$!?#*@-", next) ? 2 : 1;
        return OK;
    }
}

// ---- frames that are not commands

static enum code step_quoted(struct shell *sh, struct frame *f)
{
    char c = sh->text.ptr[sh->at];
    bool escapes = f->kind == FRAME_ANSI;
    bool done;
    if (c == '$') {
        enum code rc = try_reference(sh, &done);
        sh->at += done ? 0 : 1;
        return rc;
    }
    sh->at += escapes && c == '\\' ? 2 : 1;
    if (c == '\'') shell_pop(sh);
    return OK;
}

// "...", here-documents, ${...} and arithmetic: characters they all treat alike. *done is false for the others.
static enum code step_common(struct shell *sh, bool *done)
{
    char c = sh->text.ptr[sh->at];
    *done = true;
    if (c == '\\') {
        sh->at += 2;
        return OK;
    }
    if (c == '$') return shell_dollar(sh);
    if (c == '`') {
        sh->at++;
        return shell_push(sh, FRAME_BACKTICK);
    }
    *done = false;
    return OK;
}

static enum code step_brace(struct shell *sh, struct frame *f, char c)
{
    sh->at++;
    bool literal = f->quoted && f->mode != BRACE_PATTERN;
    if (c == '\'' && !literal) return shell_push(sh, FRAME_SINGLE);
    f->pair ^= c == '\'';
    if (f->pair) return OK;
    if (c == '"') return shell_push(sh, FRAME_DOUBLE);
    if (f->mode == BRACE_SUBSCRIPT) {
        f->brackets += c == '[';
        f->brackets -= c == ']';
        if (!f->brackets) brace_operator(sh, f);
    } else if (c == '}') {
        shell_pop(sh);
    }
    return OK;
}

static enum code step_arith(struct shell *sh, struct frame *f, char c)
{
    sh->at++;
    if (c == '"') return shell_push(sh, FRAME_DOUBLE);
    f->parens += c == '(';
    if (f->bracket && c == ']') {
        shell_pop(sh);
    } else if (c == ')' && f->parens) {
        f->parens--;
    } else if (c == ')' && !f->bracket) {
        sh->at += char_at(sh, sh->at) == ')';
        shell_pop(sh);
    }
    return OK;
}

static enum code step_expanding(struct shell *sh, struct frame *f)
{
    bool done;
    char c = sh->text.ptr[sh->at];
    enum code rc = step_common(sh, &done);
    if (rc || done) return rc;
    if (f->kind == FRAME_BRACE) return step_brace(sh, f, c);
    if (f->kind == FRAME_ARITH) return step_arith(sh, f, c);
    sh->at++;
    if (f->kind == FRAME_DOUBLE && c == '"') shell_pop(sh);
    return OK;
}

// The shell ends a backquoted command at the first backquote without a backslash, whatever is open inside.
static bool backtick_end(struct shell *sh, size_t floor)
{
    char c = sh->text.ptr[sh->at];
    size_t i = sh->frame_count;
    while (i > floor && sh->frames[i - 1].kind != FRAME_BACKTICK) i--;
    if (i <= floor || (c != '`' && c != '\\')) return false;
    struct frame *tick = &sh->frames[i - 1];
    if (c == '\\') {
        char next = char_at(sh, sh->at + 1);
        bool in_double = i > 1 && sh->frames[i - 2].kind == FRAME_DOUBLE;
        bool read_twice = next == '`' || next == '\\' || (next == '"' && in_double);
        tick->odd |= read_twice;
        sh->at += read_twice ? 2 : 0;
        return read_twice;
    }
    while (sh->frame_count >= i) shell_pop(sh);
    sh->at++;
    return true;
}

static enum code step(struct shell *sh, size_t floor)
{
    if (backtick_end(sh, floor)) return OK;
    struct frame *f = shell_top(sh);
    switch (f->kind) {
    case FRAME_TOP:
    case FRAME_SUB:
    case FRAME_BACKTICK:
    case FRAME_PAREN:
    case FRAME_CASE:
        return shell_commands(sh);
    case FRAME_SINGLE:
    case FRAME_ANSI:
        return step_quoted(sh, f);
    case FRAME_DOUBLE:
    case FRAME_BRACE:
    case FRAME_ARITH:
    case FRAME_HEREDOC:
        return step_expanding(sh, f);
    case FRAME_COMMENT:
        if (sh->text.ptr[sh->at] == '\n')
            shell_pop(sh); // and the newline is the command's
        else
            sh->at++;
        return OK;
    }
    return OK;
}

// Up to `end`, with the frames now open as the floor: what is still open at the end is closed.
enum code shell_range(struct shell *sh, size_t end)
{
    size_t outer = sh->end;
    size_t floor = sh->frame_count - 1;
    INVARIANT(end <= outer);
    sh->end = end;
    enum code rc = OK;
    while (!rc && sh->at < sh->end) rc = step(sh, floor);
    while (sh->frame_count > floor + 1) shell_pop(sh);
    sh->at = end;
    sh->end = outer;
    return rc;
}

enum code shell_scan(struct shell *sh)
{
    sh->end = sh->text.len;
    enum code rc = shell_push(sh, FRAME_TOP);
    return rc ? rc : shell_range(sh, sh->text.len);
}
