// The messages of temporal.h: MESSAGE(name, how the protocol spells it without its package, its fields in the order of their numbers).
// Who includes this defines MESSAGE and the kinds of fields: a struct and its table are made of the same row.

// ---- shared
// of Payload.metadata: map<string, bytes>
MESSAGE(entry, "Payload.MetadataEntry", TEXT(entry, key, 1) TEXT(entry, value, 2))
MESSAGE(payload, "Payload", MANY(payload, metadata, 1, entry) TEXT(payload, data, 2))
MESSAGE(payloads, "Payloads", MANY(payloads, payloads, 1, payload))
// of map<string, Payload>
MESSAGE(named_payload, "Memo.FieldsEntry", TEXT(named_payload, key, 1) ONE(named_payload, value, 2, payload))
// Memo, Header, SearchAttributes: all are one map
MESSAGE(fields, "Memo", MANY(fields, fields, 1, named_payload))
// Timestamp has the same shape
MESSAGE(duration, "Duration", NUMBER(duration, seconds, 1) NUMBER(duration, nanos, 2))
MESSAGE(execution, "WorkflowExecution", TEXT(execution, workflow_id, 1) TEXT(execution, run_id, 2))
// WorkflowType, ActivityType
MESSAGE(name, "WorkflowType", TEXT(name, name, 1))
// normal_name: of a sticky one
MESSAGE(queue, "TaskQueue", TEXT(queue, name, 1) NUMBER(queue, kind, 2) TEXT(queue, normal_name, 3))
MESSAGE(retry, "RetryPolicy", ONE(retry, initial_interval, 1, duration) DOUBLE(retry, backoff_coefficient, 2)
        ONE(retry, maximum_interval, 3, duration) NUMBER(retry, maximum_attempts, 4))
// UserMetadata: what a person reads in the UI
MESSAGE(metadata, "UserMetadata", ONE(metadata, summary, 1, payload) ONE(metadata, details, 2, payload))
MESSAGE(application_failure, "ApplicationFailureInfo", TEXT(application_failure, type, 1)
        NUMBER(application_failure, non_retryable, 2) ONE(application_failure, details, 3, payloads))
MESSAGE(timeout_failure, "TimeoutFailureInfo", NUMBER(timeout_failure, timeout_type, 1))
MESSAGE(canceled_failure, "CanceledFailureInfo", ONE(canceled_failure, details, 1, payloads))
MESSAGE(server_failure, "ServerFailureInfo", NUMBER(server_failure, non_retryable, 1))
MESSAGE(failure, "Failure", TEXT(failure, message, 1) TEXT(failure, source, 2) TEXT(failure, stack_trace, 3)
        ONE(failure, cause, 4, failure) ONE(failure, application, 5, application_failure)
        ONE(failure, timeout, 6, timeout_failure) ONE(failure, canceled, 7, canceled_failure)
        ONE(failure, server, 9, server_failure) ONE(failure, encoded, 20, payload))

// ---- errors
MESSAGE(any, "Any", TEXT(any, type_url, 1) TEXT(any, value, 2))
MESSAGE(status, "Status", NUMBER(status, code, 1) TEXT(status, message, 2) MANY(status, details, 3, any))
MESSAGE(already_started, "WorkflowExecutionAlreadyStartedFailure", TEXT(already_started, start_request_id, 1)
        TEXT(already_started, run_id, 2))

// ---- the server and its namespaces
MESSAGE(system_capabilities, "GetSystemInfoResponse.Capabilities",
        NUMBER(system_capabilities, internal_error_differentiation, 2)
        NUMBER(system_capabilities, eager_workflow_start, 8))
MESSAGE(system_info, "GetSystemInfoResponse", TEXT(system_info, server_version, 1)
        ONE(system_info, capabilities, 2, system_capabilities))
MESSAGE(describe_namespace, "DescribeNamespaceRequest", TEXT(describe_namespace, namespace, 1))
MESSAGE(namespace_limits, "NamespaceInfo.Limits", NUMBER(namespace_limits, blob_size_error, 1)
        NUMBER(namespace_limits, memo_size_error, 2))
