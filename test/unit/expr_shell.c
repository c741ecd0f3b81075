// Values in shell scripts, tried with bash itself. Two properties: what the script prints is the value, whole, wherever the
// reference stands; and no value runs a command (each nasty value would create the file "pwned").
// Many cases share one bash: each is an eval in a subshell with its own environment, and prints a separator after it.
#include "expr/expr.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEPARATOR '\036'

static struct arena arena;

struct world {
    struct str value;  // of $v.output
    struct json typed; // of $n.output
};

static bool known(void *context, struct str name)
{
    (void)context;
    return str_is(name, "v") || str_is(name, "n") || str_is(name, "get-it");
}

static enum code lookup(void *context, const struct ref *ref, struct arena *into, struct json *out, struct error *err)
{
    struct world *world = context;
    struct json value = json_string(world->value);
    if (ref->kind == REF_OUTPUT && str_is(ref->node, "n")) value = world->typed;
    if (ref->kind == REF_OUTPUT) return expr_field(&value, ref->path, into, out, err);
    *out = value;
    return OK;
}

static enum code subst(const char *script, struct world *world, struct subst *out, struct error *err)
{
    struct scope scope = {.context = world, .known = known, .lookup = lookup};
    return subst_shell(str_from(script), &scope, &arena, out, err);
}

// ---- one bash for many cases

struct batch {
    struct buf script;
    struct str *expected;
    const char **sources;
    size_t count, expected_capacity, source_capacity;
};

static void batch_init(struct batch *batch)
{
    *batch = (struct batch){0};
    buf_init(&batch->script, 64 * 1024 * 1024);
}

static void put_quoted(struct buf *out, struct str s)
{
    buf_byte(out, '\'');
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\'')
            buf_text(out, "'\\''");
        else
            buf_byte(out, s.ptr[i]);
    }
    buf_byte(out, '\'');
}

static void batch_add(struct batch *batch, const char *source, struct world *world, struct str expected)
{
    struct subst result = {0};
    struct error err = {0};
    enum code rc = subst(source, world, &result, &err);
    if (rc) test_fail(__FILE__, __LINE__, "%s: %s", source, err.message);
    struct buf *out = &batch->script;
    buf_text(out, "(\n");
    for (size_t i = 0; i < result.env_count; i++) {
        buf_text(out, "export ");
        buf_add(out, result.env[i].name);
        buf_byte(out, '=');
        put_quoted(out, result.env[i].value);
        buf_byte(out, '\n');
    }
    buf_text(out, "eval ");
    put_quoted(out, result.text);
    buf_text(out, "\n)\nprintf '\\036'\n");
    batch->expected = arena_grow(&arena, batch->expected, batch->count, batch->count + 1, sizeof(struct str),
                                 &batch->expected_capacity);
    batch->sources = (const char **)arena_grow(&arena, (void *)batch->sources, batch->count, batch->count + 1,
                                               sizeof(char *), &batch->source_capacity);
    CHECK(batch->expected && batch->sources);
    batch->expected[batch->count] = arena_copy(&arena, expected);
    batch->sources[batch->count++] = arena_copy(&arena, str_from(source)).ptr;
}

static void batch_run(struct batch *batch)
{
    const char *dir = test_dir();
    char path[512], command[1200];
    CHECK(buf_ok(&batch->script));
    snprintf(path, sizeof(path), "%s/cases.sh", dir);
    test_write_file(path, buf_str(&batch->script));
    snprintf(command, sizeof(command), "cd '%s' && bash --norc --noprofile cases.sh > out 2> err < /dev/null", dir);
    if (system("command -v bash > /dev/null 2>&1")) test_skip("no bash");
    int status = system(command);
    (void)status;
    snprintf(path, sizeof(path), "%s/out", dir);
    struct str output = test_read_file(path);
    size_t at = 0;
    for (size_t i = 0; i < batch->count; i++) {
        size_t end = str_find(output, SEPARATOR, at);
        struct str got = str_slice(output, at, end);
        if (end == output.len || !str_eq(got, batch->expected[i])) {
            snprintf(path, sizeof(path), "%s/err", dir);
            struct str err = test_read_file(path);
            test_fail(__FILE__, __LINE__, "%s\nprinted [%.*s]\nwanted [%.*s]\n%.*s", batch->sources[i], STR_ARG(got),
                      STR_ARG(batch->expected[i]), (int)(err.len < 400 ? err.len : 400), err.ptr);
        }
        at = end + 1;
    }
    struct stat unused;
    snprintf(path, sizeof(path), "%s/pwned", dir);
    if (!stat(path, &unused)) test_fail(__FILE__, __LINE__, "a value ran as a command");
    buf_release(&batch->script);
}

