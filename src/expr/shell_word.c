// The command side of the tracker: words, separators, reserved words (for `case`, whose patterns hold lone parentheses),
// conditions, redirections and here-documents.
#include "expr/internal.h"

#include <string.h>

static char char_at(const struct shell *sh, size_t i)
{
    return i < sh->end ? sh->text.ptr[i] : '\0';
}

static void command_start(struct frame *f)
{
    bool may = !f->list && !f->condition;
    f->command = may;
    f->verb_open = may;
    f->verb = VERB_NONE;
    f->target = false;
    f->subscript = false;
}

static void word_begin(struct shell *sh, struct frame *f, bool plain)
{
    if (f->word == NO_WORD) {
        f->word = sh->at;
        f->plain = true;
    }
    f->plain &= plain;
}

// NAME=... or NAME[...]=..., which may stand before a command.
static bool is_assignment(struct str word)
{
    size_t i = 0;
    while (i < word.len && char_is_word(word.ptr[i])) i++;
    return i && i < word.len && (word.ptr[i] == '=' || word.ptr[i] == '[' || word.ptr[i] == '+');
}

static bool one_of(struct str word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_is(word, words[i])) return true;
    }
    return false;
}

// A word at the place of a command.
static enum code command_word(struct shell *sh, struct frame *f, struct str word)
{
    static const char *const openers[] = {"if",    "then", "else", "elif", "do",    "while",
                                          "until", "!",    "{",    "time", "coproc"};
    if (f->command && one_of(word, openers, ARRAY_COUNT(openers))) return OK;
    bool reserved = f->command;
    f->command = false;
    if (is_assignment(word) || str_is(word, "command") || str_is(word, "builtin")) return OK;
    f->verb_open = false;
    if (str_is(word, "eval"))
        f->verb = VERB_EVAL;
    else if (str_is(word, "let"))
        f->verb = VERB_LET;
    else if (reserved && str_is(word, "[["))
        f->condition = true;
    else if (reserved && str_is(word, "function"))
        f->function = true;
    else if (reserved && str_is(word, "case")) {
        enum code rc = shell_push(sh, FRAME_CASE);
        if (rc) return rc;
        shell_top(sh)->phase = CASE_SUBJECT;
        shell_top(sh)->command = false;
        shell_top(sh)->verb_open = false;
    }
    return OK;
}

// True when the word belonged to the skeleton of a `case`.
static bool case_word(struct shell *sh, struct frame *f, struct str word, bool plain)
{
    if (f->kind != FRAME_CASE) return false;
    if (f->phase == CASE_BODY) {
        if (!plain || !f->command || !str_is(word, "esac")) return false;
        shell_pop(sh);
        return true;
    }
    if (f->phase == CASE_SUBJECT) {
        f->phase = CASE_IN;
    } else if (f->phase == CASE_IN && plain && str_is(word, "in")) {
        f->phase = CASE_PATTERN;
        f->pattern_begun = false;
        f->parens = 0;
    } else if (f->phase == CASE_PATTERN) {
        if (plain && !f->pattern_begun && str_is(word, "esac"))
            shell_pop(sh);
        else
            f->pattern_begun = true;
    }
    return true;
}

static enum code word_end(struct shell *sh)
{
    struct frame *f = shell_top(sh);
    if (f->word == NO_WORD) return OK;
    struct str word = str_slice(sh->text, f->word, sh->at);
    bool plain = f->plain;
    f->word = NO_WORD;
    f->subscript = false;
    if (f->target) {
        f->target = false;
        return OK;
    }
    if (case_word(sh, f, word, plain)) return OK;
    if (f->function) {
        f->function = false;
        command_start(f);
        return OK;
    }
    if (f->condition) {
        f->condition = !(plain && str_is(word, "]]"));
        return OK;
    }
    if (f->command || f->verb_open) {
        if (plain) return command_word(sh, f, word);
        f->command = false;
        f->verb_open = is_assignment(word);
    }
    return OK;
}

// ---- characters

static enum code newline(struct shell *sh)
{
    enum code rc = word_end(sh);
    if (rc) return rc;
    sh->at++;
    struct frame *f = shell_top(sh);
    if (f->kind != FRAME_CASE || f->phase == CASE_BODY) command_start(f);
    return shell_heredoc_bodies(sh, shell_level(sh));
}

