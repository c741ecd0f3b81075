// Completion: three small scripts that ask `cairn complete` what could come next, so a shell knows what the table knows,
// the ids of runs and the names of their steps included.
#include "cli/card.h"
#include "author/author.h"
#include "cli/commands.h"

#include <string.h>

static const char bash_script[] =
    "# bash completion of cairn:  source <(cairn completion bash)\n"
    "_cairn() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//@/} words cur out prefix candidate\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    cur=${words[${#words[@]}-1]}\n"
    "    out=$(\"${words[0]}\" complete -- \"${words[@]:1}\" 2>/dev/null) || return\n"
    "    COMPREPLY=()\n"
    "    if [[ $out == :files ]]; then compopt -o default; return; fi\n"
    "    # What bash takes for the end of a word stays on the line: only the rest is replaced. An @ is part of its "
    "word.\n"
    "    prefix=${cur%\"${cur##*[\"$breaks\"]}\"}\n"
    "    while IFS=$'\\t' read -r candidate _; do\n"
    "        [[ -n $candidate ]] && COMPREPLY+=(\"${candidate#\"$prefix\"}\")\n"
    "    done <<<\"$out\"\n"
    "    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace\n"
    "}\n"
    "complete -F _cairn cairn\n";

static const char zsh_script[] =
    "#compdef cairn\n"
    "# zsh completion of cairn:  source <(cairn completion zsh)\n"
    "_cairn() {\n"
    "    local -a lines values\n"
    "    local line\n"
    "    lines=(\"${(@f)$(${words[1]} complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    if [[ ${lines[1]} == :files ]]; then _files; return; fi\n"
    "    for line in $lines; do\n"
    "        [[ -n $line ]] && values+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    _describe cairn values\n"
    "}\n"
    // From a directory of $fpath the file is the function: its first call defines _cairn, and has to complete as well.
    "if [[ ${funcstack[1]} == _cairn ]]; then _cairn \"$@\"; else compdef _cairn cairn; fi\n";

static const char fish_script[] = "# fish completion of cairn:  cairn completion fish | source\n"
                                  "function __cairn_complete\n"
                                  "    set -l words (commandline -opc) (commandline -ct)\n"
                                  "    set -l out ($words[1] complete -- $words[2..-1] 2>/dev/null)\n"
                                  "    if test \"$out[1]\" = ':files'\n"
                                  "        __fish_complete_path (commandline -ct)\n"
                                  "    else\n"
                                  "        printf '%s\\n' $out\n"
                                  "    end\n"
                                  "end\n"
                                  "complete -c cairn -f -a '(__cairn_complete)'\n";

int command_completion(struct cli *cli)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < ARRAY_COUNT(scripts); i++)
        if (str_is(cli->args.words[0], scripts[i].shell)) {
            struct buf out SCOPED(buf_release) = buf_of(1 << 16);
            buf_text(&out, scripts[i].script);
            cli_print(cli, &out);
            return EXIT_OK;
        }
    cli_fail(cli, EXIT_USAGE, "there is no completion for %.*s", STR_ARG(cli->args.words[0]));
    return cli_hint(cli, "bash, zsh or fish");
}

// ---- what could come next
struct complete {
    struct cli *cli;
    struct str word; // being typed
    struct buf out;
};

static void candidate(struct complete *c, struct str text, const char *what)
{
    if (!str_starts(text, c->word)) return;
    buf_add(&c->out, text);
    buf_printf(&c->out, "\t%s\n", what);
}

static void complete_choices(struct complete *c, const char *choices)
{
    struct str rest = str_from(choices);
    while (rest.len > 0) candidate(c, str_cut(rest, '|', &rest), "");
}

// Commands of which `noun` (may be empty) is the first word; only the next word of each, once.
static void complete_commands(struct complete *c, struct str noun)
{
    struct str last = {0};
    for (size_t i = 0; command_at(i); i++) {
        const struct command *command = command_at(i);
        struct str second;
        struct str first = str_cut(str_from(command->name), ' ', &second);
        if (!command->topic[0] || (noun.len > 0 && (!str_eq(first, noun) || second.len == 0))) continue;
        struct str next = noun.len > 0 ? second : first;
        if (last.ptr && str_eq(next, last)) continue;
        last = next;
        candidate(c, next, noun.len == 0 && second.len > 0 ? "..." : command->summary);
    }
}

static void complete_flags(struct complete *c, const struct command *command)
{
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++) {
        const struct flag_info *info = flag_info((enum flag)i);
        if (!command || command_takes(command, (enum flag)i))
            candidate(c, str_from(cli_format(c->cli, "--%s", info->name)), info->help);
    }
}

static void complete_steps(struct complete *c, struct session *session, struct str run)
{
    struct target target;
    struct card card SCOPED(card_release) = {0};
    if (target_find(session, run, 0, &target) || card_load(session, &target.head, TARGET_NOW, &card)) return;
    for (size_t i = 0; i < card.view.step_count; i++)
        candidate(c, str_from(cli_format(c->cli, "%.*s/%.*s", STR_ARG(run), STR_ARG(card.view.steps[i].id))),
                  step_status_name(card.view.steps[i].status));
}

