"""The operations and the answers of the HTTP interface, made by clients/generate.py from its own description. Do not edit."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, Mapping, Optional, TypedDict, Union


Name = str

Text = str

Parameter = str

LetterPage = TypedDict("LetterPage", {
    "items": List[Dict[str, Any]],
}, total=True)

Limit = int

Time = str

_Problem = TypedDict("_Problem", {
    "type": str,
    "title": str,
    "status": int,
    "code": str,
}, total=True)


class Problem(_Problem, total=False):
    detail: str
    hint: str
    instance: str
    requestId: str
    retryable: bool
    errors: List[Dict[str, Any]]

StoredRun = TypedDict("StoredRun", {
    "runId": str,
    "tenantId": str,
    "status": str,
    "vocabulary": str,
    "lastSeq": int,
    "ledgerSeq": int,
    "head": str,
    "ledgerHead": str,
    "document": str,
    "terminal": bool,
    "owned": bool,
    "position": int,
}, total=True)

StoredRuns = TypedDict("StoredRuns", {
    "items": List["StoredRun"],
    "next": int,
}, total=True)

QueueConfig = TypedDict("QueueConfig", {
    "policy": Literal["REJECT", "QUEUE", "DELAY"],
    "maxRunning": int,
    "maxQueued": int,
    "delayMs": int,
    "priority": int,
    "paused": bool,
}, total=False)

ScheduleSpec = TypedDict("ScheduleSpec", {
    "cron": str,
    "every": str,
    "offset": str,
    "at": str,
    "zone": str,
    "gap": Literal["run", "skip"],
    "fold": Literal["once", "twice", "skip"],
    "from": str,
    "until": str,
    "jitter": str,
    "catchup": str,
    "overlap": Literal["skip", "queue", "cancel", "allow"],
    "queued": int,
    "inputs": Dict[str, Any],
    "queue": str,
}, total=False)

ScheduleConfig = TypedDict("ScheduleConfig", {
    "document": Union[Dict[str, Any], str],
    "file": str,
    "parts": "Parts",
    "planRef": "PlanRef",
    "schedule": "ScheduleSpec",
    "projectId": str,
    "environmentId": str,
    "paused": bool,
}, total=False)

_Fire = TypedDict("_Fire", {
    "time": "Time",
    "local": str,
}, total=True)


class Fire(_Fire, total=False):
    mark: Literal["gap", "first", "second"]

FirePage = TypedDict("FirePage", {
    "items": List["Fire"],
}, total=True)

_Tick = TypedDict("_Tick", {
    "time": "Time",
    "kind": Literal["fire", "trigger", "backfill"],
    "outcome": Literal["STARTED", "QUEUED", "SKIPPED", "FAILED"],
    "decidedAt": "Time",
}, total=True)


class Tick(_Tick, total=False):
    until: "Time"
    count: int
    reasonCode: str
    detail: str
    runId: str

TickPage = TypedDict("TickPage", {
    "items": List["Tick"],
}, total=True)

_Schedule = TypedDict("_Schedule", {
    "name": str,
}, total=True)


class Schedule(_Schedule, total=False):
    projectId: str
    environmentId: str
    schedule: "ScheduleSpec"
    plan: Dict[str, Any]
    paused: bool
    pausedBy: str
    pausedReason: str
    zone: str
    decidedUntil: "Time"
    waiting: List["Time"]
    lastTick: "Tick"
    next: List["Fire"]
    error: str
    createdAt: "Time"
    createdBy: str
    updatedAt: "Time"
    updatedBy: str

SchedulePage = TypedDict("SchedulePage", {
    "items": List["Schedule"],
}, total=True)

_NewEvent = TypedDict("_NewEvent", {
    "name": str,
}, total=True)


class NewEvent(_NewEvent, total=False):
    id: str
    correlation: str
    data: Any
    source: str
    projectId: str
    environmentId: str

_IncomingEvent = TypedDict("_IncomingEvent", {
    "id": str,
    "name": str,
    "state": Literal["KEPT", "GIVEN", "DELIVERED"],
    "receivedAt": str,
}, total=True)


class IncomingEvent(_IncomingEvent, total=False):
    correlation: str
    data: Any
    source: str
    projectId: str
    environmentId: str
    runId: str
    stepId: str
    tries: int
    changedAt: str
    receivedBy: str

IncomingEventPage = TypedDict("IncomingEventPage", {
    "items": List["IncomingEvent"],
}, total=True)

ScheduleTrigger = TypedDict("ScheduleTrigger", {
    "inputs": Dict[str, Any],
    "reason": str,
}, total=False)

_NewBackfill = TypedDict("_NewBackfill", {
    "from": str,
    "to": str,
}, total=True)


class NewBackfill(_NewBackfill, total=False):
    order: Literal["oldest", "newest"]
    limit: int
    parallel: int
    dryRun: bool
    reason: str

Backfill = TypedDict("Backfill", {
    "id": str,
    "schedule": str,
    "from": str,
    "to": str,
    "order": str,
    "parallel": int,
    "dryRun": bool,
    "count": int,
    "inRange": int,
    "times": List["Fire"],
    "begun": int,
    "status": Literal["RUNNING", "DONE"],
    "reason": str,
    "createdBy": str,
    "createdAt": "Time",
}, total=False)

BackfillPage = TypedDict("BackfillPage", {
    "items": List["Backfill"],
}, total=True)

_Queue = TypedDict("_Queue", {
    "name": str,
    "policy": Literal["REJECT", "QUEUE", "DELAY"],
    "maxRunning": int,
    "maxQueued": int,
    "delayMs": int,
    "priority": int,
    "paused": bool,
    "running": int,
    "queued": int,
}, total=True)


class Queue(_Queue, total=False):
    oldestQueuedAt: "Time"

QueuePage = TypedDict("QueuePage", {
    "items": List["Queue"],
}, total=True)

ReconcilePage = TypedDict("ReconcilePage", {
    "items": List[Dict[str, Any]],
}, total=True)

LimitsConfig = TypedDict("LimitsConfig", {
    "runsInFlight": int,
    "startsPerSecond": int,
}, total=False)

Limits = TypedDict("Limits", {
    "runsInFlight": int,
    "startsPerSecond": int,
    "runsNow": int,
}, total=True)

StepLimitConfig = TypedDict("StepLimitConfig", {
    "concurrency": int,
    "rate": str,
}, total=False)

_StepLimit = TypedDict("_StepLimit", {
    "name": str,
    "set": bool,
    "inUse": int,
    "waiting": int,
}, total=True)


class StepLimit(_StepLimit, total=False):
    concurrency: int
    rate: str
    startsInRate: int
    holders: List[Dict[str, Any]]

StepLimitPage = TypedDict("StepLimitPage", {
    "items": List["StepLimit"],
}, total=True)

RunReference = TypedDict("RunReference", {
    "ref": Union[Dict[str, Any], str],
}, total=True)

_CancelByReference = TypedDict("_CancelByReference", {
    "ref": Union[Dict[str, Any], str],
}, total=True)


class CancelByReference(_CancelByReference, total=False):
    reason: str
    signalId: str

SignalByReference = TypedDict("SignalByReference", {
    "ref": Union[Dict[str, Any], str],
    "signal": "Signal",
}, total=True)

ResolvedRun = TypedDict("ResolvedRun", {
    "runId": str,
    "status": str,
    "tenantId": str,
    "projectId": str,
    "environmentId": str,
    "planId": str,
    "planVersion": str,
    "ref": Dict[str, Any],
}, total=True)

_Principal = TypedDict("_Principal", {
    "id": str,
    "roles": List[str],
}, total=True)


class Principal(_Principal, total=False):
    tenantId: str
    projects: List[str]
    environments: List[str]
    pool: str
    operations: List[str]
    sessionExpiresAt: "Time"
    payloads: bool
    expiresAt: "Time"

NewSession = TypedDict("NewSession", {
    "token": str,
    "ticket": str,
}, total=False)

Session = TypedDict("Session", {
    "id": str,
    "key": str,
    "expiresAt": "Time",
    "principal": "Principal",
}, total=True)

Ticket = TypedDict("Ticket", {
    "ticket": str,
    "expiresAt": "Time",
}, total=True)

SignIn = TypedDict("SignIn", {
    "methods": List[Dict[str, Any]],
}, total=True)

_Capabilities = TypedDict("_Capabilities", {
    "provider": Literal["cairn", "temporal", "conductor", "mock"],
    "documents": List[str],
    "schemaVersions": List[str],
}, total=True)


class Capabilities(_Capabilities, total=False):
    providers: List[str]
    capabilities: List[Dict[str, Any]]
    hosts: List[Dict[str, Any]]

_PlanRef = TypedDict("_PlanRef", {
    "uri": str,
    "sha256": str,
    "schemaVersion": str,
    "planId": str,
    "planVersion": str,
}, total=True)


class PlanRef(_PlanRef, total=False):
    sizeBytes: int
    expiresAt: "Time"
    compression: Literal["gzip", "none"]

_SinkPage = TypedDict("_SinkPage", {
    "items": List[Dict[str, Any]],
}, total=True)


class SinkPage(_SinkPage, total=False):
    carriedBy: Dict[str, Any]

StartRun = TypedDict("StartRun", {
    "document": Union[Dict[str, Any], str],
    "file": str,
    "parts": "Parts",
    "planRef": "PlanRef",
    "context": Dict[str, Any],
    "inputs": Dict[str, Any],
    "input": Dict[str, Any],
    "arguments": str,
    "runRequestId": str,
    "queue": str,
    "runId": str,
    "projectId": str,
    "environmentId": str,
    "tenantId": str,
    "targetAdapter": str,
    "cancelOnPause": bool,
    "drainTimeoutMs": int,
    "triggerSource": Literal["manual", "schedule", "webhook", "api"],
}, total=False)

_RunStatus = TypedDict("_RunStatus", {
    "runId": str,
    "status": Literal["PENDING", "APPROVED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"],
}, total=True)


class RunStatus(_RunStatus, total=False):
    substatus: str
    message: str
    startedAt: "Time"
    completedAt: "Time"
    engineRunRef: str
    ref: Dict[str, Any]
    lastEventSeq: int

Engines = TypedDict("Engines", {
    "items": List[Dict[str, Any]],
    "nextCursor": "Cursor",
    "count": int,
    "several": bool,
    "version": str,
    "startedAt": "Time",
    "ready": bool,
    "turnedMs": int,
    "storedMs": int,
    "callsWaiting": int,
    "projectorLagMs": int,
    "hosts": List[Dict[str, Any]],
}, total=True)

_StoreUsage = TypedDict("_StoreUsage", {
    "kind": str,
    "runs": int,
    "status": Dict[str, Any],
    "events": int,
    "ledgerEntries": int,
    "eventsPerDay": int,
    "usage": List[Dict[str, Any]],
    "biggest": List[Dict[str, Any]],
    "days": List[Dict[str, Any]],
}, total=True)


class StoreUsage(_StoreUsage, total=False):
    children: int
    removed: int
    oldest: Union[None, str]
    newest: Union[None, str]

_Headline = TypedDict("_Headline", {
    "state": str,
    "text": str,
    "parts": List["HeadlinePart"],
}, total=True)


class Headline(_Headline, total=False):
    detail: str
    by: str
    role: str
    due: "Time"
    brief: bool

_HeadlinePart = TypedDict("_HeadlinePart", {
    "state": str,
    "step": str,
}, total=True)


class HeadlinePart(_HeadlinePart, total=False):
    count: int
    attempt: int
    attempts: int
    code: str
    due: "Time"

_RunRow = TypedDict("_RunRow", {
    "runId": str,
    "status": str,
    "planId": str,
    "planVersion": str,
    "lastSeq": int,
}, total=True)


class RunRow(_RunRow, total=False):
    substatus: Union[None, str]
    name: Union[None, str]
    progress: str
    completed: int
    failed: int
    skipped: int
    total: int
    running: int
    createdAt: Union[None, str]
    startedAt: Union[None, str]
    endedAt: Union[None, str]
    durationMs: Union[None, int]
    cause: Union[None, str]
    headline: Any
    tenantId: str
    projectId: str
    environmentId: str
    parentRunId: Union[None, str]
    originalRunId: Union[None, str]
    ownerPid: Union[None, int]

Count = TypedDict("Count", {
    "count": int,
}, total=True)

Cursor = Union[None, str]

_RunPage = TypedDict("_RunPage", {
    "items": List["RunRow"],
    "nextCursor": "Cursor",
}, total=True)


class RunPage(_RunPage, total=False):
    total: int
    totalIs: Literal["exact", "atLeast"]

_RunSnapshot = TypedDict("_RunSnapshot", {
    "runId": str,
    "status": Literal["PENDING", "APPROVED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"],
    "lastEventSeq": int,
    "steps": List["Step"],
}, total=True)


class RunSnapshot(_RunSnapshot, total=False):
    tenantId: str
    projectId: str
    environmentId: str
    planId: str
    planVersion: str
    name: str
    substatus: str
    segment: Dict[str, Any]
    engineRunRef: str
    planRef: Dict[str, Any]
    documentSha256: str
    queuedAt: "Time"
    startedAt: "Time"
    completedAt: "Time"
    updatedAt: "Time"
    totalDurationMs: int
    runningSteps: int
    completedSteps: int
    failedSteps: int
    skippedSteps: int
    totalSteps: int
    rootCause: Dict[str, Any]
    cancelReason: str
    pauseReason: str
    message: str
    stale: bool
    inconsistent: bool
    forkedFrom: Dict[str, Any]
    originalRunId: str
    parentRunId: str
    parentStepId: str
    artifacts: List[Dict[str, Any]]
    hash: "Sha256"
    queue: "QueuePlace"

_Step = TypedDict("_Step", {
    "stepId": str,
    "status": Literal["PENDING", "RUNNING", "SUCCESS", "FAILED", "SKIPPED"],
    "logicalAttemptId": int,
    "artifacts": List[Dict[str, Any]],
}, total=True)


class Step(_Step, total=False):
    engineAttemptId: int
    startedAt: "Time"
    completedAt: "Time"
    durationMs: int
    dueAt: "Time"
    error: "Fault"
    awaitedEvent: Dict[str, Any]
    retrying: bool
    held: bool
    skipReason: str
    skipDetail: str
    result: Any
    resultRef: Dict[str, Any]
    childRunId: str
    reusedFrom: str
    truncated: bool
    actor: str
    iteration: int
    place: "Place"
    attempts: List["Attempt"]

StepPage = TypedDict("StepPage", {
    "items": List["Step"],
    "nextCursor": "Cursor",
}, total=True)

EventPage = TypedDict("EventPage", {
    "items": List[Dict[str, Any]],
    "nextCursor": "Cursor",
}, total=True)

Parts = List[Dict[str, Any]]

Rewind = TypedDict("Rewind", {
    "position": int,
    "runId": str,
    "seq": int,
    "reason": str,
}, total=False)

RunId = str

Reason = str

StepNames = List["Name"]

Outputs = Dict[str, Any]

ForkRun = TypedDict("ForkRun", {
    "fromSeq": int,
    "document": str,
    "file": str,
    "parts": "Parts",
    "planRef": "PlanRef",
    "inputs": Dict[str, Any],
    "outputs": "Outputs",
    "from": "StepNames",
    "runId": "RunId",
    "reason": "Reason",
}, total=False)

ReasonOnly = TypedDict("ReasonOnly", {
    "reason": str,
}, total=False)

_Redrive = TypedDict("_Redrive", {
    "sink": str,
}, total=True)


class Redrive(_Redrive, total=False):
    runId: str
    reason: str

RerunRun = TypedDict("RerunRun", {
    "document": str,
    "file": str,
    "parts": "Parts",
    "planRef": "PlanRef",
    "inputs": Dict[str, Any],
    "outputs": "Outputs",
    "from": "StepNames",
    "runId": "RunId",
    "reason": "Reason",
}, total=False)

_RetryRun = TypedDict("_RetryRun", {
    "stepId": "Name",
}, total=True)


class RetryRun(_RetryRun, total=False):
    inputs: Dict[str, Any]
    runId: "RunId"
    reason: "Reason"

ForkPreview = TypedDict("ForkPreview", {
    "how": Literal["fork", "rerun", "retry"],
    "source": Dict[str, Any],
    "document": Dict[str, Any],
    "inputsChanged": List[str],
    "steps": List[Dict[str, Any]],
    "gone": List[str],
    "endsAtOnce": bool,
}, total=True)

Sha256 = str

Nothing = Dict[str, Any]

_Definition = TypedDict("_Definition", {
    "tenantId": str,
    "projectId": str,
    "environmentId": str,
    "name": str,
    "sha256": "Sha256",
    "planId": str,
    "planVersion": str,
    "uri": str,
    "createdAt": "Time",
}, total=True)


class Definition(_Definition, total=False):
    schemaVersion: str
    sizeBytes: int
    createdBy: str
    approvedAt: "Time"
    approvedBy: str

DefinitionPage = TypedDict("DefinitionPage", {
    "items": List["Definition"],
    "nextCursor": "Cursor",
}, total=True)

_Payload = TypedDict("_Payload", {
    "runId": str,
    "inputs": Dict[str, Any],
}, total=True)


class Payload(_Payload, total=False):
    arguments: str

Graph = TypedDict("Graph", {
    "planId": str,
    "planVersion": str,
    "documentKind": Literal["plan", "nodes", "playbook"],
    "steps": List[Dict[str, Any]],
    "arcs": List[Dict[str, Any]],
}, total=True)

_StepInputs = TypedDict("_StepInputs", {
    "runId": str,
    "stepId": str,
}, total=True)


class StepInputs(_StepInputs, total=False):
    attempt: int
    source: Any
    rendered: Any
    env: Dict[str, Any]
    why: str
    visit: int
    given: List[Dict[str, Any]]
    ahead: List[Dict[str, Any]]
    leftOut: int

StepOutput = TypedDict("StepOutput", {
    "stepId": str,
    "result": Any,
    "truncated": bool,
}, total=True)

_Fault = TypedDict("_Fault", {
    "code": str,
    "message": str,
    "retryable": bool,
}, total=True)


class Fault(_Fault, total=False):
    category: str
    detail: str
    exitCode: int

_Holder = TypedDict("_Holder", {
    "runId": str,
}, total=True)


class Holder(_Holder, total=False):
    stepId: str
    since: "Time"

_Place = TypedDict("_Place", {
    "stepId": str,
    "logicalAttemptId": int,
    "engineAttemptId": int,
    "state": Literal["QUEUED", "EXECUTING"],
}, total=True)


class Place(_Place, total=False):
    since: "Time"
    pool: str
    worker: str
    position: int
    slots: int
    workers: int
    holders: List["Holder"]
    others: int

_QueuePlace = TypedDict("_QueuePlace", {
    "name": str,
    "position": int,
    "waiting": int,
    "running": int,
    "limitedBy": Literal["PAUSED", "QUEUE", "TENANT", "SERVICE", "TURN"],
}, total=True)


class QueuePlace(_QueuePlace, total=False):
    limit: int
    paused: bool
    holders: List["Holder"]
    others: int

_Places = TypedDict("_Places", {
    "runId": str,
    "attempts": List["Place"],
}, total=True)


class Places(_Places, total=False):
    queue: "QueuePlace"

_Attempt = TypedDict("_Attempt", {
    "logicalAttemptId": int,
    "engineAttemptId": int,
}, total=True)


class Attempt(_Attempt, total=False):
    startedAt: "Time"
    endedAt: "Time"
    durationMs: int
    error: "Fault"

AttemptPage = TypedDict("AttemptPage", {
    "items": List["Attempt"],
    "nextCursor": "Cursor",
}, total=True)

_Artifact = TypedDict("_Artifact", {
    "name": str,
    "stepId": str,
    "sizeBytes": int,
    "state": Literal["ok", "changed", "missing", "expired"],
}, total=True)


class Artifact(_Artifact, total=False):
    kind: str
    sha256: "Sha256"
    expiresAt: "Time"

ArtifactPage = TypedDict("ArtifactPage", {
    "items": List["Artifact"],
    "nextCursor": "Cursor",
}, total=True)

Checkpoint = TypedDict("Checkpoint", {
    "tenantId": str,
    "runId": str,
    "lastSeq": int,
    "head": "Sha256",
    "lastLedgerSeq": int,
    "ledgerHead": "Sha256",
    "at": "Time",
}, total=True)

Proof = TypedDict("Proof", {
    "checkpoint": "Checkpoint",
    "verified": bool,
    "faults": List[Dict[str, Any]],
    "signature": str,
    "keyId": "Sha256",
    "publicKey": str,
}, total=True)

Why = Dict[str, Any]

Signal = TypedDict("Signal", {
    "signalId": str,
    "signalType": str,
    "type": str,
    "payload": Dict[str, Any],
    "stepId": str,
    "reason": str,
    "requestedAt": str,
}, total=False)

_Decision = TypedDict("_Decision", {
    "signalId": str,
    "signalType": str,
    "decision": Literal["ACCEPTED", "REJECTED", "REVISION_REQUIRED"],
}, total=True)


class Decision(_Decision, total=False):
    policyDecisionId: str
    runId: str
    newRunId: str
    causedSeq: int

DecisionRecord = Dict[str, Any]

DecisionPage = TypedDict("DecisionPage", {
    "items": List["DecisionRecord"],
    "nextCursor": "Cursor",
}, total=True)

_ValidateDocument = TypedDict("_ValidateDocument", {
    "document": Union[Dict[str, Any], str],
}, total=True)


class ValidateDocument(_ValidateDocument, total=False):
    file: str
    parts: "Parts"
    targetAdapter: str

_DrawDocument = TypedDict("_DrawDocument", {
    "document": Union[Dict[str, Any], str],
}, total=True)


class DrawDocument(_DrawDocument, total=False):
    file: str
    parts: "Parts"

ValidationReport = TypedDict("ValidationReport", {
    "status": Literal["VALID", "WARNINGS", "ERRORS"],
}, total=True)

_NewToken = TypedDict("_NewToken", {
    "roles": List[str],
}, total=True)


class NewToken(_NewToken, total=False):
    name: str
    tenantId: str
    projects: List[str]
    environments: List[str]
    audience: str
    pool: str
    expiresAt: "Time"
    replaces: str

TokenText = TypedDict("TokenText", {
    "id": str,
    "token": str,
}, total=True)

_Token = TypedDict("_Token", {
    "id": str,
    "roles": List[str],
}, total=True)


class Token(_Token, total=False):
    name: str
    tenantId: str
    pool: str
    audience: str
    projects: List[str]
    environments: List[str]
    createdBy: str
    createdAt: "Time"
    expiresAt: "Time"
    revokedAt: "Time"

TokenPage = TypedDict("TokenPage", {
    "items": List["Token"],
    "nextCursor": "Cursor",
}, total=True)

_AuditRecord = TypedDict("_AuditRecord", {
    "seq": int,
    "auditId": str,
    "timestamp": "Time",
    "action": str,
    "decision": Literal["GRANTED", "DENIED", "COMPLETED", "FAILED"],
    "previousHash": "Sha256",
}, total=True)


class AuditRecord(_AuditRecord, total=False):
    tenantId: str
    projectId: str
    environmentId: str
    engineAttemptId: int
    logicalAttemptId: int
    actor: Dict[str, Any]
    resource: Dict[str, Any]
    reason: Dict[str, Any]
    context: Dict[str, Any]
    details: Dict[str, Any]

AuditPage = TypedDict("AuditPage", {
    "items": List["AuditRecord"],
    "nextCursor": "Cursor",
}, total=True)

_AuditReport = TypedDict("_AuditReport", {
    "tenantId": str,
    "records": int,
    "headHash": str,
    "intact": bool,
}, total=True)


class AuditReport(_AuditReport, total=False):
    fault: Dict[str, Any]

WorkerName = str

TaskToken = str

TaskEpoch = int

_WorkerPoll = TypedDict("_WorkerPoll", {
    "worker": "WorkerName",
}, total=True)


class WorkerPoll(_WorkerPoll, total=False):
    tenant: str
    pool: str
    kinds: List[str]
    max: int
    waitMs: int
    slots: int
    draining: bool

_WorkerHeartbeat = TypedDict("_WorkerHeartbeat", {
    "worker": "WorkerName",
    "tasks": List[Dict[str, Any]],
}, total=True)


class WorkerHeartbeat(_WorkerHeartbeat, total=False):
    tenant: str
    pool: str
    waitMs: int

_WorkerLogs = TypedDict("_WorkerLogs", {
    "worker": "WorkerName",
    "chunks": List[Any],
}, total=True)


class WorkerLogs(_WorkerLogs, total=False):
    tenant: str
    pool: str

_WorkerChunk = TypedDict("_WorkerChunk", {
    "token": "TaskToken",
    "epoch": "TaskEpoch",
    "stream": Literal["stdout", "stderr"],
    "text": str,
}, total=True)


class WorkerChunk(_WorkerChunk, total=False):
    offset: int

_WorkerResults = TypedDict("_WorkerResults", {
    "worker": "WorkerName",
    "results": List[Any],
}, total=True)


class WorkerResults(_WorkerResults, total=False):
    tenant: str
    pool: str

_WorkerFault = TypedDict("_WorkerFault", {
    "code": str,
    "message": str,
}, total=True)


class WorkerFault(_WorkerFault, total=False):
    category: Literal["infrastructure", "business", "validation", "timeout"]
    detail: str
    retryable: bool
    exitCode: int

WorkerResult = Dict[str, Any]

_WorkerFailure = TypedDict("_WorkerFailure", {
    "token": "TaskToken",
    "epoch": "TaskEpoch",
    "error": "WorkerFault",
}, total=True)


class WorkerFailure(_WorkerFailure, total=False):
    durationMs: int

_WorkerEvents = TypedDict("_WorkerEvents", {
    "worker": "WorkerName",
    "token": "TaskToken",
    "epoch": "TaskEpoch",
    "events": List[Any],
}, total=True)


class WorkerEvents(_WorkerEvents, total=False):
    tenant: str
    pool: str
    producer: str

_WorkerEvent = TypedDict("_WorkerEvent", {
    "event_id": "WorkerEventId",
    "event_type": str,
    "timestamp": "WorkerTime",
    "execution_id": "EntityId",
}, total=True)


class WorkerEvent(_WorkerEvent, total=False):
    event_alias: str
    name: str
    source: Any
    entity_type: Literal["playbook", "workflow", "step", "task", "loop", "next", "policy", "result"]
    entity_id: "EntityId"
    parent_id: "EntityId"
    seq: int
    workflow_run_id: "EntityId"
    step_run_id: str
    task_run_id: "EntityId"
    iteration: int
    iteration_id: "EntityId"
    attempt: int
    status: Literal["in_progress", "success", "error", "skipped", "paused"]
    duration_ms: int
    payload: "WorkerEventPayload"

_OldWorkerEvent = TypedDict("_OldWorkerEvent", {
    "event_id": "WorkerEventId",
    "execution_id": "EntityId",
}, total=True)


class OldWorkerEvent(_OldWorkerEvent, total=False):
    event_type: str
    name: str
    timestamp: "WorkerTime"
    status: str
    iteration: int
    attempt: int
    duration_ms: float
    payload: Dict[str, Any]

WorkerEventId = str

EntityId = str

WorkerTime = str

_WorkerOutcome = TypedDict("_WorkerOutcome", {
    "status": Literal["ok", "error"],
}, total=True)


class WorkerOutcome(_WorkerOutcome, total=False):
    error: Dict[str, Any]
    meta: Dict[str, Any]

WorkerEventPayload = TypedDict("WorkerEventPayload", {
    "outcome": "WorkerOutcome",
    "result_ref": Dict[str, Any],
    "error": Dict[str, Any],
    "meta": Dict[str, Any],
}, total=False)

WorkerAnswer = Dict[str, Any]

WorkerPage = TypedDict("WorkerPage", {
    "items": List[Dict[str, Any]],
}, total=True)

Alert = Dict[str, Any]

AlertPage = TypedDict("AlertPage", {
    "items": List[Dict[str, Any]],
}, total=True)


class Operations:
    """One method for each operation; what they have in common is `_operation` of the client."""

    def _operation(self, method: str, path: str, places: Mapping[str, str], *, query: Optional[Mapping[str, Any]] = None,
                   headers: Optional[Mapping[str, Any]] = None, body: Any = None, content: Optional[bytes] = None) -> Any:
        raise NotImplementedError

    def get_livez(self) -> bytes:
        """The process lives."""
        return self._operation("GET", "/livez", {})

    def get_readyz(self, *, verbose: Optional[Union[str, int, bool]] = None) -> bytes:
        """The store can be written and the engine turns."""
        return self._operation("GET", "/readyz", {}, query={"verbose": verbose})

    def get_startupz(self) -> bytes:
        """It has started."""
        return self._operation("GET", "/startupz", {})

    def get_metrics(self) -> bytes:
        """Prometheus metrics."""
        return self._operation("GET", "/metrics", {})

    def get_openapi_json(self) -> bytes:
        """This description."""
        return self._operation("GET", "/openapi.json", {})

    def get_schemas_by_name(self, name: str) -> bytes:
        """A JSON Schema of documents, events or signals."""
        return self._operation("GET", "/schemas/{name}", {"name": name})

    def get_whoami(self) -> "Principal":
        """Who the token stands for."""
        return self._operation("GET", "/v1/whoami", {})

    def post_session(self, body: "NewSession") -> "Session":
        """Sign in with a browser: a token or a ticket becomes a cookie and a key."""
        return self._operation("POST", "/v1/session", {}, body=body)

    def delete_session(self) -> bytes:
        """Sign out: the session is over everywhere."""
        return self._operation("DELETE", "/v1/session", {})

    def post_tickets(self) -> "Ticket":
        """A ticket for one sign-in with a browser, within two minutes."""
        return self._operation("POST", "/v1/tickets", {})

    def get_auth(self) -> "SignIn":
        """Ways to sign in."""
        return self._operation("GET", "/v1/auth", {})

    def get_capabilities(self) -> "Capabilities":
        """What this engine can do."""
        return self._operation("GET", "/v1/capabilities", {})

    def get_runs(self, *, q: Optional[Union[str, int, bool]] = None, status: Optional[Union[str, int, bool]] = None, plan: Optional[Union[str, int, bool]] = None, tag: Optional[Union[str, int, bool]] = None, started_after: Optional[Union[str, int, bool]] = None, started_before: Optional[Union[str, int, bool]] = None, sort: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None, fields: Optional[Union[str, int, bool]] = None, count: Optional[Union[str, int, bool]] = None) -> "RunPage":
        """Runs, newest first."""
        return self._operation("GET", "/v1/runs", {}, query={"q": q, "status": status, "plan": plan, "tag": tag, "startedAfter": started_after, "startedBefore": started_before, "sort": sort, "limit": limit, "cursor": cursor, "fields": fields, "count": count})

    def post_runs(self, body: "StartRun", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "RunStatus":
        """Start a run."""
        return self._operation("POST", "/v1/runs", {}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def get_runs_by_run(self, run: str, *, at: Optional[Union[str, int, bool]] = None, fields: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None, if_none_match: Optional[Union[str, int, bool]] = None) -> "RunSnapshot":
        """A run, folded up to a moment."""
        return self._operation("GET", "/v1/runs/{run}", {"run": run}, query={"at": at, "fields": fields}, headers={"Prefer": prefer, "Cairn-Min-Seq": cairn_min_seq, "If-None-Match": if_none_match})

    def delete_runs_by_run(self, run: str, *, reason: Optional[Union[str, int, bool]] = None) -> bytes:
        """Remove an ended run; two people must ask for it."""
        return self._operation("DELETE", "/v1/runs/{run}", {"run": run}, query={"reason": reason})

    def get_runs_by_run_status(self, run: str) -> "RunStatus":
        """RunStatusSnapshot."""
        return self._operation("GET", "/v1/runs/{run}/status", {"run": run})

    def get_runs_by_run_events(self, run: str, *, after: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, types: Optional[Union[str, int, bool]] = None, step: Optional[Union[str, int, bool]] = None, as_: Optional[Union[str, int, bool]] = None, wait: Optional[Union[str, int, bool]] = None, last_event_id: Optional[Union[str, int, bool]] = None) -> "EventPage":
        """Events: a page, NDJSON or SSE by Accept."""
        return self._operation("GET", "/v1/runs/{run}/events", {"run": run}, query={"after": after, "cursor": cursor, "limit": limit, "types": types, "step": step, "as": as_, "wait": wait}, headers={"Last-Event-ID": last_event_id})

    def get_runs_by_run_why(self, run: str, *, at: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Why":
        """Why the run is in its state."""
        return self._operation("GET", "/v1/runs/{run}/why", {"run": run}, query={"at": at}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_places(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Places":
        """Which of its attempts wait for a slot or a worker, and where it stands in its queue."""
        return self._operation("GET", "/v1/runs/{run}/places", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps(self, run: str, *, at: Optional[Union[str, int, bool]] = None, fields: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "StepPage":
        """Its steps."""
        return self._operation("GET", "/v1/runs/{run}/steps", {"run": run}, query={"at": at, "fields": fields}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step(self, run: str, step: str, *, at: Optional[Union[str, int, bool]] = None, fields: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Step":
        """One step with its attempts."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}", {"run": run, "step": step}, query={"at": at, "fields": fields}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step_why(self, run: str, step: str, *, at: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Why":
        """Why the step is in its state."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}/why", {"run": run, "step": step}, query={"at": at}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step_logs(self, run: str, step: str, *, attempt: Optional[Union[str, int, bool]] = None, engine_attempt: Optional[Union[str, int, bool]] = None, follow: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None, last_event_id: Optional[Union[str, int, bool]] = None) -> bytes:
        """What the step wrote."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}/logs", {"run": run, "step": step}, query={"attempt": attempt, "engineAttempt": engine_attempt, "follow": follow}, headers={"Cairn-Min-Seq": cairn_min_seq, "Last-Event-ID": last_event_id})

    def get_runs_by_run_signals(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "DecisionPage":
        """Decision records."""
        return self._operation("GET", "/v1/runs/{run}/signals", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def post_runs_by_run_signals(self, run: str, body: "Signal", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "Decision":
        """Send a signal."""
        return self._operation("POST", "/v1/runs/{run}/signals", {"run": run}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def get_runs_by_run_signals_by_signal(self, run: str, signal: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "DecisionRecord":
        """A decision record, by signalId or policyDecisionId."""
        return self._operation("GET", "/v1/runs/{run}/signals/{signal}", {"run": run, "signal": signal}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def put_runs_by_run_signals_by_signal(self, run: str, signal: str, body: "Signal", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "Decision":
        """Send a signal under an id of the client's."""
        return self._operation("PUT", "/v1/runs/{run}/signals/{signal}", {"run": run, "signal": signal}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def get_runs_by_run_payload(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Payload":
        """What the run was given."""
        return self._operation("GET", "/v1/runs/{run}/payload", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_graph(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Graph":
        """Steps of its document and the ways between them."""
        return self._operation("GET", "/v1/runs/{run}/graph", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step_output(self, run: str, step: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "StepOutput":
        """What the step gave."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}/output", {"run": run, "step": step}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step_inputs(self, run: str, step: str, *, attempt: Optional[Union[str, int, bool]] = None, at: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "StepInputs":
        """What the step was given: as written, and with every reference replaced."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}/inputs", {"run": run, "step": step}, query={"attempt": attempt, "at": at}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step_attempts(self, run: str, step: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "AttemptPage":
        """Its attempts."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}/attempts", {"run": run, "step": step}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_steps_by_step_attempts_by_n(self, run: str, step: str, n: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Attempt":
        """One attempt."""
        return self._operation("GET", "/v1/runs/{run}/steps/{step}/attempts/{n}", {"run": run, "step": step, "n": n}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_artifacts(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "ArtifactPage":
        """Files that its steps left."""
        return self._operation("GET", "/v1/runs/{run}/artifacts", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_artifacts_content(self, run: str, *, name: Optional[Union[str, int, bool]] = None, step: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """The bytes of one; Range is understood."""
        return self._operation("GET", "/v1/runs/{run}/artifacts/content", {"run": run}, query={"name": name, "step": step}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_bundle(self, run: str, *, redact: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """The run as a signed file (docs/format/bundle.md)."""
        return self._operation("GET", "/v1/runs/{run}/bundle", {"run": run}, query={"redact": redact}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_runs_by_run_proof(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "Proof":
        """Where its chains end, signed, and whether they hold."""
        return self._operation("GET", "/v1/runs/{run}/proof", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def post_runs_by_run_forks(self, run: str, body: "ForkRun", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "RunStatus":
        """A new run that goes on from an event of this one."""
        return self._operation("POST", "/v1/runs/{run}/forks", {"run": run}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def post_runs_by_run_forks_preview(self, run: str, body: "ForkRun") -> "ForkPreview":
        """What a fork would take over."""
        return self._operation("POST", "/v1/runs/{run}/forks/preview", {"run": run}, body=body)

    def post_runs_by_run_rerun(self, run: str, body: "RerunRun", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "RunStatus":
        """A new run of the same document."""
        return self._operation("POST", "/v1/runs/{run}/rerun", {"run": run}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def post_runs_by_run_rerun_preview(self, run: str, body: "RerunRun") -> "ForkPreview":
        """What a rerun would take over."""
        return self._operation("POST", "/v1/runs/{run}/rerun/preview", {"run": run}, body=body)

    def post_runs_by_run_retry(self, run: str, body: "RetryRun", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "RunStatus":
        """A new run that does one step of an ended run again, and everything below it."""
        return self._operation("POST", "/v1/runs/{run}/retry", {"run": run}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def post_runs_by_run_retry_preview(self, run: str, body: "RetryRun") -> "ForkPreview":
        """What a retry would take over."""
        return self._operation("POST", "/v1/runs/{run}/retry/preview", {"run": run}, body=body)

    def get_events(self, *, after: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, types: Optional[Union[str, int, bool]] = None, last_event_id: Optional[Union[str, int, bool]] = None) -> "EventPage":
        """Events of all runs: a page, NDJSON or SSE by Accept."""
        return self._operation("GET", "/v1/events", {}, query={"after": after, "cursor": cursor, "limit": limit, "types": types}, headers={"Last-Event-ID": last_event_id})

    def post_events(self, body: "NewEvent", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "IncomingEvent":
        """Send an event to the steps that wait for it."""
        return self._operation("POST", "/v1/events", {}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def get_definitions(self, *, limit: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None) -> "DefinitionPage":
        """Definitions."""
        return self._operation("GET", "/v1/definitions", {}, query={"limit": limit, "cursor": cursor})

    def get_definitions_by_name_versions(self, name: str, *, limit: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None) -> "DefinitionPage":
        """Versions of a definition."""
        return self._operation("GET", "/v1/definitions/{name}/versions", {"name": name}, query={"limit": limit, "cursor": cursor})

    def get_definitions_by_name_versions_by_sha256(self, name: str, sha256: str) -> "Definition":
        """A version."""
        return self._operation("GET", "/v1/definitions/{name}/versions/{sha256}", {"name": name, "sha256": sha256})

    def put_definitions_by_name_versions_by_sha256(self, name: str, sha256: str, *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "Definition":
        """Keep a document under the hash of its bytes."""
        return self._operation("PUT", "/v1/definitions/{name}/versions/{sha256}", {"name": name, "sha256": sha256}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer})

    def get_definitions_by_name_versions_by_sha256_document(self, name: str, sha256: str) -> bytes:
        """Its bytes."""
        return self._operation("GET", "/v1/definitions/{name}/versions/{sha256}/document", {"name": name, "sha256": sha256})

    def post_definitions_by_name_versions_by_sha256_approve(self, name: str, sha256: str, body: "Nothing") -> "Definition":
        """Approve a version, which another person brought."""
        return self._operation("POST", "/v1/definitions/{name}/versions/{sha256}:approve", {"name": name, "sha256": sha256}, body=body)

    def get_store_runs(self, *, limit: Optional[Union[str, int, bool]] = None, before: Optional[Union[str, int, bool]] = None, status: Optional[Union[str, int, bool]] = None, plan: Optional[Union[str, int, bool]] = None, prefix: Optional[Union[str, int, bool]] = None, since: Optional[Union[str, int, bool]] = None, until: Optional[Union[str, int, bool]] = None, unfinished: Optional[Union[str, int, bool]] = None, roots: Optional[Union[str, int, bool]] = None) -> "StoredRuns":
        """Heads of runs as they are stored (docs/format/store-api.md)."""
        return self._operation("GET", "/v1/store/runs", {}, query={"limit": limit, "before": before, "status": status, "plan": plan, "prefix": prefix, "since": since, "until": until, "unfinished": unfinished, "roots": roots})

    def get_store_runs_by_run(self, run: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> "StoredRun":
        """The head of a run as it is stored."""
        return self._operation("GET", "/v1/store/runs/{run}", {"run": run}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_records(self, run: str, *, after: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """Events as they are stored."""
        return self._operation("GET", "/v1/store/runs/{run}/records", {"run": run}, query={"after": after, "limit": limit}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_ledger(self, run: str, *, after: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """Ledger entries as they are stored."""
        return self._operation("GET", "/v1/store/runs/{run}/ledger", {"run": run}, query={"after": after, "limit": limit}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_blobs_by_sha256(self, run: str, sha256: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """A document or result that the run refers to."""
        return self._operation("GET", "/v1/store/runs/{run}/blobs/{sha256}", {"run": run, "sha256": sha256}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_redacted_records(self, run: str, *, after: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """Events without their values."""
        return self._operation("GET", "/v1/store/runs/{run}/redacted/records", {"run": run}, query={"after": after, "limit": limit}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_redacted_ledger(self, run: str, *, after: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """Ledger entries without their values."""
        return self._operation("GET", "/v1/store/runs/{run}/redacted/ledger", {"run": run}, query={"after": after, "limit": limit}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_redacted_blobs_by_sha256(self, run: str, sha256: str, *, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """The document of the run, or a part of it."""
        return self._operation("GET", "/v1/store/runs/{run}/redacted/blobs/{sha256}", {"run": run, "sha256": sha256}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def get_store_runs_by_run_file(self, run: str, *, what: Optional[Union[str, int, bool]] = None, name: Optional[Union[str, int, bool]] = None, offset: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, tail: Optional[Union[str, int, bool]] = None, cairn_min_seq: Optional[Union[str, int, bool]] = None) -> bytes:
        """A piece of a log or an artifact of the run."""
        return self._operation("GET", "/v1/store/runs/{run}/file", {"run": run}, query={"what": what, "name": name, "offset": offset, "limit": limit, "tail": tail}, headers={"Cairn-Min-Seq": cairn_min_seq})

    def post_plans_validate(self, body: "ValidateDocument") -> "ValidationReport":
        """Check a document."""
        return self._operation("POST", "/v1/plans:validate", {}, body=body)

    def post_plans_graph(self, body: "DrawDocument") -> "Graph":
        """The steps of a document and the ways between them."""
        return self._operation("POST", "/v1/plans:graph", {}, body=body)

    def get_engines(self) -> "Engines":
        """Engines that share the store, and what executes attempts."""
        return self._operation("GET", "/v1/engines", {})

    def get_workers(self) -> "WorkerPage":
        """Workers that were heard of lately."""
        return self._operation("GET", "/v1/workers", {})

    def post_worker_poll(self, body: "WorkerPoll") -> "WorkerAnswer":
        """Tasks for a worker (docs/format/worker.md)."""
        return self._operation("POST", "/v1/worker/poll", {}, body=body)

    def post_worker_heartbeat(self, body: "WorkerHeartbeat") -> "WorkerAnswer":
        """A worker lives, and renews its leases."""
        return self._operation("POST", "/v1/worker/heartbeat", {}, body=body)

    def post_worker_logs(self, body: "WorkerLogs") -> "WorkerAnswer":
        """What steps wrote."""
        return self._operation("POST", "/v1/worker/logs", {}, body=body)

    def post_worker_complete(self, body: "WorkerResults") -> "WorkerAnswer":
        """Results of tasks."""
        return self._operation("POST", "/v1/worker/complete", {}, body=body)

    def post_worker_fail(self, body: "WorkerResults") -> "WorkerAnswer":
        """Failures of tasks."""
        return self._operation("POST", "/v1/worker/fail", {}, body=body)

    def post_executions_by_run_events(self, run: str, body: "WorkerEvents") -> "WorkerAnswer":
        """Events of a playbook's run that a worker reports (docs/format/noetl-events.md)."""
        return self._operation("POST", "/v1/executions/{run}/events", {"run": run}, body=body)

    def get_worker_results_by_token(self, token: str, *, ref: Optional[Union[str, int, bool]] = None) -> bytes:
        """A stored result, by its reference, for a task."""
        return self._operation("GET", "/v1/worker/results/{token}", {"token": token}, query={"ref": ref})

    def put_worker_artifacts_by_token_by_path(self, token: str, path: str) -> bytes:
        """A file that a step declared."""
        return self._operation("PUT", "/v1/worker/artifacts/{token}/{path}", {"token": token, "path": path})

    def get_tokens(self) -> "TokenPage":
        """Tokens of the tenant, without their secrets."""
        return self._operation("GET", "/v1/tokens", {})

    def post_tokens(self, body: "NewToken") -> "TokenText":
        """Make a token; its text is returned once."""
        return self._operation("POST", "/v1/tokens", {}, body=body)

    def delete_tokens_by_token(self, token: str) -> bytes:
        """Revoke a token."""
        return self._operation("DELETE", "/v1/tokens/{token}", {"token": token})

    def post_runs_resolve(self, body: "RunReference") -> "ResolvedRun":
        """The run that an EngineRunRef names."""
        return self._operation("POST", "/v1/runs:resolve", {}, body=body)

    def post_runs_status(self, body: "RunReference") -> "RunStatus":
        """getRunStatus of the run that an EngineRunRef names."""
        return self._operation("POST", "/v1/runs:status", {}, body=body)

    def post_runs_cancel(self, body: "CancelByReference") -> "Decision":
        """cancelRun of the run that an EngineRunRef names."""
        return self._operation("POST", "/v1/runs:cancel", {}, body=body)

    def post_runs_signal(self, body: "SignalByReference") -> "Decision":
        """Send a signal to the run that an EngineRunRef names."""
        return self._operation("POST", "/v1/runs:signal", {}, body=body)

    def get_schedules(self) -> "SchedulePage":
        """Schedules of the tenant."""
        return self._operation("GET", "/v1/schedules", {})

    def get_schedules_by_schedule(self, schedule: str) -> "Schedule":
        """A schedule, with its next times."""
        return self._operation("GET", "/v1/schedules/{schedule}", {"schedule": schedule})

    def put_schedules_by_schedule(self, schedule: str, body: "ScheduleConfig", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "Schedule":
        """Make or change a schedule."""
        return self._operation("PUT", "/v1/schedules/{schedule}", {"schedule": schedule}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def delete_schedules_by_schedule(self, schedule: str) -> bytes:
        """Remove a schedule; its runs stay."""
        return self._operation("DELETE", "/v1/schedules/{schedule}", {"schedule": schedule})

    def post_schedules_by_schedule_pause(self, schedule: str, body: "ReasonOnly") -> "Schedule":
        """Nothing of it fires any more."""
        return self._operation("POST", "/v1/schedules/{schedule}/pause", {"schedule": schedule}, body=body)

    def post_schedules_by_schedule_resume(self, schedule: str, body: "ReasonOnly") -> "Schedule":
        """It fires again, from now on."""
        return self._operation("POST", "/v1/schedules/{schedule}/resume", {"schedule": schedule}, body=body)

    def post_schedules_by_schedule_trigger(self, schedule: str, body: "ScheduleTrigger", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "RunStatus":
        """A run of it now, beside its times."""
        return self._operation("POST", "/v1/schedules/{schedule}/trigger", {"schedule": schedule}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def get_schedules_by_schedule_next(self, schedule: str, *, limit: Optional[Union[str, int, bool]] = None, from_: Optional[Union[str, int, bool]] = None) -> "FirePage":
        """Its next times."""
        return self._operation("GET", "/v1/schedules/{schedule}/next", {"schedule": schedule}, query={"limit": limit, "from": from_})

    def get_schedules_by_schedule_ticks(self, schedule: str, *, limit: Optional[Union[str, int, bool]] = None) -> "TickPage":
        """What became of its times, newest first."""
        return self._operation("GET", "/v1/schedules/{schedule}/ticks", {"schedule": schedule}, query={"limit": limit})

    def get_schedules_by_schedule_backfills(self, schedule: str) -> "BackfillPage":
        """Its backfills."""
        return self._operation("GET", "/v1/schedules/{schedule}/backfills", {"schedule": schedule})

    def post_schedules_by_schedule_backfills(self, schedule: str, body: "NewBackfill", *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "Backfill":
        """Run the times of a range."""
        return self._operation("POST", "/v1/schedules/{schedule}/backfills", {"schedule": schedule}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer}, body=body)

    def delete_schedules_by_schedule_backfills_by_backfill(self, schedule: str, backfill: str) -> bytes:
        """No more of its times begin."""
        return self._operation("DELETE", "/v1/schedules/{schedule}/backfills/{backfill}", {"schedule": schedule, "backfill": backfill})

    def post_hooks_by_hook(self, hook: str, *, idempotency_key: Optional[Union[str, int, bool]] = None, prefer: Optional[Union[str, int, bool]] = None) -> "IncomingEvent":
        """A webhook that comes in, signed: it becomes an event."""
        return self._operation("POST", "/v1/hooks/{hook}", {"hook": hook}, headers={"Idempotency-Key": idempotency_key, "Prefer": prefer})

    def get_incoming(self, *, name: Optional[Union[str, int, bool]] = None, state: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None) -> "IncomingEventPage":
        """Events from outside, the oldest ids first."""
        return self._operation("GET", "/v1/incoming", {}, query={"name": name, "state": state, "limit": limit})

    def get_incoming_by_event(self, event: str) -> "IncomingEvent":
        """An event from outside, and who has taken it."""
        return self._operation("GET", "/v1/incoming/{event}", {"event": event})

    def get_queues(self) -> "QueuePage":
        """Queues of the tenant."""
        return self._operation("GET", "/v1/queues", {})

    def post_queues_reconcile(self) -> "ReconcilePage":
        """dequeueAndStart: give places that are free."""
        return self._operation("POST", "/v1/queues:reconcile", {})

    def get_queues_by_queue(self, queue: str) -> "Queue":
        """A queue."""
        return self._operation("GET", "/v1/queues/{queue}", {"queue": queue})

    def put_queues_by_queue(self, queue: str, body: "QueueConfig") -> "Queue":
        """Make or change a queue."""
        return self._operation("PUT", "/v1/queues/{queue}", {"queue": queue}, body=body)

    def delete_queues_by_queue(self, queue: str) -> bytes:
        """Remove a queue in which nothing waits."""
        return self._operation("DELETE", "/v1/queues/{queue}", {"queue": queue})

    def post_queues_by_queue_pause(self, queue: str) -> "Queue":
        """Nothing of it starts any more."""
        return self._operation("POST", "/v1/queues/{queue}/pause", {"queue": queue})

    def post_queues_by_queue_resume(self, queue: str) -> "Queue":
        """Its runs start again."""
        return self._operation("POST", "/v1/queues/{queue}/resume", {"queue": queue})

    def get_limits(self) -> "Limits":
        """Limits of the tenant."""
        return self._operation("GET", "/v1/limits", {})

    def put_limits(self, body: "LimitsConfig") -> "Limits":
        """Change them."""
        return self._operation("PUT", "/v1/limits", {}, body=body)

    def get_step_limits(self) -> "StepLimitPage":
        """Limits of steps, and who has their places."""
        return self._operation("GET", "/v1/step-limits", {})

    def get_step_limits_by_limit(self, limit: str) -> "StepLimit":
        """A limit of steps."""
        return self._operation("GET", "/v1/step-limits/{limit}", {"limit": limit})

    def put_step_limits_by_limit(self, limit: str, body: "StepLimitConfig") -> "StepLimit":
        """Say how many attempts work at once, and how many begin in a time."""
        return self._operation("PUT", "/v1/step-limits/{limit}", {"limit": limit}, body=body)

    def delete_step_limits_by_limit(self, limit: str) -> bytes:
        """Say nothing of a limit any more: documents do."""
        return self._operation("DELETE", "/v1/step-limits/{limit}", {"limit": limit})

    def get_alerts(self, *, run: Optional[Union[str, int, bool]] = None, state: Optional[Union[str, int, bool]] = None) -> "AlertPage":
        """Alerts."""
        return self._operation("GET", "/v1/alerts", {}, query={"run": run, "state": state})

    def post_alerts_by_alert_ack(self, alert: str, body: "Nothing") -> "Alert":
        """A person has seen it."""
        return self._operation("POST", "/v1/alerts/{alert}:ack", {"alert": alert}, body=body)

    def get_outbox(self) -> "SinkPage":
        """Sinks: where they are and what waits."""
        return self._operation("GET", "/v1/outbox", {})

    def post_outbox_by_sink_rewind(self, sink: str, body: "Rewind") -> "Count":
        """Where a sink goes on."""
        return self._operation("POST", "/v1/outbox/{sink}:rewind", {"sink": sink}, body=body)

    def get_dlq(self, *, sink: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None) -> "LetterPage":
        """Dead letters."""
        return self._operation("GET", "/v1/dlq", {}, query={"sink": sink, "limit": limit, "cursor": cursor})

    def post_dlq_redrive(self, body: "Redrive") -> "Count":
        """Send dead letters of a sink once more."""
        return self._operation("POST", "/v1/dlq:redrive", {}, body=body)

    def post_dlq_by_letter_redrive(self, letter: str, body: "ReasonOnly") -> "Count":
        """Send a dead letter once more."""
        return self._operation("POST", "/v1/dlq/{letter}:redrive", {"letter": letter}, body=body)

    def delete_dlq_by_letter(self, letter: str, *, reason: Optional[Union[str, int, bool]] = None) -> "Count":
        """Give a dead letter up."""
        return self._operation("DELETE", "/v1/dlq/{letter}", {"letter": letter}, query={"reason": reason})

    def get_audit(self, *, after: Optional[Union[str, int, bool]] = None, limit: Optional[Union[str, int, bool]] = None, cursor: Optional[Union[str, int, bool]] = None, sort: Optional[Union[str, int, bool]] = None) -> "AuditPage":
        """Decisions, allowed and denied."""
        return self._operation("GET", "/v1/audit", {}, query={"after": after, "limit": limit, "cursor": cursor, "sort": sort})

    def get_audit_verify(self) -> "AuditReport":
        """Whether the chain of decisions is whole."""
        return self._operation("GET", "/v1/audit:verify", {})

    def get_usage(self) -> "StoreUsage":
        """What is in the store, how it grows and where its bytes are."""
        return self._operation("GET", "/v1/usage", {})
