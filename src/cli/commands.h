// What the rows of the table of commands call. One file a command; the signals are one file, being one command in nine
// spellings.
#ifndef CAIRN_CLI_COMMANDS_H
#define CAIRN_CLI_COMMANDS_H

struct cli;

int command_run(struct cli *cli);
int command_validate(struct cli *cli);
int command_convert(struct cli *cli);
int command_plan(struct cli *cli);
int command_render(struct cli *cli);
int command_schema(struct cli *cli);
int command_new(struct cli *cli);
int command_example(struct cli *cli);
int command_init(struct cli *cli);
int command_fmt(struct cli *cli);
int command_graph(struct cli *cli);
int command_ls(struct cli *cli);
int command_watch(struct cli *cli);
int command_top(struct cli *cli);
int command_get(struct cli *cli);
int command_events(struct cli *cli);
int command_trace(struct cli *cli);
int command_logs(struct cli *cli);
int command_why(struct cli *cli);
int command_diff(struct cli *cli);
int command_ps(struct cli *cli);
int command_artifacts_ls(struct cli *cli);
int command_artifacts_cat(struct cli *cli);
int command_artifacts_get(struct cli *cli);
int command_inbox(struct cli *cli);
int command_wait(struct cli *cli);
int command_worker(struct cli *cli);
int command_signal(struct cli *cli);
int command_retry(struct cli *cli);
int command_fork(struct cli *cli);
int command_rerun(struct cli *cli);
int command_recover(struct cli *cli);
int command_serve(struct cli *cli);
int command_log_verify(struct cli *cli);
int command_audit_verify(struct cli *cli);
int command_log_replay(struct cli *cli);
int command_log_export(struct cli *cli);
int command_log_import(struct cli *cli);
int command_key_new(struct cli *cli);
int command_key_show(struct cli *cli);
int command_store_copy(struct cli *cli);
int command_store_migrate(struct cli *cli);
int command_store_stat(struct cli *cli);
int command_store_gc(struct cli *cli);
int command_store_backup(struct cli *cli);
int command_store_restore(struct cli *cli);
int command_bench(struct cli *cli);
int command_test(struct cli *cli);
int command_test_record(struct cli *cli);
int command_crashtest(struct cli *cli);
int command_config_list(struct cli *cli);
int command_config_get(struct cli *cli);
int command_config_set(struct cli *cli);
int command_config_path(struct cli *cli);
int command_context_ls(struct cli *cli);
int command_context_use(struct cli *cli);
int command_context_add(struct cli *cli);
int command_context_test(struct cli *cli);
int command_doctor(struct cli *cli);
int command_completion(struct cli *cli);
int command_complete(struct cli *cli);
int command_man(struct cli *cli);
int command_version(struct cli *cli);
int command_help(struct cli *cli);

#endif
