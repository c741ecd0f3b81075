// The compiled program as text. Only what differs from the default is written, so that a golden shows what matters.
#include "program/net.h"

static void write_ids(struct buf *out, const struct program *program, const char *label, const uint32_t *steps,
                      uint32_t count)
{
    if (count == 0) return;
    buf_printf(out, " %s=", label);
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_byte(out, ',');
        buf_add(out, program->steps[steps[i]].id);
    }
}

static void write_ms(struct buf *out, const char *label, int64_t ms)
{
    buf_printf(out, "%s=", label);
    buf_int(out, ms);
    buf_text(out, "ms");
}

static void write_retry(struct buf *out, const struct retry_policy *retry)
{
    if (retry->max_attempts == 1) return;
    buf_printf(out, " retry={attempts=%u ", retry->max_attempts);
    write_ms(out, "delay", retry->delay_ms);
    buf_printf(out, " backoff=%s", backoff_name(retry->backoff));
    if (retry->max_delay_ms) write_ms(out, " max", retry->max_delay_ms);
    if (retry->jitter > 0) {
        char number[32];
        size_t len = json_double_format(retry->jitter, number);
        buf_text(out, " jitter=");
        buf_add(out, (struct str){number, len});
    }
    if (retry->on == RETRY_ALL) buf_text(out, " on=all");
    for (uint32_t i = 0; i < retry->non_retryable_count; i++) {
        buf_text(out, i ? "," : " not=");
        buf_add(out, retry->non_retryable[i]);
    }
    buf_byte(out, '}');
}

static void write_loop(struct buf *out, const struct program_step *step)
{
    if (step->kind != STEP_LOOP) return;
    buf_printf(out, " children=%u+%u iterations=%u", step->first_child, step->child_count, step->max_iterations);
    if (step->until != PROGRAM_TOP) buf_printf(out, " until=%u", step->until);
}

static void write_step(struct buf *out, const struct program *program, uint32_t index)
{
    const struct program_step *step = &program->steps[index];
    buf_printf(out, "%u ", index);
    if (step->scope != PROGRAM_TOP) {
        buf_add(out, program->steps[step->scope].id);
        buf_byte(out, '/');
    }
    buf_add(out, step->id);
    buf_printf(out, " %s", step_kind_name(step->kind));
    if (!str_eq(step->name, step->id)) {
        buf_text(out, " name=");
        json_write_string(out, step->name);
    }
    write_ids(out, program, "deps", step->deps, step->dep_count);
    if (step->rule != RULE_ALL_SUCCESS) buf_printf(out, " rule=%s", rule_name(step->rule));
    if (step->when_text.len) {
        buf_text(out, step->when_broken ? " when(broken)=" : " when=");
        json_write_string(out, step->when_text);
    }
    if (step->always_run) buf_text(out, " always_run");
    if (step->condition) buf_text(out, " condition");
    write_retry(out, &step->retry);
    if (step->timeout_ms) write_ms(out, " timeout", step->timeout_ms);
    if (step->on_failure == ON_FAILURE_HOLD) buf_text(out, " on_failure=hold");
    write_loop(out, step);
    for (uint32_t i = 0; i < step->secret_count; i++) {
        buf_text(out, i ? "," : " secrets=");
        buf_add(out, step->secrets[i].name);
        buf_byte(out, ':');
        buf_add(out, step->secrets[i].ref);
    }
    for (uint32_t i = 0; i < step->artifact_count; i++) {
        buf_text(out, i ? "," : " artifacts=");
        buf_add(out, step->artifacts[i].path);
        buf_byte(out, ':');
        buf_add(out, step->artifacts[i].kind);
    }
    static const char *const overflows[] = OVERFLOW_NAMES;
    if (step->undo) buf_text(out, " undo");
    if (step->limit) buf_printf(out, " limit=%.*s", STR_ARG(step->limit->name));
    if (step->overflow) buf_printf(out, " on_overflow=%s", overflows[step->overflow]);
    if (step->kind == STEP_HOST) {
        buf_text(out, " function=");
        buf_add(out, step->function);
    }
    if (step->child) {
        buf_text(out, " child=");
        buf_add(out, step->child->plan_id);
    }
    if (step->with.count) {
        buf_text(out, " with=");
        json_write(out, &step->with);
    }
    buf_printf(out, " @%u:%u\n", step->line, step->column);
    if (program->net) net_step_write(out, program, index, true);
}

static void write_net(struct buf *out, const struct program *program)
{
    const struct net *net = program->net;
    buf_printf(out, "begins at %.*s\n", STR_ARG(program->steps[net->entry].id));
    if (net->final != PROGRAM_TOP) buf_printf(out, "ends with %.*s\n", STR_ARG(program->steps[net->final].id));
    if (net->no_next_is_error) buf_text(out, "no next is an error\n");
    if (net->keychain.type) {
        buf_text(out, "keychain ");
        json_write(out, &net->keychain);
        buf_byte(out, '\n');
    }
    for (uint32_t i = 0; i < net->requires_tool_count; i++)
        buf_printf(out, "requires %.*s\n", STR_ARG(net->requires_tools[i]));
}

void program_dump(struct buf *out, const struct program *program)
{
    buf_printf(out, "%s ", document_kind_name(program->kind));
    json_write_string(out, program->plan_id);
    buf_text(out, " version ");
    json_write_string(out, program->plan_version);
    if (program->schema_version.len) {
        buf_text(out, " schema ");
        buf_add(out, program->schema_version);
    }
    buf_printf(out, " sha256 %.12s\n", program->sha256_hex);
    if (!str_eq(program->name, program->plan_id)) {
        buf_text(out, "name ");
        json_write_string(out, program->name);
        buf_byte(out, '\n');
    }
    if (program->tag_count) {
        buf_text(out, "tags");
        for (uint32_t i = 0; i < program->tag_count; i++) {
            buf_byte(out, ' ');
            json_write_string(out, program->tags[i]);
        }
        buf_byte(out, '\n');
    }
    if (program->requires_approval) buf_text(out, "requires approval\n");
    if (program->inputs.count) {
        buf_text(out, "inputs ");
        json_write(out, &program->inputs);
        buf_byte(out, '\n');
    }
    for (uint32_t i = 0; i < program->inputs.count; i++) {
        if (program->input_types[i].len == 0) continue;
        buf_text(out, "type of ");
        buf_add(out, program->inputs.members[i].key);
        buf_printf(out, " %s\n", program->input_types[i].ptr);
    }
    for (uint32_t i = 0; i < program->required_count; i++) {
        buf_text(out, "required ");
        buf_add(out, program->required[i]);
        buf_byte(out, '\n');
    }
    if (program->net) write_net(out, program);
    for (uint32_t i = 0; i < program->step_count; i++) write_step(out, program, i);
    buf_text(out, "order");
    for (uint32_t i = 0; i < program->top_count; i++) buf_printf(out, " %u", program->order[i]);
    buf_byte(out, '\n');
    for (uint32_t i = 0; i < program->part_count; i++) {
        buf_text(out, program->parts[i].kind == PART_SCRIPT ? "script " : "document ");
        buf_add(out, program->parts[i].request);
        buf_text(out, " from ");
        buf_add(out, program->parts[i].from);
        buf_text(out, " is ");
        buf_add(out, program->parts[i].file);
        buf_byte(out, '\n');
    }
}