// ; & | and what they are part of
static enum code separator(struct shell *sh, char c)
{
    enum code rc = word_end(sh);
    if (rc) return rc;
    struct frame *f = shell_top(sh);
    char next = char_at(sh, sh->at + 1);
    if (c == '&' && next == '>') { // &> file
        sh->at += 2;
        f->target = true;
        return OK;
    }
    bool end_of_case = c == ';' && (next == ';' || next == '&');
    if (end_of_case && f->kind == FRAME_CASE && f->phase == CASE_BODY) {
        sh->at += 2;
        sh->at += next == ';' && char_at(sh, sh->at) == '&';
        f->phase = CASE_PATTERN;
        f->pattern_begun = false;
        f->parens = 0;
        f->command = false;
        f->verb_open = false;
        f->verb = VERB_NONE;
        return OK;
    }
    sh->at++;
    if (f->kind != FRAME_CASE || f->phase == CASE_BODY)
        command_start(f);
    else
        f->pattern_begun = true;
    return OK;
}

// Is the text from `start` up to here made of such characters only?
static bool all_chars(const struct shell *sh, size_t start, bool (*such)(char))
{
    while (start < sh->at && such(sh->text.ptr[start])) start++;
    return start == sh->at;
}

static enum code redirection(struct shell *sh, char c)
{
    struct frame *f = shell_top(sh);
    char next = char_at(sh, sh->at + 1);
    if (next == '(') { // <( ) is part of a word
        word_begin(sh, f, false);
        sh->at += 2;
        return shell_push(sh, FRAME_SUB);
    }
    if (f->condition || f->list) {
        enum code rc = word_end(sh);
        sh->at++;
        return rc;
    }
    if (f->word != NO_WORD && all_chars(sh, f->word, char_is_digit)) {
        f->word = NO_WORD; // "2>": the number is no word of the command
    } else {
        enum code rc = word_end(sh);
        if (rc) return rc;
        f = shell_top(sh);
    }
    f->target = true;
    if (c == '<' && next == '<') {
        bool string = char_at(sh, sh->at + 2) == '<';
        sh->at += string ? 3 : 2;
        return string ? OK : shell_heredoc_open(sh);
    }
    sh->at += next == '&' || next == '|' || next == '>' || next == '<' ? 2 : 1;
    return OK;
}

static enum code open_paren(struct shell *sh)
{
    struct frame *f = shell_top(sh);
    bool in_pattern = f->kind == FRAME_CASE && f->phase == CASE_PATTERN;
    if (in_pattern) { // the optional one before a pattern closes with it; others are of @( ) and the like
        f->parens += f->pattern_begun || f->word != NO_WORD;
        sh->at++;
        return OK;
    }
    if (char_at(sh, sh->at + 1) == '(' && f->word == NO_WORD && shell_is_arith(sh, sh->at + 2)) {
        sh->at += 2;
        f->command = false;
        return shell_push(sh, FRAME_ARITH);
    }
    bool list = f->condition || f->list || (f->word != NO_WORD && char_at(sh, sh->at + 1) != ')');
    sh->at++;
    enum code rc = shell_push(sh, FRAME_PAREN);
    if (rc) return rc;
    struct frame *inner = shell_top(sh);
    inner->list = list;
    inner->command = !list;
    inner->verb_open = !list;
    return OK;
}

static enum code close_paren(struct shell *sh)
{
    enum code rc = word_end(sh);
    if (rc) return rc;
    struct frame *f = shell_top(sh);
    if (f->kind == FRAME_CASE && f->phase == CASE_PATTERN) {
        sh->at++;
        if (f->parens) {
            f->parens--;
            return OK;
        }
        f->phase = CASE_BODY;
        command_start(f);
        return OK;
    }
    if (f->kind == FRAME_CASE) { // a case that nobody ended; the parenthesis is the outside's
        shell_pop(sh);
        return OK;
    }
    sh->at++;
    if (f->kind != FRAME_PAREN && f->kind != FRAME_SUB) return OK;
    bool subshell = f->kind == FRAME_PAREN && !f->list;
    shell_pop(sh);
    f = shell_top(sh);
    if (subshell && frame_is_command(f)) { // the body of a function may follow
        f->word = NO_WORD;
        command_start(f);
    }
    return OK;
}

static enum code quote_or_expansion(struct shell *sh, char c)
{
    word_begin(sh, shell_top(sh), false);
    if (c == '$' && char_at(sh, sh->at + 1) == '"') {
        sh->at += 2;
        return shell_push(sh, FRAME_DOUBLE);
    }
    if (c == '$') return shell_dollar(sh);
    sh->at++;
    return shell_push(sh, c == '\'' ? FRAME_SINGLE : c == '"' ? FRAME_DOUBLE : FRAME_BACKTICK);
}

