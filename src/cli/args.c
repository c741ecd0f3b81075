#include "cli/args.h"
#include "term/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct flag_info flags[FLAG_COUNT] = {
#define X(name, text, letter, value, choices, help) [FLAG_##name] = {text, letter, value, choices, help},
    FLAG_LIST(X)
#undef X
};

const struct flag_info *flag_info(enum flag flag)
{
    return &flags[flag];
}

bool flag_is_global(enum flag flag)
{
    return flag == FLAG_HELP || flag == FLAG_VERSION || flag == FLAG_COLOR || flag == FLAG_ASCII ||
           flag == FLAG_QUIET || flag == FLAG_VERBOSE || flag == FLAG_PROFILE || flag == FLAG_NO_CONFIG_FILE ||
           flag == FLAG_NO_CONFIG_ENV;
}

size_t choice_index(struct str text, const char *choices)
{
    struct str rest = str_from(choices);
    for (size_t i = 0; rest.len > 0; i++)
        if (str_eq(str_cut(rest, '|', &rest), text)) return i;
    return SIZE_MAX;
}

static struct str format_in(struct arena *arena, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));

static struct str format_in(struct arena *arena, const char *format, va_list list)
{
    char text[512];
    vsnprintf(text, sizeof(text), format, list);
    return arena_copy(arena, str_from(text));
}

static int usage(struct args *args, struct arena *arena, const char *format, ...) PRINTF_LIKE(3, 4);

static int usage(struct args *args, struct arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    args->message = format_in(arena, format, list);
    va_end(list);
    return EXIT_USAGE;
}

static void advise(struct args *args, struct arena *arena, const char *format, ...) PRINTF_LIKE(3, 4);

static void advise(struct args *args, struct arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    args->hint = format_in(arena, format, list);
    va_end(list);
}

static enum flag find_flag(struct str name)
{
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        if (str_is(name, flags[i].name)) return (enum flag)i;
    return FLAG_NONE;
}

static enum flag find_letter(char letter)
{
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        if (flags[i].letter == letter) return (enum flag)i;
    return FLAG_NONE;
}

static const char *command_name(const struct args *args)
{
    return args->command ? args->command->name : "";
}

static int unknown_flag(struct args *args, struct arena *arena, struct str shown, struct str name)
{
    const char *names[FLAG_COUNT];
    size_t count = 0;
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        if (!args->command || command_takes(args->command, (enum flag)i)) names[count++] = flags[i].name;
    const char *near = nearest_name(name, names, count);
    if (near)
        advise(args, arena, "did you mean --%s?", near);
    else
        advise(args, arena, "see: cairn %s%s--help", command_name(args), args->command ? " " : "");
    if (args->command) return usage(args, arena, "`cairn %s` has no flag %.*s", args->command->name, STR_ARG(shown));
    return usage(args, arena, "there is no flag %.*s", STR_ARG(shown));
}

static int add_flag(struct args *args, struct arena *arena, enum flag flag, struct str value)
{
    const struct flag_info *info = &flags[flag];
    if (info->choices[0] && choice_index(value, info->choices) == SIZE_MAX) {
        advise(args, arena, "one of: %s", info->choices);
        return usage(args, arena, "--%s cannot be %.*s", info->name, STR_ARG(value));
    }
    args->flags[args->flag_count++] = (struct flag_value){flag, value};
    return EXIT_OK;
}

// One of --name, --name value, --name=value. *at is the index of the word and moves on when a value is taken.
static int read_long(struct args *args, struct arena *arena, int argc, char **argv, int *at)
{
    struct str value;
    struct str word = str_from(argv[*at]);
    struct str name = str_cut(str_slice(word, 2, word.len), '=', &value);
    bool given = str_find(word, '=', 2) < word.len;
    enum flag flag = find_flag(name);
    if (flag == FLAG_NONE) return unknown_flag(args, arena, str_slice(word, 0, name.len + 2), name);
    const struct flag_info *info = &flags[flag];
    if (!info->value && given) return usage(args, arena, "--%s takes no value", info->name);
    if (info->value && !given) {
        if (*at + 1 >= argc)
            return usage(args, arena, "--%s needs a value: --%s %s", info->name, info->name, info->value);
        *at += 1;
        value = str_from(argv[*at]);
    }
    return add_flag(args, arena, flag, info->value ? value : STR(""));
}