// ---- fixed cases

static const char *const values[] = {
    "plain",
    "",
    " two  words ",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "'\"'\"'$(touch pwned)",
    "\\'; touch pwned #",
    "a\nb\n\nc\n",
    "\n$(touch pwned)\n",
    "; touch pwned",
    "| touch pwned",
    "&& touch pwned &",
    "> pwned",
    "*",
    "~",
    "{a,b}",
    "-n",
    "--help",
    "$HOME ${HOME} $'x' $((1+1))",
    "a[$(touch pwned)]",
    "\\",
    "\\\\n\\t",
    "&",
    "# comment",
    "!!",
    ")",
    "EOF",
    "\xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x90\xB2 \xC3\xA9",
    "$v.output ${CAIRN_REF_1} $ARGUMENTS",
    "%s %d \x02\x1B[0m",
};

// A script and what it prints; @ stands for the value, and T for the value without newlines at its end.
static const struct {
    const char *script, *prints;
} templates[] = {
    {"printf '%s' $v.output", "@"},
    {"printf '%s' \"$v.output\"", "@"},
    {"printf '%s' \"$v.output\"; cat <<'END' > /dev/null\n\x01\x7F$v.output\nEND\n", "@"},
    {"printf '%s' '$v.output'", "@"},
    {"printf '%s' \"<$v.output>\"", "<@>"},
    {"printf '%s' '<$v.output>'", "<@>"},
    {"printf '%s' \"it's '$v.output'\"", "it's '@'"},
    {"printf '%s' '\"'$v.output'\"'", "\"@\""},
    {"printf '%s' $'a\\'$v.output\\'\\t'", "a'@'\t"},
    {"printf '%s' $\"<$v.output>\"", "<@>"},
    {"printf '%s' pre$v.output/post", "pre@/post"},
    {"printf '%s' $v.output$v.output", "@@"},
    {"x=1; printf '%s' $x$v.output\"$x$v.output\"", "1@1@"},
    {"printf '%s' \\$v.output", "$v.output"},
    {"printf '%s' \"\\$v.output\"", "$v.output"},
    {"printf '%s' \\\\$v.output", "\\@"},
    {"printf '%s' $v.output # it's $v.output", "@"},
    {"# don't \"stop\n  # `or $(\nprintf '%s' $v.output", "@"},
    {"printf '%s' a#$v.output", "a#@"},
    {"printf '%s' \\\n  $v.output", "@"},
    {"X=$v.output; printf '%s' \"$X\"", "@"},
    {"X=$(printf '%s' $v.output; echo x); printf '%s' \"$X\"", "@x"},
    {"X=$(printf '%s' $v.output); printf '%s' \"$X\"", "T"},
    {"printf '%s' \"$(printf '%s' $v.output; echo x)\"", "@x"},
    {"printf '%s' \"$(printf '%s' \"$v.output\"; echo \"x\")\"", "@x"},
    {"printf '%s' \"$(printf '%s' \"$(printf '%s' '$v.output'; echo y)\"; echo x)\"", "@yx"},
    {"X=`printf '%s' $v.output; echo x`; printf '%s' \"$X\"", "@x"},
    {"printf '%s' \"`printf '%s' $v.output; echo x`\"", "@x"},
    {"printf '%s' \"`printf '%s' '$v.output'; echo x`\"", "@x"},
    {"printf '%s' \"`printf '%s' \"$v.output\"; echo x`\"", "@x"},
    {"printf '%s' \"${NONE:-$v.output}\"", "@"},
    {"printf '%s' \"${NONE-'$v.output'}\"", "'@'"},
    {"printf '%s' \"${NONE-'}$v.output'}\" $v.output", "'}@'@"},
    {"printf '%s' ${NONE:-$v.output}", "@"},
    {"printf '%s' ${NONE:-\"$v.output\"'$v.output'}", "@@"},
    {"printf '%s' \"${NONE:-${NADA:-$v.output}}\"", "@"},
    {"printf '%s' \"${NONE:-$(printf '%s' $v.output; echo x)}\"", "@x"},
    {"S=abc$v.output; printf '%s' \"${S#abc}\"", "@"},
    {"S=abc$v.output; printf '%s' \"${S%$v.output}\" ${S%$v.output}", "abcabc"},
    {"T=a; printf '%s' \"${T/a/$v.output}\"", "@"},
    {"T=a; printf '%s' \"${T/'a'/$v.output}\"", "@"},
    {"a=(x $v.output\n y); printf '%s' \"${a[1]}\" \"${#a[@]}\"", "@3"},
    {"declare -A m=([k]=$v.output); printf '%s' \"${m[k]}\"", "@"},
    {"f() { printf '%s' \"$1\"; }; f $v.output", "@"},
    {"function g { printf '%s' $v.output; }; g", "@"},
    {"cat <<< $v.output", "@\n"},
    {"cat <(printf '%s' $v.output)", "@"},
    {"printf '%s' $v.output > >(cat); wait; printf .", "@."},
    {"for x in $v.output; do printf '%s' \"$x\"; done", "@"},
    {"[[ $v.output == $v.output ]] && printf yes", "yes"},
    {"[[ $v.output == \"$v.output\" && ( x == '$v.output' || x == x ) ]] && printf '%s' $v.output", "@"},
    {"[ x$v.output = \"x$v.output\" ] && printf yes", "yes"},
    {"[[ 'a)' =~ \\) ]] && printf '%s' $v.output", "@"},
    {"case $v.output in $v.output) printf '%s' $v.output;; *) printf no;; esac", "@"},
    {"case x in (a|b) printf no;; x) printf '%s' $v.output;; esac", "@"},
    {"X=$(case x in a) echo no;; x) printf '%s' $v.output;; esac; echo x); printf '%s' \"$X\"", "@x"},
    {"printf '%s' \"$(case x in (a) echo no;; x|y) printf '%s' '$v.output' ;; esac; echo x)\"", "@x"},
    {"printf '%s' \"$(if true; then case x in\n a) ;;\n x) case y in y) printf '%s' $v.output;; esac;;\n esac; fi; "
     "echo x)\"",
     "@x"},
    {"printf '%s' \"$(echo case in esac; printf '%s' $v.output; echo x)\"", "case in esac\n@x"},
    {"printf '%s' \"$( ( (printf '%s' $v.output) ); echo x)\"", "@x"},
    {"printf '%s' \"$((printf '%s' $v.output); echo x)\"", "@x"},
    {"printf '%s' $((1 + (2 * 3))) $v.output", "7@"},
    {"(( 1 << 2 )); printf '%s' $v.output", "@"},
    {"for ((i = 0; i < 1; i++)); do printf '%s' $v.output; done", "@"},
    {"printf '%s' $[1 + 1]$v.output", "2@"},
    {"printf '%s' $# \"$#\" $v.output", "00@"},
    {"cat <<END\n[$v.output]\nEND\n", "[@]\n"},
    {"cat <<END\nit's \"$v.output\" `printf '%s' $v.output; echo x` $(printf '%s' $v.output; echo x)\nEND\n",
     "it's \"@\" @x @x\n"},
    {"cat <<END\n${NONE:-$v.output} \\$v.output\nEND\nprintf '%s' $v.output", "@ $v.output\n@"},
    {"cat <<-END\n\t[$v.output]\n\tEND\nprintf '%s' '$v.output'", "[@]\n@"},
    {"cat <<'END'\n[$v.output] `x` $(y) \"'\nEND\nprintf '%s' $v.output", "[@] `x` $(y) \"'\n@"},
    {"cat <<\\END\n[$v.output]\nEND\n", "[@]\n"},
    {"cat <<\"E N\"\n[$v.output]\nE N\n", "[@]\n"},
    {"cat <<A; cat <<'B'\n[$v.output]\nA\n<$v.output>\nB\nprintf '%s' $v.output", "[@]\n<@>\n@"},
    {"cat <<A | cat\n$v.output\nA\nprintf '%s' \"$v.output\"", "@\n@"},
    {"X=$(cat <<A\n$v.output.\nA\n); printf '%s' \"$X\"", "@."},
    {"X=\"$(cat <<'A'\n$v.output.\nA\n)\"; printf '%s' \"$X\"", "@."},
    {"if true; then\n  cat <<'A'\n$v.output\nA\nfi; printf '%s' $v.output", "@\n@"},
    {"(cat <<A\n$v.output\nA\n); printf '%s' \"$v.output\"", "@\n@"},
    {"printf '%s' $ARGUMENTS", "@"},
    {"printf '%s' \"$ARGUMENTS\"\"${ARGUMENTS}\"", "@@"},
    {"ARGUMENTSX=1; printf '%s' $ARGUMENTSX$ARTIFACTS_DIR", "1@"},
    {"printf '%s' $get-it.output-x", "@-x"},
    {"printf '%s' $INPUTS.name", "@"},
    {"printf '%s' \"$unknown.output\"", ".output"},
    {"printf '%s' ${v}.output", ".output"},
    {"echo one > /dev/null 2>&1; printf '%s' $v.output &> out2; cat out2", "@"},
    {"true && { printf '%s' $v.output; } || printf no", "@"},
    {"! false; printf '%s' $v.output 2> /dev/null", "@"},
    {"printf '%s' \"a\"'b'\"$v.output\"\\'$v.output\\\"", "ab@'@\""},
};

