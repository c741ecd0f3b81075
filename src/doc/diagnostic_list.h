// Every diagnostic: X(id, title, explanation). Ids are stable: a number is never given to another fault.
// E01xx syntax, E02xx shape and fields, E03xx graph, E04xx expressions and references, E05xx limits,
// E06xx soundness (`cairn validate --sound`), E07xx test files, E08xx conversion.
// Whether one is an error or a warning is its severity, not its number.
#ifndef CAIRN_DOC_DIAGNOSTIC_LIST_H
#define CAIRN_DOC_DIAGNOSTIC_LIST_H

#define DIAGNOSTIC_LIST(X)                                                                         \
    X("E0101", "the document is not UTF-8",                                                        \
      "Documents are UTF-8 text. The place shown is the first byte that is not part of a "         \
      "well-formed character. Save the file as UTF-8 (iconv -f latin1 -t utf-8, or your "          \
      "editor's encoding menu).")                                                                  \
    X("E0102", "the JSON does not parse",                                                          \
      "A document whose first character is { or [ is read as JSON (RFC 8259): no comments, no "    \
      "trailing commas, double quotes only, every key once.")                                      \
    X("E0103", "the YAML does not parse",                                                          \
      "The text is not well-formed YAML. The usual causes are a tab used for indentation, a line " \
      "that is indented less than its neighbours, and a plain text that contains ': ' or ' #' "    \
      "and therefore needs quotes.")                                                               \
    X("E0104", "a key is given twice",                                                             \
      "A mapping holds the same key twice. YAML readers disagree about which one counts, so "      \
      "Cairn takes neither. Of a playbook the last one counts, as where it was written for, and "  \
      "this is a warning.")                                                                        \
    X("E0105", "a YAML tag is not supported",                                                      \
      "Only the tags of the core schema are read: !!str, !!int, !!float, !!bool, !!null, !!map "   \
      "and !!seq. Other tags ask the reader to build something, which a document may not do.")     \
    X("E0106", "a merge key without mappings",                                                     \
      "`<<: *name` puts the fields of a mapping under those that stand beside it, `<<: [*a, *b]` " \
      "those of several, of which the first counts most. Anything else cannot be merged.")         \
    X("E0107", "more than one document in a file",                                                 \
      "A file holds one document. Put the part after `---` in a file of its own.")                 \
    X("E0108", "an alias without its anchor",                                                      \
      "`*name` must come after `&name`, and outside of what `&name` marks.")                       \
    X("E0109", "a key is not a simple text",                                                       \
      "Keys of mappings must be texts; lists and mappings cannot be keys.")                        \
    X("E0110", "a scalar that is not a JSON value",                                                \
      "Infinities and not-a-number have no JSON form, and a value under !!int, !!float, !!bool "   \
      "or !!null must be one. Quote the value when it is meant as text.")                          \
    X("E0111", "the document is empty",                                                            \
      "There is nothing in the file but white space and comments.")                                \
    X("E0201", "the document is not a mapping",                                                    \
      "A plan and a workflow are mappings of fields; this document is a list or a single value.")  \
    X("E0202", "neither a plan nor a workflow nor a playbook",                                     \
      "An execution plan has `steps`, a node workflow has `nodes`, a playbook has `workflow`. The " \
      "document has none of them, or two, so it is not known how to read it.")                     \
    X("E0203", "an unknown field",                                                                 \
      "The field is not part of the format. Unknown fields are refused instead of ignored, "       \
      "because a misspelt field would otherwise change what the document does without a word. "    \
      "In plans, keys that begin with `x-` or `$` are yours on the top level and in metadata.")    \
    X("E0204", "a required field is missing",                                                      \
      "The field has no default and must be given.")                                               \
    X("E0205", "a field has the wrong type",                                                       \
      "The value is not of the type the field takes. In YAML, quote numbers, true, false and "     \
      "null when they are meant as texts.")                                                        \
    X("E0206", "a field has a value it cannot have",                                               \
      "The field takes one of a fixed set of values; the message lists them.")                     \
    X("E0207", "one field in two places",                                                          \
      "Several fields have two spellings (dependsOn and dependencies, kind and type, ...), and "   \
      "the ids of a plan may stand on the top level or in metadata. Give each once.")              \
    X("E0208", "an id that cannot be used",                                                        \
      "Ids become part of keys and paths. Step ids of plans match "                                \
      "[A-Za-z0-9_][A-Za-z0-9._-]{0,127} without `..`; node ids match [A-Za-z_][A-Za-z0-9_-]*; "   \
      "plan ids and versions are 1 to 128 bytes without `|` and control characters. RUN is "       \
      "reserved.")                                                                                 \
    X("E0209", "a duration or a time that cannot be read",                                         \
      "Durations are 250ms, 5s, 1m30s, 2h, 1d, PT1H30M, or a number of milliseconds. Moments are " \
      "RFC 3339: 2026-02-11T17:00:00Z.")                                                           \
    X("E0210", "a number out of range", "The message says which numbers the field takes.")         \
    X("E0211", "a schema version that is not supported",                                           \
      "This Cairn reads plans of schema versions v1.0, v1.1 and v1.2. A newer minor or another "   \
      "major version may mean things it does not know, so it does not guess.")                     \
    X("E0212", "an unknown capability",                                                            \
      "requiresCapabilities may name only capabilities of the contract; an engine cannot promise " \
      "what it has never heard of.")                                                               \
    X("E0213", "a secret with a value",                                                            \
      "Documents are stored with every run and shown to people, so secrets are named by "          \
      "reference: env:NAME, file:/path or secret://PROVIDER/NAME. The value is fetched when the "  \
      "step starts and never stored.")                                                             \
    X("E0214", "nothing to run", "The list of steps (or nodes) is empty.")                         \
    X("E0215", "a node must do exactly one thing",                                                 \
      "A node has exactly one body: bash, script, approval, event, cancel, workflow, loop_group, wait, " \
      "noop, echo, exec or merge.")                                                                \
    X("E0216", "the node needs an AI provider",                                                    \
      "command, prompt and loop nodes are carried out by a language model. Cairn runs programs "   \
      "and waits for people; it does not call models. Call one from a bash or script node if you " \
      "need it.")                                                                                  \
    X("E0217", "not supported",                                                                    \
      "The format knows this feature, Cairn does not carry it out.")                               \
    X("E0218", "a file that the document needs was not found",                                     \
      "A named script or a child document could not be loaded. The message lists where it was "    \
      "looked for.")                                                                               \
    X("E0219", "a field without effect",                                                           \
      "The field is accepted so that existing documents run, but it changes nothing here.")        \
    X("E0220", "an unknown adapter",                                                               \
      "targetAdapter is one of temporal, conductor, mock, any, auto and cairn.")                   \
    X("E0221", "a capability that the adapter does not have",                                      \
      "The plan requires something that its adapter cannot do. With fallbackBehavior: emulate "    \
      "something else stands in for it if there is such a thing, with degrade the plan runs "      \
      "without it; the run says so when it starts.")                                               \
    X("E0222", "a construct of older playbooks",                                                   \
      "Playbooks have changed: the construct is not read any more, so that it cannot be "          \
      "taken for something that works. The hint says what is written in its place.")               \
    X("E0223", "an unknown kind of tool",                                                          \
      "Tasks of playbooks are carried out by tools; the hint lists those that there are. "         \
      "More come from plug-ins: executables in a directory that the command is given. A kind of "  \
      "clouds and clusters that NoETL has and none brings is a warning: the playbook is valid, "   \
      "and a run of it is refused.")                                                               \
    X("E0224", "a version of playbooks that is not supported",                                     \
      "Playbooks of apiVersion noetl.io/v2 and noetl.io/v10 are read.")                            \
    X("E0225", "a value that must be known beforehand",                                            \
      "Sizes of results, and mode of loops and of next are fixed when the document is read. A "    \
      "template there is answered once, from the workload as it is written.")                      \
    X("E0226", "a policy without rules",                                                           \
      "A policy decides by its rules: a list that is not empty, each with when and then, "         \
      "the last perhaps with else.")                                                               \
    X("E0227", "a step that neither does nor leads to anything",                                   \
      "A step of a playbook has a tool, or a next, or both.")                                      \
    X("E0228", "a schedule that cannot be read",                                                   \
      "It has exactly one of cron, every and at. The message says which field is wrong and "       \
      "what it takes; `cairn help schedule` has all of them.")                                     \
    X("E0229", "a limit of steps that cannot be read",                                             \
      "A limit has concurrency, how many attempts work at once, and rate, how many begin in a "    \
      "time: 10/s, 600/m, 5/30s. Each may be left out: then the service says it, or nothing does.") \
    X("E0230", "a limit that the document does not have",                                          \
      "A step names one of the `limits` at the top of its document. One that the service alone "   \
      "decides about is written there as well: limits: {payments: {}}.")                           \
    X("E0301", "an id is used twice",                                                              \
      "Ids are unique in their scope: the document, or the body of one loop.")                     \
    X("E0302", "an unknown dependency",                                                            \
      "A step can depend on steps of its own scope only. Steps inside a loop depend on steps of "  \
      "the same loop; steps outside depend on the loop as a whole.")                               \
    X("E0303", "a step depends on itself",                                                         \
      "Such a step could never start.")                                                            \
    X("E0304", "dependencies form a cycle",                                                        \
      "None of the steps on the cycle could ever start. The message shows the way round: each "    \
      "step needs the one to its right.")                                                          \
    X("E0305", "a dependency that is not an id",                                                   \
      "Dependencies are a list of step ids, each a text that is not empty.")                       \
    X("E0306", "a dependency is listed twice", "Once is enough; the second entry is ignored.")     \
    X("E0307", "a document runs itself",                                                           \
      "A child document leads back to a document that is being read. Such a run would never end.") \
    X("E0308", "a child document is not valid",                                                    \
      "The document that the step runs has errors of its own, which are listed with its name.")    \
    X("E0309", "an arc to a step that does not exist",                                             \
      "Arcs, entry_step and final_step name steps of the same workflow.")                          \
    X("E0310", "a jump to a task that does not exist",                                             \
      "do: jump goes to the label of a task of the same step, or to previous.")                    \
    X("E0311", "an entry of the workbook that does not exist",                                     \
      "A task of kind workbook runs the entry of the root's workbook that it names; an "           \
      "entry has a tool of any other kind.")                                                       \
    X("E0312", "a label is used twice",                                                            \
      "Labels of tasks are unique in their step.")                                                 \
    X("E0313", "a step that no arc leads to",                                                      \
      "The step is neither where the workflow begins nor where an arc leads, so it never "         \
      "runs.")                                                                                     \
    X("E0401", "a condition that does not parse",                                                  \
      "A condition is one or more comparisons joined by && and ||, without parentheses: "          \
      "$build.output.status == 'ok' && $INPUTS.count > 3. The left side is a reference, the "      \
      "right side a quoted text, a number, true or false. A broken condition in a node workflow "  \
      "counts as false, so the node would be skipped; in a plan it is an error.")                  \
    X("E0402", "a reference to a step that does not exist",                                        \
      "The condition names a step that is not in the document (or, inside a loop, not in the "     \
      "loop and not around it).")                                                                  \
    X("E0403", "a reference to a step that may not have run",                                      \
      "The referenced step is not among the dependencies of this step, direct or indirect, so it " \
      "may still be running when its output is needed. Add it to the dependencies.")               \
    X("E0404", "a text looks like a reference",                                                    \
      "$name.output names no step of this document. It is left as it is, because it may be meant " \
      "for the shell.")                                                                            \
    X("E0405", "a reference to an input that is not declared",                                     \
      "$INPUTS.name names no entry of `inputs`. The step fails unless the start of the run gives " \
      "that input.")                                                                               \
    X("E0406", "a template that does not parse",                                                   \
      "Texts of playbooks with {{ }} or {% %} are templates in a subset of Jinja "                 \
      "(docs/format/template.md). The place shown is where reading it stopped.")                   \
    X("E0501", "the document is too large",                                                        \
      "YAML documents may have 1 MiB, JSON documents 8 MiB.")                                      \
    X("E0502", "the document is nested too deeply", "Lists and mappings nest up to 64 levels.")    \
    X("E0503", "the document has too many values",                                                 \
      "A document holds up to 100,000 values, what aliases repeat included; more with max-steps "  \
      "(`cairn help E0505`).")                                                                     \
    X("E0504", "aliases expand too far",                                                           \
      "Aliases may repeat up to 10,000 values in all, and a document has up to 1,000 anchors. "    \
      "Documents that grow without bound when aliases are expanded are a known attack.")           \
    X("E0505", "too many steps",                                                                   \
      "A document has up to 10,000 steps, those in loops included. `cairn config set max-steps "   \
      "50000` (or --max-steps) allows more, up to 100,000. The document's size, values and "       \
      "dependencies may then be larger in proportion.")                                            \
    X("E0506", "too many dependencies",                                                            \
      "A document has up to 50,000 dependencies between steps in all.")                            \
    X("E0507", "loops or child documents nest too deeply",                                         \
      "Loops inside loops and documents run by documents go up to 16 levels.")                     \
    X("E0508", "a limit of the reader",                                                            \
      "JSON nests up to 64 levels and holds up to 100,000 values; in JSON and YAML, texts go up to "  \
      "1 MiB, mappings up to 10,000 keys, numbers up to 4,300 digits. max-steps allows more values "  \
      "(`cairn help E0505`).")                                                                        \
    X("E0509", "too many artifacts",                                                               \
      "A step declares up to 1,000 artifacts: what it left is one event of its run. Declare one "  \
      "that holds the others (an archive, or a list of their names).")                             \
    X("E0601", "a step that can never run",                                                        \
      "Whatever the outcomes of the steps before it and the values that conditions see, the step " \
      "is never started. In a plan a failure stops all unrelated work: only steps directly below " \
      "the failure still start, not what hangs below a handler that succeeded. People who skip "   \
      "steps by hand are not taken into account.")                                                 \
    X("E0602", "a join that can never fire",                                                       \
      "No run gives the dependencies outcomes that satisfy the trigger rule: they exclude each "   \
      "other, or cannot come out that way at all (a noop cannot fail, nothing comes after a "      \
      "step that cancels the run). The note shows outcomes and values. Below branches that "       \
      "exclude each other, none_failed_min_one_success is the usual rule.")                        \
    X("E0603", "a condition that can never be true",                                               \
      "No values satisfy the condition, or none in the runs in which the trigger rule passes.")    \
    X("E0604", "an approval that nobody is ever asked for",                                        \
      "The step waits for a person and can never be reached, so the run goes on (or ends) without " \
      "the approval. The message says why.")                                                       \
    X("E0605", "a result that reaches nobody",                                                     \
      "Every step that depends on this one can never run.")                                        \
    X("E0606", "a retry that can never happen",                                                    \
      "The step cannot fail, or fails only in ways that the policy does not retry: transient "     \
      "failures are those of processes, child runs and timeouts.")                                 \
    X("E0607", "a timeout shorter than the wait",                                                  \
      "The step waits for a fixed time and is ended before that time is over, in every run.")      \
    X("E0608", "a loop condition that is always the same",                                         \
      "The command of until_bash has the same exit status in every round: the loop never repeats, " \
      "or runs out of iterations and fails.")                                                      \
    X("E0701", "a test names a step that the document does not have",                              \
      "Mocks, answers, signals and expectations name steps as events do: `load`, inside a loop "   \
      "`loop[2].tick` or `loop[*].tick` for every iteration, in a child run `sub/load`; `#2` "     \
      "behind a name is its second attempt.")                                                      \
    X("E0702", "a step that cannot be mocked",                                                     \
      "Only steps that act outside of the engine are mocked: exec, shell, script and functions of "  \
      "a host. Waits pass in virtual time, approvals are answered under `approvals`, and child "   \
      "runs are runs whose own steps are mocked as `sub/step`.")                                   \
    X("E0801", "a meaning that the other format does not have",                                    \
      "`cairn convert` changes the format only when nothing is lost. Plans have no loops, no step " \
      "that cancels the run and no always_run; node workflows have no holds, artifacts, jitter "   \
      "and stdin. After a failure a plan starts nothing that is not directly below it, and a node " \
      "workflow goes on with everything that can be decided, so documents with work beside a step " \
      "that can fail mean different things in the two formats.")

#endif