// -q, -vv, -o json, -ojson, -o=json.
static int read_letters(struct args *args, struct arena *arena, int argc, char **argv, int *at)
{
    struct str word = str_from(argv[*at]);
    for (size_t i = 1; i < word.len; i++) {
        enum flag flag = find_letter(word.ptr[i]);
        if (flag == FLAG_NONE) return unknown_flag(args, arena, word, str_slice(word, 1, word.len));
        if (!flags[flag].value) {
            int rc = add_flag(args, arena, flag, STR(""));
            if (rc) return rc;
            continue;
        }
        struct str value = str_slice(word, i + 1, word.len);
        if (value.len > 0 && value.ptr[0] == '=') value = str_slice(value, 1, value.len);
        if (value.len == 0) {
            if (*at + 1 >= argc)
                return usage(args, arena, "-%c needs a value: -%c %s", word.ptr[i], word.ptr[i], flags[flag].value);
            *at += 1;
            value = str_from(argv[*at]);
        }
        return add_flag(args, arena, flag, value);
    }
    return EXIT_OK;
}

static int unknown_command(struct args *args, struct arena *arena, struct str word)
{
    const char *names[COMMAND_MAX];
    size_t count = 0;
    for (const struct command *c; count < COMMAND_MAX && (c = command_at(count)); count++) names[count] = c->name;
    const char *near = NULL;
    for (size_t i = 0; i < count && !near; i++) { // `verify` is the second word of `log verify`
        struct str second;
        (void)str_cut(str_from(names[i]), ' ', &second);
        if (second.len > 0 && str_eq(second, word)) near = names[i];
    }
    if (!near) near = nearest_name(word, names, count);
    if (near)
        advise(args, arena, "did you mean `cairn %s`?", near);
    else
        advise(args, arena, "`cairn help` lists the commands");
    return usage(args, arena, "there is no command `%.*s`", STR_ARG(word));
}

// What may stand behind `noun`: "verify, export" of log.
static void advise_second(struct args *args, struct arena *arena, struct str noun)
{
    char text[400] = "";
    size_t at = 0;
    for (size_t i = 0; command_at(i) && at + 64 < sizeof(text); i++) {
        struct str second;
        if (str_eq(str_cut(str_from(command_at(i)->name), ' ', &second), noun) && second.len > 0)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", at ? ", " : "", STR_ARG(second));
    }
    advise(args, arena, "one of: %s", text);
}

// The first two words when they name a command together ("log verify"), else the first.
static int read_command(struct args *args, struct arena *arena, int argc, char **argv, int *at)
{
    struct str word = str_from(argv[*at]);
    bool noun = false;
    for (size_t i = 0; command_at(i); i++) {
        struct str second;
        if (!str_eq(str_cut(str_from(command_at(i)->name), ' ', &second), word) || second.len == 0) continue;
        noun = true;
        if (*at + 1 >= argc || !str_is(second, argv[*at + 1])) continue;
        args->command = command_at(i);
        *at += 1;
        return EXIT_OK;
    }
    args->command = command_find(word);
    if (args->command) return EXIT_OK;
    if (!noun) return unknown_command(args, arena, word);
    advise_second(args, arena, word);
    if (*at + 1 < argc && argv[*at + 1][0] != '-')
        return usage(args, arena, "there is no command `%.*s %s`", STR_ARG(word), argv[*at + 1]);
    return usage(args, arena, "`cairn %.*s` needs a second word", STR_ARG(word));
}