static struct str fill(const char *pattern, struct str value)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    struct str trimmed = value;
    while (trimmed.len && trimmed.ptr[trimmed.len - 1] == '\n') trimmed.len--;
    for (const char *p = pattern; *p; p++) {
        if (*p == '@' || *p == 'T')
            buf_add(&out, *p == '@' ? value : trimmed);
        else
            buf_byte(&out, *p);
    }
    struct str copy = arena_copy(&arena, buf_str(&out));
    buf_release(&out);
    return copy;
}

static void every_value_arrives_in_every_place(void)
{
    struct batch batch;
    batch_init(&batch);
    for (size_t i = 0; i < ARRAY_COUNT(templates); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(values); j++) {
            struct world world = {.value = str_from(values[j]), .typed = json_int(5)};
            batch_add(&batch, templates[i].script, &world, fill(templates[i].prints, world.value));
        }
    }
    printf("# %zu scripts run by bash\n", batch.count);
    batch_run(&batch);
}

// ---- generated cases: words nested at random, with what they must print

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

struct piece {
    struct buf script, prints;
};

static void add_both(struct piece *piece, const char *script, const char *prints)
{
    buf_text(&piece->script, script);
    buf_text(&piece->prints, prints);
}

static void add_reference(struct piece *piece, struct str value)
{
    buf_text(&piece->script, "$v.output");
    buf_add(&piece->prints, value);
}