// state: 1: registered
MESSAGE(namespace_info, "NamespaceInfo", TEXT(namespace_info, name, 1) NUMBER(namespace_info, state, 2)
        TEXT(namespace_info, id, 6) ONE(namespace_info, limits, 8, namespace_limits))
MESSAGE(namespace_config, "NamespaceConfig", ONE(namespace_config, retention, 1, duration))
MESSAGE(namespace, "DescribeNamespaceResponse", ONE(namespace, info, 1, namespace_info)
        ONE(namespace, config, 2, namespace_config))
MESSAGE(register_namespace, "RegisterNamespaceRequest", TEXT(register_namespace, namespace, 1)
        TEXT(register_namespace, description, 2) ONE(register_namespace, retention, 4, duration))
MESSAGE(list_attributes, "ListSearchAttributesRequest", TEXT(list_attributes, namespace, 1))
// of map<string, enum>; value: 2: keyword
MESSAGE(attribute, "ListSearchAttributesResponse.CustomAttributesEntry", TEXT(attribute, key, 1)
        NUMBER(attribute, value, 2))
MESSAGE(attributes, "ListSearchAttributesResponse", MANY(attributes, custom, 1, attribute))

// ---- a client
MESSAGE(start, "StartWorkflowExecutionRequest", TEXT(start, namespace, 1) TEXT(start, workflow_id, 2)
        ONE(start, workflow_type, 3, name) ONE(start, task_queue, 4, queue) ONE(start, input, 5, payloads)
        ONE(start, execution_timeout, 6, duration) ONE(start, run_timeout, 7, duration)
        ONE(start, task_timeout, 8, duration) TEXT(start, identity, 9) TEXT(start, request_id, 10)
        NUMBER(start, reuse_policy, 11) ONE(start, memo, 14, fields) ONE(start, search_attributes, 15, fields)
        ONE(start, start_delay, 20, duration) NUMBER(start, conflict_policy, 22) ONE(start, user_metadata, 23, metadata))
// started: by this request id
MESSAGE(started, "StartWorkflowExecutionResponse", TEXT(started, run_id, 1) NUMBER(started, started, 3)
        NUMBER(started, status, 5))
MESSAGE(signal, "SignalWorkflowExecutionRequest", TEXT(signal, namespace, 1) ONE(signal, execution, 2, execution)
        TEXT(signal, signal_name, 3) ONE(signal, input, 4, payloads) TEXT(signal, identity, 5)
        TEXT(signal, request_id, 6))
MESSAGE(request_cancel, "RequestCancelWorkflowExecutionRequest", TEXT(request_cancel, namespace, 1)
        ONE(request_cancel, execution, 2, execution) TEXT(request_cancel, identity, 3)
        TEXT(request_cancel, request_id, 4) TEXT(request_cancel, first_run_id, 5) TEXT(request_cancel, reason, 6))
MESSAGE(terminate, "TerminateWorkflowExecutionRequest", TEXT(terminate, namespace, 1)
        ONE(terminate, execution, 2, execution) TEXT(terminate, reason, 3) ONE(terminate, details, 4, payloads)
        TEXT(terminate, identity, 5) TEXT(terminate, first_run_id, 6))
// of the same shape: a workflow that is to be deleted
MESSAGE(describe, "DescribeWorkflowExecutionRequest", TEXT(describe, namespace, 1)
        ONE(describe, execution, 2, execution))
MESSAGE(execution_info, "WorkflowExecutionInfo", ONE(execution_info, execution, 1, execution)
        ONE(execution_info, type, 2, name) ONE(execution_info, start_time, 3, duration)
        ONE(execution_info, close_time, 4, duration) NUMBER(execution_info, status, 5)
        NUMBER(execution_info, history_length, 6) ONE(execution_info, memo, 10, fields)
        TEXT(execution_info, task_queue, 13) NUMBER(execution_info, history_size_bytes, 15))
MESSAGE(pending_activity, "PendingActivityInfo", TEXT(pending_activity, activity_id, 1)
        ONE(pending_activity, type, 2, name) NUMBER(pending_activity, state, 3) NUMBER(pending_activity, attempt, 7))