static int check_flags(struct args *args, struct arena *arena)
{
    for (size_t i = 0; i < args->flag_count; i++)
        if (!command_takes(args->command, args->flags[i].flag)) {
            struct str name = str_from(flags[args->flags[i].flag].name);
            char shown[64];
            snprintf(shown, sizeof(shown), "--%.*s", STR_ARG(name));
            return unknown_flag(args, arena, str_from(shown), name);
        }
    struct str format = args_text(args, FLAG_OUTPUT, "");
    if (args_has(args, FLAG_OUTPUT) && choice_index(format, args->command->formats) == SIZE_MAX) {
        advise(args, arena, "one of: %s", args->command->formats);
        return usage(args, arena, "`cairn %s` has no output format %.*s", args->command->name, STR_ARG(format));
    }
    return EXIT_OK;
}

static int check_words(struct args *args, struct arena *arena)
{
    const struct command *command = args->command;
    if (args->word_count < command->word_min) {
        advise(args, arena, "usage: cairn %s %s", command->name, command->synopsis);
        return usage(args, arena, "`cairn %s` needs %s", command->name, command->synopsis);
    }
    if (args->word_count > command->word_max) {
        advise(args, arena, "usage: cairn %s %s", command->name, command->synopsis);
        return usage(args, arena, "`cairn %s` cannot use %.*s", command->name, STR_ARG(args->words[command->word_max]));
    }
    return EXIT_OK;
}

int args_parse(struct args *args, int argc, char **argv, struct arena *arena)
{
    *args = (struct args){0};
    size_t room = 2 * (size_t)argc;
    for (int i = 1; i < argc; i++) room += strlen(argv[i]); // -vvv is three flags
    args->words = ARENA_ARRAY(arena, (size_t)argc, struct str);
    args->rest = ARENA_ARRAY(arena, (size_t)argc, struct str);
    args->flags = ARENA_ARRAY(arena, room, struct flag_value);
    if (!args->words || !args->rest || !args->flags) return usage(args, arena, "out of memory");
    for (int i = 1; i < argc; i++) {
        struct str word = str_from(argv[i]);
        int rc = EXIT_OK;
        if (args->has_rest)
            args->rest[args->rest_count++] = word;
        else if (str_is(word, "--"))
            args->has_rest = true;
        else if (str_starts(word, STR("--")))
            rc = read_long(args, arena, argc, argv, &i);
        else if (word.len > 1 && word.ptr[0] == '-')
            rc = read_letters(args, arena, argc, argv, &i);
        else if (!args->command)
            rc = read_command(args, arena, argc, argv, &i);
        else
            args->words[args->word_count++] = word;
        if (rc) return rc;
    }
    if (!args->command || args_has(args, FLAG_HELP)) return EXIT_OK;
    int rc = check_flags(args, arena);
    return rc ? rc : check_words(args, arena);
}

bool args_has(const struct args *args, enum flag flag)
{
    return args_count(args, flag) > 0;
}

size_t args_count(const struct args *args, enum flag flag)
{
    size_t count = 0;
    for (size_t i = 0; i < args->flag_count; i++) count += args->flags[i].flag == flag;
    return count;
}

struct str args_text(const struct args *args, enum flag flag, const char *otherwise)
{
    for (size_t i = args->flag_count; i > 0; i--)
        if (args->flags[i - 1].flag == flag) return args->flags[i - 1].text;
    return args->defaults[flag].text.ptr ? args->defaults[flag].text : str_from(otherwise);
}

bool args_next(const struct args *args, enum flag flag, size_t *cursor, struct str *out)
{
    while (*cursor < args->flag_count) {
        const struct flag_value *value = &args->flags[(*cursor)++];
        if (value->flag == flag) {
            *out = value->text;
            return true;
        }
    }
    return false;
}

bool args_int(struct args *args, enum flag flag, int64_t min, int64_t max, int64_t otherwise, struct arena *arena,
              int64_t *out)
{
    *out = otherwise;
    if (!args_has(args, flag)) return true;
    struct str text = args_text(args, flag, "");
    if (str_int64(text, out) && *out >= min && *out <= max) return true;
    usage(args, arena, "--%s cannot be %.*s: it takes a whole number from %lld on", flags[flag].name, STR_ARG(text),
          (long long)min);
    return false;
}