static enum code escape(struct shell *sh)
{
    if (char_at(sh, sh->at + 1) != '\n') // a continued line is not even a blank
        word_begin(sh, shell_top(sh), false);
    sh->at += 2;
    return OK;
}

static enum code word_char(struct shell *sh, char c)
{
    struct frame *f = shell_top(sh);
    if (c == '[' && f->word != NO_WORD && f->plain && all_chars(sh, f->word, char_is_word)) f->subscript = true;
    if (c == ']') f->subscript = false;
    word_begin(sh, f, true);
    sh->at++;
    return OK;
}

enum code shell_commands(struct shell *sh)
{
    char c = sh->text.ptr[sh->at];
    switch (c) {
    case '\n':
        return newline(sh);
    case ' ':
    case '\t': {
        enum code rc = shell_top(sh)->subscript ? OK : word_end(sh);
        sh->at++;
        return rc;
    }
    case ';':
    case '&':
    case '|':
        return separator(sh, c);
    case '<':
    case '>':
        return redirection(sh, c);
    case '(':
        return open_paren(sh);
    case ')':
        return close_paren(sh);
    case '\\':
        return escape(sh);
    case '\'':
    case '"':
    case '`':
    case '$':
        return quote_or_expansion(sh, c);
    case '#':
        if (shell_top(sh)->word == NO_WORD) {
            sh->at++;
            return shell_push(sh, FRAME_COMMENT);
        }
        return word_char(sh, c);
    default:
        return word_char(sh, c);
    }
}

// ---- [[ ]]

enum { CLAUSE_SIZE_MAX = 4096 };