static void gen_double(struct piece *piece, struct str value, int depth);
static void gen_bare(struct piece *piece, struct str value, int depth);

// $( ... ): what it prints loses its newlines at the end.
static void gen_command(struct piece *piece, struct str value, int depth)
{
    static const char *const forms[][2] = {
        {"$(printf '%s' ", ")"},
        {"$(case k in a) echo no;; (k|l) printf '%s' ", ";; esac)"},
        {"$(# it's )\nprintf '%s' ", "\n)"},
        {"$( (printf '%s' ", ") )"},
        {"$(cat <(printf '%s' ", "))"},
        {"$(if [[ a == a ]]; then printf '%s' ", "; fi)"},
        {"$(f() { printf '%s' \"$1\"; }; f ", ")"},
    };
    size_t start = piece->prints.len;
    uint32_t form = draw(ARRAY_COUNT(forms) + 2);
    if (form < ARRAY_COUNT(forms)) {
        buf_text(&piece->script, forms[form][0]);
        buf_text(&piece->script, "x");
        buf_text(&piece->prints, "x");
        gen_bare(piece, value, depth - 1);
        buf_text(&piece->script, forms[form][1]);
    } else if (form == ARRAY_COUNT(forms)) {
        add_both(piece, "$(cat <<DOC\nit's \"", "it's \"");
        add_reference(piece, value);
        buf_text(&piece->script, "\nDOC\n)");
    } else {
        add_both(piece, "$(cat <<'DOC'\n`$(\" ", "`$(\" ");
        add_reference(piece, value);
        buf_text(&piece->script, "\nDOC\n)");
    }
    while (piece->prints.len > start && piece->prints.ptr[piece->prints.len - 1] == '\n') piece->prints.len--;
}