static void complete_runs(struct complete *c, bool steps)
{
    struct session session SCOPED(session_close) = {0};
    struct error err = {0};
    struct run_heads heads;
    struct str step;
    struct str run = str_cut(c->word, '/', &step);
    if (session_open(&session, c->cli, STORE_READ) || !session.store) return;
    struct run_filter filter = {.tenant = session.tenant, .run_prefix = c->word, .roots = true, .limit = 50};
    if (run.len < c->word.len) {
        if (steps) complete_steps(c, &session, run);
    } else if (store_list(session.store, &filter, &c->cli->io.arena, &heads, &err) == OK) {
        candidate(c, STR("@last"), "the newest run");
        candidate(c, STR("@last-failed"), "the newest run that FAILED");
        for (size_t i = 0; i < heads.count; i++)
            candidate(c, heads.items[i].ids.run,
                      cli_format(c->cli, "%s %.*s", run_status_name(heads.items[i].summary.status),
                                 STR_ARG(heads.items[i].name.len ? heads.items[i].name : heads.items[i].ids.plan_id)));
    }
}

static bool holds(struct str text, const char *part)
{
    char copy[160];
    if (text.len == 0 || text.len >= sizeof(copy)) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return strstr(copy, part) != NULL;
}

// What the synopsis says of positional argument `index`: "RUN/STEP", "FILE", "[COMMAND | TOPIC | CODE]".
static void complete_word(struct complete *c, const struct command *command, size_t index)
{
    struct str rest = str_from(command->synopsis), part = {0};
    for (size_t i = 0; i <= index && rest.len > 0; i++) part = str_cut(rest, ' ', &rest);
    if (holds(str_from(command->synopsis), "SHELL"))
        complete_choices(c, "bash|zsh|fish");
    else if (holds(str_from(command->synopsis), "COMMAND"))
        complete_commands(c, STR(""));
    else if (holds(part, "RUN") && !(holds(part, "FILE") && c->word.len > 0 && memchr(c->word.ptr, '.', c->word.len)))
        complete_runs(c, holds(part, "STEP"));
    if (c->out.len == 0 && (holds(part, "FILE") || holds(part, "DIR"))) buf_text(&c->out, ":files\n");
}

struct position {
    const struct command *command;
    struct str noun;
    size_t word_count;
    enum flag flag; // whose value comes next
};

static enum flag flag_named(struct str word)
{
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++) {
        const struct flag_info *info = flag_info((enum flag)i);
        bool letter = word.len == 2 && word.ptr[0] == '-' && info->letter && word.ptr[1] == info->letter;
        if (letter || (str_starts(word, STR("--")) && str_is(str_slice(word, 2, word.len), info->name)))
            return (enum flag)i;
    }
    return FLAG_NONE;
}

static bool names_place(enum flag flag)
{
    return flag == FLAG_STORE || flag == FLAG_SERVER || flag == FLAG_TOKEN_FILE || flag == FLAG_CA_FILE ||
           flag == FLAG_TENANT;
}

// Walks over the words that are complete. --store and --tenant count for what is looked up.
static struct position walk(struct cli *cli)
{
    struct position at = {.noun = STR("")};
    for (size_t i = 0; i + 1 < cli->args.rest_count; i++) {
        struct str word = cli->args.rest[i], value;
        if (at.flag != FLAG_NONE) {
            if (names_place(at.flag)) cli->args.defaults[at.flag] = (struct flag_default){word, "the line", 0};
            at.flag = FLAG_NONE;
        } else if (word.len > 1 && word.ptr[0] == '-') {
            enum flag flag = flag_named(str_cut(word, '=', &value));
            if (value.ptr && value.len > 0 && names_place(flag))
                cli->args.defaults[flag] = (struct flag_default){value, "the line", 0};
            else if (flag != FLAG_NONE && flag_info(flag)->value && str_find(word, '=', 0) >= word.len)
                at.flag = flag;
        } else if (at.command) {
            at.word_count++;
        } else if (at.noun.len > 0) {
            at.command = command_find(str_from(cli_format(cli, "%.*s %.*s", STR_ARG(at.noun), STR_ARG(word))));
        } else {
            at.command = command_find(word);
            at.noun = word;
        }
    }
    return at;
}

static void complete_examples(struct complete *c)
{
    struct example example;
    for (size_t i = 0; example_at(i, &example); i++) complete_choices(c, cli_format(c->cli, "%.*s", STR_ARG(example.id)));
}

static bool is_noun(struct str word)
{
    for (size_t i = 0; command_at(i); i++) {
        struct str second;
        if (str_eq(str_cut(str_from(command_at(i)->name), ' ', &second), word) && second.len > 0) return true;
    }
    return false;
}

int command_complete(struct cli *cli)
{
    struct complete c = {.cli = cli, .word = STR("")};
    if (cli->args.rest_count > 0) c.word = cli->args.rest[cli->args.rest_count - 1];
    buf_init(&c.out, (size_t)1 << 20);
    struct position at = walk(cli);
    if (at.flag != FLAG_NONE) {
        const char *choices = at.flag == FLAG_OUTPUT && at.command ? at.command->formats : flag_info(at.flag)->choices;
        if (at.flag == FLAG_TEMPLATE)
            complete_examples(&c);
        else if (choices && choices[0])
            complete_choices(&c, choices);
        else
            buf_text(&c.out, ":files\n");
    } else if (c.word.len > 0 && c.word.ptr[0] == '-') {
        complete_flags(&c, at.command);
    } else if (at.command && !(at.word_count == 0 && is_noun(str_from(at.command->name)) && at.noun.len > 0)) {
        complete_word(&c, at.command, at.word_count);
    } else {
        complete_commands(&c, at.noun);
    }
    cli_print(cli, &c.out);
    buf_release(&c.out);
    return EXIT_OK;
}