MESSAGE(described, "DescribeWorkflowExecutionResponse", ONE(described, info, 2, execution_info)
        MANY(described, activities, 3, pending_activity))
MESSAGE(list_executions, "ListWorkflowExecutionsRequest", TEXT(list_executions, namespace, 1)
        NUMBER(list_executions, page_size, 2) TEXT(list_executions, next_page_token, 3)
        TEXT(list_executions, query, 4))
MESSAGE(executions, "ListWorkflowExecutionsResponse", MANY(executions, executions, 1, execution_info)
        TEXT(executions, next_page_token, 2))
MESSAGE(get_history, "GetWorkflowExecutionHistoryRequest", TEXT(get_history, namespace, 1)
        ONE(get_history, execution, 2, execution) NUMBER(get_history, maximum_page_size, 3)
        TEXT(get_history, next_page_token, 4) NUMBER(get_history, wait_new_event, 5)
        NUMBER(get_history, filter, 6))

// ---- history
MESSAGE(event_started, "WorkflowExecutionStartedEventAttributes", ONE(event_started, input, 6, payloads)
        TEXT(event_started, continued_run_id, 10) TEXT(event_started, original_run_id, 14)
        TEXT(event_started, first_run_id, 16))
MESSAGE(event_task_started, "WorkflowTaskStartedEventAttributes", NUMBER(event_task_started, scheduled_event_id, 1)
        NUMBER(event_task_started, suggest_continue_as_new, 4) NUMBER(event_task_started, history_size_bytes, 5))
MESSAGE(event_task_failed, "WorkflowTaskFailedEventAttributes", NUMBER(event_task_failed, cause, 3)
        ONE(event_task_failed, failure, 4, failure))
MESSAGE(event_activity_scheduled, "ActivityTaskScheduledEventAttributes",
        TEXT(event_activity_scheduled, activity_id, 1) ONE(event_activity_scheduled, type, 2, name))
MESSAGE(event_activity_completed, "ActivityTaskCompletedEventAttributes",
        ONE(event_activity_completed, result, 1, payloads) NUMBER(event_activity_completed, scheduled_event_id, 2))
MESSAGE(event_activity_failed, "ActivityTaskFailedEventAttributes", ONE(event_activity_failed, failure, 1, failure)
        NUMBER(event_activity_failed, scheduled_event_id, 2) NUMBER(event_activity_failed, retry_state, 5))
MESSAGE(event_activity_timed_out, "ActivityTaskTimedOutEventAttributes",
        ONE(event_activity_timed_out, failure, 1, failure) NUMBER(event_activity_timed_out, scheduled_event_id, 2)
        NUMBER(event_activity_timed_out, retry_state, 4))
// cancel requested
MESSAGE(event_activity_ref, "ActivityTaskCancelRequestedEventAttributes",
        NUMBER(event_activity_ref, scheduled_event_id, 1))
MESSAGE(event_activity_canceled, "ActivityTaskCanceledEventAttributes",
        ONE(event_activity_canceled, details, 1, payloads) NUMBER(event_activity_canceled, scheduled_event_id, 3))
// started, fired, cancelled
MESSAGE(event_timer, "TimerFiredEventAttributes", TEXT(event_timer, timer_id, 1))
MESSAGE(event_signaled, "WorkflowExecutionSignaledEventAttributes", TEXT(event_signaled, signal_name, 1)
        ONE(event_signaled, input, 2, payloads) TEXT(event_signaled, identity, 3) TEXT(event_signaled, request_id, 7))
MESSAGE(event_cancel_requested, "WorkflowExecutionCancelRequestedEventAttributes",
        TEXT(event_cancel_requested, cause, 1) TEXT(event_cancel_requested, identity, 4))
MESSAGE(event_terminated, "WorkflowExecutionTerminatedEventAttributes", TEXT(event_terminated, reason, 1)
        TEXT(event_terminated, identity, 3))