static void gen_double(struct piece *piece, struct str value, int depth)
{
    for (uint32_t n = 1 + draw(3); n; n--) {
        switch (depth > 0 ? draw(6) : draw(3)) {
        case 0:
            add_reference(piece, value);
            break;
        case 1:
            add_both(piece, " it's # ) ", " it's # ) ");
            break;
        case 2:
            add_both(piece, "\\\"\\$", "\"$");
            break;
        case 3:
            buf_text(&piece->script, "${NONE:-");
            add_reference(piece, value);
            buf_text(&piece->script, "}");
            break;
        default:
            gen_command(piece, value, depth);
            break;
        }
    }
}

static void gen_bare(struct piece *piece, struct str value, int depth)
{
    for (uint32_t n = 1 + draw(3); n; n--) {
        switch (draw(7)) {
        case 0:
            add_reference(piece, value);
            break;
        case 1:
            add_both(piece, "+a#b", "+a#b");
            break;
        case 2:
            add_both(piece, "'\" $( ", "\" $( ");
            add_reference(piece, value);
            add_both(piece, " `'", " `");
            break;
        case 3:
            add_both(piece, "$'\\'\"", "'\"");
            add_reference(piece, value);
            buf_text(&piece->script, "'");
            break;
        case 4:
            add_both(piece, "\\'\\\"", "'\"");
            break;
        default:
            buf_text(&piece->script, "\"");
            gen_double(piece, value, depth);
            buf_text(&piece->script, "\"");
            break;
        }
    }
}

static struct str random_value(void)
{
    static const char *const parts[] = {"$(touch pwned)",
                                        "`touch pwned`",
                                        "'",
                                        "\"",
                                        "\\",
                                        "\n",
                                        " ",
                                        ";touch pwned;",
                                        "*",
                                        "${HOME}",
                                        "DOC",
                                        "x",
                                        "\xC3\xA9",
                                        ")",
                                        "}",
                                        "#",
                                        "-e",
                                        "%s"};
    struct buf out;
    buf_init(&out, 4096);
    for (uint32_t n = draw(6); n; n--) buf_text(&out, parts[draw(ARRAY_COUNT(parts))]);
    buf_text(&out, "."); // never a line that is the delimiter
    struct str copy = arena_copy(&arena, buf_str(&out));
    buf_release(&out);
    return copy;
}

static void random_nesting_keeps_values_whole(void)
{
    seed = 20260211;
    struct batch batch;
    batch_init(&batch);
    for (int i = 0; i < 1500; i++) {
        struct piece piece;
        buf_init(&piece.script, 1 << 20);
        buf_init(&piece.prints, 1 << 20);
        struct world world = {.value = random_value(), .typed = json_int(5)};
        while (strstr(world.value.ptr, "DOC\n")) world.value = random_value();
        buf_text(&piece.script, "printf '%s' ");
        gen_bare(&piece, world.value, 3);
        CHECK(buf_ok(&piece.script) && buf_ok(&piece.prints));
        batch_add(&batch, piece.script.ptr, &world, buf_str(&piece.prints));
        buf_release(&piece.script);
        buf_release(&piece.prints);
    }
    printf("# seed 20260211: %zu random scripts run by bash\n", batch.count);
    batch_run(&batch);
}

// ---- texts