static bool is_number_test(struct str word)
{
    static const char *const tests[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"};
    return one_of(word, tests, ARRAY_COUNT(tests));
}

static bool ends_clause(struct str word)
{
    static const char *const ends[] = {"&&", "||", "[[", "]]", ";", "then"};
    return one_of(word, ends, ARRAY_COUNT(ends));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '(' || c == ')';
}

// Words to both sides, quotes not looked at: what is quoted can only make this stricter, and so does an endless clause.
bool shell_clause_is_arith(const struct shell *sh, size_t at)
{
    for (size_t end = at; end > 0;) {
        if (at - end > CLAUSE_SIZE_MAX) return true;
        size_t start = end;
        while (start > 0 && !is_blank(sh->text.ptr[start - 1])) start--;
        struct str word = str_slice(sh->text, start, end);
        if (is_number_test(word)) return true;
        if (ends_clause(word)) break;
        end = start ? start - 1 : 0;
    }
    for (size_t start = at; start < sh->text.len;) {
        if (start - at > CLAUSE_SIZE_MAX) return true;
        size_t end = start;
        while (end < sh->text.len && !is_blank(sh->text.ptr[end])) end++;
        struct str word = str_slice(sh->text, start, end);
        if (is_number_test(word)) return true;
        if (ends_clause(word)) break;
        start = end + 1;
    }
    return false;
}

// ---- here-documents

// After << : an optional '-', blanks and the delimiter, with its quotes removed.
enum code shell_heredoc_open(struct shell *sh)
{
    struct heredoc doc = {.level = shell_level(sh)};
    if (sh->heredoc_count == HEREDOC_COUNT_MAX)
        return error_set(sh->err, E_LIMIT, "more than %d here-documents in one line", HEREDOC_COUNT_MAX);
    doc.strip = char_at(sh, sh->at) == '-';
    sh->at += doc.strip;
    while (char_at(sh, sh->at) == ' ' || char_at(sh, sh->at) == '\t') sh->at++;
    size_t line = str_find(str_slice(sh->text, 0, sh->end), '\n', sh->at);
    char *out = arena_alloc(sh->arena, line - sh->at + 1);
    if (!out) return error_nomem(sh->err);
    size_t len = 0;
    char quote = '\0';
    for (; sh->at < line; sh->at++) {
        char c = sh->text.ptr[sh->at];
        if (!quote && c && strchr(" \t;&|()<>", c)) break;
        if (c == '\\' && quote != '\'' && sh->at + 1 < line) {
            doc.quoted = true;
            out[len++] = sh->text.ptr[++sh->at];
        } else if (quote ? c == quote : c == '\'' || c == '"') {
            doc.quoted = true;
            quote = quote ? '\0' : c;
        } else {
            out[len++] = c;
        }
    }
    doc.delimiter = (struct str){out, len};
    sh->heredocs[sh->heredoc_count++] = doc;
    shell_top(sh)->target = false;
    return OK;
}

static bool is_delimiter(const struct heredoc *doc, struct str line)
{
    while (doc->strip && line.len && line.ptr[0] == '\t') line = str_slice(line, 1, line.len);
    return str_eq(line, doc->delimiter);
}

// A line of the text; in an unquoted document a backslash at its end joins the next one to it.
static size_t line_end(struct str text, size_t start, size_t end, bool joins)
{
    size_t at = start;
    for (; at < end && text.ptr[at] != '\n'; at++) at += joins && text.ptr[at] == '\\' && at + 1 < end;
    return at;
}

// Where the body ends (*body) and where the text goes on (*after).
static void heredoc_find_end(const struct shell *sh, const struct heredoc *doc, size_t *body, size_t *after)
{
    for (size_t line = sh->at; line < sh->end;) {
        size_t end = line_end(sh->text, line, sh->end, !doc->quoted);
        size_t next = end < sh->end ? end + 1 : end;
        if (is_delimiter(doc, str_slice(sh->text, line, end))) {
            *body = line;
            *after = end;
            return;
        }
        line = next;
    }
    *body = *after = sh->end;
}

static bool inside(const struct shell *sh, enum frame_kind kind)
{
    for (size_t i = 0; i < sh->frame_count; i++) {
        if (sh->frames[i].kind == kind) return true;
    }
    return false;
}

// Values become text here, and must not end the document early, alone or together with what stands around them.
static enum code heredoc_text(struct shell *sh, const struct heredoc *doc, size_t end)
{
    shell_copy(sh, sh->at);
    size_t start = sh->out.len;
    size_t replaced = 0;
    while (sh->at < end) {
        struct ref_match match;
        struct str text = str_slice(sh->text, 0, end);
        if (!ref_at(text, sh->at, sh->scope, REF_IN_TEXT, &match) || !match.known) {
            sh->at++;
            continue;
        }
        if (inside(sh, FRAME_BACKTICK))
            return error_set(sh->err, E_INVALID, "%.*s stands in a quoted here-document in backquotes; use $( )",
                             STR_ARG(match.ref.text));
        enum code rc = shell_replace(sh, &match, QUOTING_TEXT, false);
        if (rc) return rc;
        sh->at += match.len;
        replaced++;
    }
    shell_copy(sh, end);
    if (!buf_ok(&sh->out)) return error_nomem(sh->err);
    struct str body = str_slice(buf_str(&sh->out), start, sh->out.len);
    // bash keeps the text of a command substitution with bytes 1 and 127 as marks of its own, and loses such bytes.
    bool marks = str_find(body, '\001', 0) < body.len || str_find(body, '\177', 0) < body.len;
    if (replaced && marks && inside(sh, FRAME_SUB))
        return error_set(sh->err, E_INVALID,
                         "a value in the here-document %.*s holds control bytes that bash loses inside $( )",
                         STR_ARG(doc->delimiter));
    for (size_t line = 0; replaced && line < body.len;) {
        size_t stop = str_find(body, '\n', line);
        if (is_delimiter(doc, str_slice(body, line, stop)))
            return error_set(sh->err, E_INVALID,
                             "a value in the here-document has the line %.*s, which would end it; choose another word",
                             STR_ARG(doc->delimiter));
        line = stop + 1;
    }
    return OK;
}

enum code shell_heredoc_bodies(struct shell *sh, size_t level)
{
    size_t first = sh->heredoc_count;
    while (first && sh->heredocs[first - 1].level == level) first--;
    size_t count = sh->heredoc_count - first;
    struct heredoc docs[HEREDOC_COUNT_MAX];
    if (count) memcpy(docs, sh->heredocs + first, count * sizeof(docs[0]));
    sh->heredoc_count = first;
    for (size_t i = 0; i < count; i++) {
        size_t body, after;
        heredoc_find_end(sh, &docs[i], &body, &after);
        enum code rc;
        if (docs[i].quoted) {
            rc = heredoc_text(sh, &docs[i], body);
        } else {
            rc = shell_push(sh, FRAME_HEREDOC);
            if (!rc) rc = shell_range(sh, body);
            if (!rc) shell_pop(sh);
        }
        if (rc) return rc;
        // The newline after the last delimiter is a newline of the commands; those between belong to the documents.
        sh->at = after;
        if (i + 1 < count && sh->at < sh->end) sh->at++;
    }
    return OK;
}