MESSAGE(event_continued, "WorkflowExecutionContinuedAsNewEventAttributes", TEXT(event_continued, new_run_id, 1))
// Of these one at most: the attributes of the type.; may_ignore: an event of a newer server that changes nothing
MESSAGE(event, "HistoryEvent", NUMBER(event, event_id, 1) ONE(event, time, 2, duration) NUMBER(event, type, 3)
        ONE(event, started, 6, event_started) ONE(event, task_started, 11, event_task_started)
        ONE(event, task_failed, 14, event_task_failed) ONE(event, activity_scheduled, 15, event_activity_scheduled)
        ONE(event, activity_completed, 17, event_activity_completed)
        ONE(event, activity_failed, 18, event_activity_failed)
        ONE(event, activity_timed_out, 19, event_activity_timed_out) ONE(event, timer_started, 20, event_timer)
        ONE(event, timer_fired, 21, event_timer) ONE(event, activity_cancel_requested, 22, event_activity_ref)
        ONE(event, activity_canceled, 23, event_activity_canceled) ONE(event, timer_canceled, 24, event_timer)
        ONE(event, signaled, 26, event_signaled) ONE(event, terminated, 27, event_terminated)
        ONE(event, cancel_requested, 28, event_cancel_requested) ONE(event, continued, 33, event_continued)
        NUMBER(event, may_ignore, 300))
MESSAGE(history, "History", MANY(history, events, 1, event))
// a History as bytes: a server may send these instead; encoding: 1: protocol buffers
MESSAGE(blob, "DataBlob", NUMBER(blob, encoding, 1) TEXT(blob, data, 2))
MESSAGE(history_page, "GetWorkflowExecutionHistoryResponse", ONE(history_page, history, 1, history)
        MANY(history_page, raw, 2, blob) TEXT(history_page, next_page_token, 3))

// ---- a worker for workflow tasks
// of both kinds of tasks
MESSAGE(poll, "PollWorkflowTaskQueueRequest", TEXT(poll, namespace, 1) ONE(poll, task_queue, 2, queue)
        TEXT(poll, identity, 3))
MESSAGE(query, "WorkflowQuery", TEXT(query, query_type, 1))
// query: this task only asks
MESSAGE(workflow_task, "PollWorkflowTaskQueueResponse", TEXT(workflow_task, task_token, 1)
        ONE(workflow_task, execution, 2, execution) ONE(workflow_task, type, 3, name)
        NUMBER(workflow_task, previous_started_event_id, 4) NUMBER(workflow_task, started_event_id, 5)
        NUMBER(workflow_task, attempt, 6) ONE(workflow_task, history, 8, history)
        TEXT(workflow_task, next_page_token, 9) ONE(workflow_task, query, 10, query))
MESSAGE(schedule_activity, "ScheduleActivityTaskCommandAttributes", TEXT(schedule_activity, activity_id, 1)
        ONE(schedule_activity, type, 2, name) ONE(schedule_activity, task_queue, 4, queue)
        ONE(schedule_activity, input, 6, payloads) ONE(schedule_activity, schedule_to_close, 7, duration)
        ONE(schedule_activity, schedule_to_start, 8, duration) ONE(schedule_activity, start_to_close, 9, duration)
        ONE(schedule_activity, heartbeat, 10, duration) ONE(schedule_activity, retry, 11, retry))
MESSAGE(start_timer, "StartTimerCommandAttributes", TEXT(start_timer, timer_id, 1)
        ONE(start_timer, fires_after, 2, duration))
MESSAGE(complete_workflow, "CompleteWorkflowExecutionCommandAttributes", ONE(complete_workflow, result, 1, payloads))
MESSAGE(fail_workflow, "FailWorkflowExecutionCommandAttributes", ONE(fail_workflow, failure, 1, failure))
MESSAGE(cancel_activity, "RequestCancelActivityTaskCommandAttributes", NUMBER(cancel_activity, scheduled_event_id, 1))
MESSAGE(cancel_timer, "CancelTimerCommandAttributes", TEXT(cancel_timer, timer_id, 1))
MESSAGE(cancel_workflow, "CancelWorkflowExecutionCommandAttributes", ONE(cancel_workflow, details, 1, payloads))
// initiator: 1: the workflow itself
MESSAGE(continue_workflow, "ContinueAsNewWorkflowExecutionCommandAttributes", ONE(continue_workflow, type, 1, name)
        ONE(continue_workflow, task_queue, 2, queue) ONE(continue_workflow, input, 3, payloads)
        ONE(continue_workflow, task_timeout, 5, duration) NUMBER(continue_workflow, initiator, 8)
        ONE(continue_workflow, memo, 13, fields) ONE(continue_workflow, search_attributes, 14, fields))