static void the_text_is_as_written_in_the_header(void)
{
    static const struct {
        const char *script, *text;
    } cases[] = {
        {"echo $v.output", "echo \"${CAIRN_REF_1}\""},
        {"echo \"$v.output\"", "echo \"${CAIRN_REF_1}\""},
        {"echo '$v.output'", "echo ''\"${CAIRN_REF_1}\"''"},
        {"cat <<E\n$v.output\nE\n", "cat <<E\n${CAIRN_REF_1}\nE\n"},
        {"cat <<'E'\n$v.output\nE\n", "cat <<'E'\na b\nE\n"},
        {"echo $v.output $v.output $get-it.output", "echo \"${CAIRN_REF_1}\" \"${CAIRN_REF_1}\" \"${CAIRN_REF_2}\""},
        {"# $v.output", "# $v.output"},
        {"echo $n.output \"$n.output\" '$n.output' $((1+$n.output))", "echo 42 \"42\" '42' $((1+42))"},
        {"echo $n.output>f $n.output", "echo \"42\">f 42"},
        {"echo $x$n.output", "echo $x\"${CAIRN_REF_1}\""},
        {"echo $ARGUMENTS \"$ARGUMENTS\" '$ARGUMENTS' $ARGUMENTSX",
         "echo \"$ARGUMENTS\" \"$ARGUMENTS\" '$ARGUMENTS' $ARGUMENTSX"},
        {"echo $nobody.output", "echo $nobody.output"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct world world = {.value = STR("a b"), .typed = json_int(42)};
        struct subst out = {0};
        struct error err = {0};
        CHECK_OK(subst(cases[i].script, &world, &out, &err), &err);
        CHECK_STR(out.text, str_from(cases[i].text));
    }
    struct world world = {.value = STR("a b"), .typed = json_bool(true)};
    struct subst out = {0};
    struct error err = {0};
    CHECK_OK(subst("$n.output && echo $v.output $WORKFLOW_ID", &world, &out, &err), &err);
    CHECK_STR(out.text, STR("true && echo \"${CAIRN_REF_1}\" \"$WORKFLOW_ID\""));
    CHECK_INT(out.env_count, 2);
    CHECK_STR(out.env[0].name, STR("CAIRN_REF_1"));
    CHECK_STR(out.env[0].value, STR("a b"));
    CHECK_STR(out.env[1].name, STR("WORKFLOW_ID"));
}

static void large_values_travel_in_parts(void)
{
    static char large[250 * 1024 + 1];
    memset(large, 'x', sizeof(large) - 1);
    struct world world = {.value = str_from(large)};
    struct subst out = {0};
    struct error err = {0};
    CHECK_OK(subst("a=$v.output\nb=\"$v.output\"", &world, &out, &err), &err);
    CHECK_STR(out.text, STR("unset -v CAIRN_REF_1; CAIRN_REF_1=${CAIRN_REF_1_1}${CAIRN_REF_1_2}${CAIRN_REF_1_3}; "
                            "unset -v CAIRN_REF_1_1 CAIRN_REF_1_2 CAIRN_REF_1_3; a=\"${CAIRN_REF_1}\"\n"
                            "b=\"${CAIRN_REF_1}\""));
    size_t total = 0;
    for (size_t i = 0; i < out.env_count; i++) {
        CHECK(out.env[i].value.len <= 100 * 1024);
        total += out.env[i].value.len;
    }
    CHECK_INT(total, sizeof(large) - 1);
}

static void what_cannot_be_safe_is_refused(void)
{
    static char large[1600 * 1024];
    memset(large, 'x', sizeof(large) - 1);
    static const struct {
        const char *script, *value;
        enum code code;
    } cases[] = {
        {"cat <<'EOF'\n$v.output\nEOF\n", "a\nEOF\ntouch pwned", E_INVALID},
        {"cat <<'EOF'\nE$v.output\nEOF\n", "OF", E_INVALID},
        {"cat <<'EOF'\n$v.output\nEOF\n", "x\nEOF", E_INVALID},
        {"cat <<-'EOF'\n$v.output\nEOF\n", "x\n\t\tEOF\n", E_INVALID},
        {"X=$(cat <<'EOF'\n$v.output\nEOF\n)", "a\001", E_INVALID},
        {"echo `cat <<'EOF'\n$v.output\nEOF\n`", "`touch pwned`", E_INVALID},
        {"echo `echo \\`echo $v.output\\``", "x", E_INVALID},
        {"echo $(($v.output + 1))", "a[$(touch pwned)]", E_INVALID},
        {"echo \"$((1 + \"$v.output\"))\"", "x", E_INVALID},
        {"(( $v.output > 1 )) && echo", "a[$(touch pwned)]", E_INVALID},
        {"[[ $v.output -gt 1 ]]", "a[$(touch pwned)]", E_INVALID},
        {"[[ x == x && 1 -eq \"$v.output\" ]]", "a[$(touch pwned)]", E_INVALID},
        {"let x=$v.output", "a[$(touch pwned)]", E_INVALID},
        {"echo ${a[$v.output]}", "$(touch pwned)", E_INVALID},
        {"echo ${a:$v.output}", "b[$(touch pwned)]", E_INVALID},
        {"a[$v.output]=1", "$(touch pwned)", E_INVALID},
        {"x=1 eval \"echo $v.output\"", "$(touch pwned)", E_INVALID},
        {"(( $ARGUMENTS ))", "a[$(touch pwned)]", E_INVALID},
        {"echo $v.output", large, E_LIMIT},
        {"echo $v.output.field", "text", E_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct world world = {.value = str_from(cases[i].value), .typed = json_null()};
        struct subst out = {0};
        struct error err = {0};
        enum code rc = subst(cases[i].script, &world, &out, &err);
        if (rc != cases[i].code)
            test_fail(__FILE__, __LINE__, "%s: %s %.*s", cases[i].script, code_name(rc), STR_ARG(out.text));
        CHECK(strlen(err.message) > 10);
    }
    struct world nul = {.value = {"a\0b", 3}, .typed = json_null()};
    struct subst out = {0};
    struct error err = {0};
    CHECK_INT(subst("echo $v.output", &nul, &out, &err), E_INVALID);
    CHECK(strstr(err.message, "$v.output"));
}

static void integers_may_be_computed_with(void)
{
    struct batch batch;
    batch_init(&batch);
    struct world world = {.value = STR("7"), .typed = json_int(-3)};
    batch_add(&batch, "echo $(($v.output + 1)) $(( $n.output * 2 ))", &world, STR("8 -6\n"));
    batch_add(&batch, "(( $v.output > 6 )) && [[ $v.output -gt 6 && $n.output -lt 0 ]] && echo yes", &world,
              STR("yes\n"));
    batch_add(&batch, "a=(0 1 2 3 4 5 6 seven); echo ${a[$v.output]} \"${a[$v.output]:2}\"", &world,
              STR("seven ven\n"));
    batch_add(&batch, "let x=$v.output+1; echo $x", &world, STR("8\n"));
    batch_run(&batch);
}

static void deep_nesting_is_refused(void)
{
    struct buf script;
    buf_init(&script, 1 << 20);
    for (int i = 0; i < 200; i++) buf_text(&script, "$(\"");
    buf_text(&script, "$v.output");
    struct world world = {.value = STR("x"), .typed = json_null()};
    struct subst out = {0};
    struct error err = {0};
    CHECK_INT(subst(script.ptr, &world, &out, &err), E_LIMIT);
    buf_release(&script);
}

static void memory_may_run_out_anywhere(void)
{
    struct world world = {.value = STR("x"), .typed = json_array()};
    struct scope scope = {.context = &world, .known = known, .lookup = lookup};
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        struct arena small;
        arena_init(&small, 4096, 1 << 20);
        small.fail_in = n;
        struct subst out = {0};
        struct error err = {0};
        enum code rc = subst_shell(STR("echo $v.output $n.output $ARGUMENTS <<A\n$get-it.output\nA\n"), &scope, &small,
                                   &out, &err);
        CHECK(rc == OK || rc == E_NOMEM);
        done = rc == OK;
        CHECK(n < 1000);
        arena_release(&small);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_text_is_as_written_in_the_header),
        TEST(large_values_travel_in_parts),
        TEST(what_cannot_be_safe_is_refused),
        TEST(integers_may_be_computed_with),
        TEST(every_value_arrives_in_every_place),
        TEST(random_nesting_keeps_values_whole),
        TEST(deep_nesting_is_refused),
        TEST(memory_may_run_out_anywhere),
    };
    arena_init(&arena, 64 * 1024, 256 * 1024 * 1024);
    int status = test_main("expr_shell", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&arena);
    return status;
}