// Of these exactly one.
MESSAGE(command, "Command", NUMBER(command, type, 1) ONE(command, schedule_activity, 2, schedule_activity)
        ONE(command, start_timer, 3, start_timer) ONE(command, complete, 4, complete_workflow)
        ONE(command, fail, 5, fail_workflow) ONE(command, cancel_activity, 6, cancel_activity)
        ONE(command, cancel_timer, 7, cancel_timer) ONE(command, cancel, 8, cancel_workflow)
        ONE(command, continue_as_new, 11, continue_workflow) ONE(command, user_metadata, 301, metadata))
MESSAGE(sticky, "StickyExecutionAttributes", ONE(sticky, queue, 1, queue) ONE(sticky, schedule_to_start, 2, duration))
MESSAGE(respond_workflow, "RespondWorkflowTaskCompletedRequest", TEXT(respond_workflow, task_token, 1)
        MANY(respond_workflow, commands, 2, command) TEXT(respond_workflow, identity, 3) ONE(respond_workflow, sticky, 4, sticky)
        NUMBER(respond_workflow, force_new_task, 6) TEXT(respond_workflow, namespace, 9))
// cause: 14: the worker failed
MESSAGE(fail_workflow_task, "RespondWorkflowTaskFailedRequest", TEXT(fail_workflow_task, task_token, 1)
        NUMBER(fail_workflow_task, cause, 2) ONE(fail_workflow_task, failure, 3, failure)
        TEXT(fail_workflow_task, identity, 4) TEXT(fail_workflow_task, namespace, 6))
// completed_type: 1: answered, 2: failed
MESSAGE(respond_query, "RespondQueryTaskCompletedRequest", TEXT(respond_query, task_token, 1)
        NUMBER(respond_query, completed_type, 2) ONE(respond_query, result, 3, payloads)
        TEXT(respond_query, error_message, 4) TEXT(respond_query, namespace, 6))

// ---- a worker for activities
MESSAGE(activity_task, "PollActivityTaskQueueResponse", TEXT(activity_task, task_token, 1)
        ONE(activity_task, execution, 4, execution) ONE(activity_task, type, 5, name)
        TEXT(activity_task, activity_id, 6) ONE(activity_task, input, 8, payloads) NUMBER(activity_task, attempt, 13)
        ONE(activity_task, start_to_close, 15, duration) ONE(activity_task, heartbeat, 16, duration))
MESSAGE(complete_activity, "RespondActivityTaskCompletedRequest", TEXT(complete_activity, task_token, 1)
        ONE(complete_activity, result, 2, payloads) TEXT(complete_activity, identity, 3)
        TEXT(complete_activity, namespace, 4))
MESSAGE(fail_activity, "RespondActivityTaskFailedRequest", TEXT(fail_activity, task_token, 1)
        ONE(fail_activity, failure, 2, failure) TEXT(fail_activity, identity, 3) TEXT(fail_activity, namespace, 4))
// of the same shape: an activity that was cancelled
MESSAGE(heartbeat, "RecordActivityTaskHeartbeatRequest", TEXT(heartbeat, task_token, 1)
        ONE(heartbeat, details, 2, payloads) TEXT(heartbeat, identity, 3) TEXT(heartbeat, namespace, 4))
MESSAGE(heartbeat_answer, "RecordActivityTaskHeartbeatResponse", NUMBER(heartbeat_answer, cancel_requested, 1)
        NUMBER(heartbeat_answer, activity_paused, 2) NUMBER(heartbeat_answer, activity_reset, 3))
