// The operations and the answers of the HTTP interface, made by clients/generate.py from its own description. Do not edit.

/** A whole number; beyond 2^53 a bigint, so that no digit is lost. */
export type Integer = number | bigint;

export type Name = string;

export type Text = string;

export type Parameter = string;

export interface LetterPage {
    items: Array<Record<string, unknown>>;
}

export type Limit = Integer;

export type Time = string;

export interface Problem {
    type: string;
    title: string;
    status: Integer;
    code: string;
    detail?: string;
    hint?: string;
    instance?: string;
    requestId?: string;
    retryable?: boolean;
    errors?: Array<Record<string, unknown>>;
}

export interface StoredRun {
    runId: string;
    tenantId: string;
    status: string;
    vocabulary: string;
    lastSeq: Integer;
    ledgerSeq: Integer;
    head: string;
    ledgerHead: string;
    document: string;
    terminal: boolean;
    owned: boolean;
    position: Integer;
}

export interface StoredRuns {
    items: Array<StoredRun>;
    next: Integer;
}

export interface QueueConfig {
    policy?: "REJECT" | "QUEUE" | "DELAY";
    maxRunning?: Integer;
    maxQueued?: Integer;
    delayMs?: Integer;
    priority?: Integer;
    paused?: boolean;
}

export interface ScheduleSpec {
    cron?: string;
    every?: string;
    offset?: string;
    at?: string;
    zone?: string;
    gap?: "run" | "skip";
    fold?: "once" | "twice" | "skip";
    from?: string;
    until?: string;
    jitter?: string;
    catchup?: string;
    overlap?: "skip" | "queue" | "cancel" | "allow";
    queued?: Integer;
    inputs?: Record<string, unknown>;
    queue?: string;
}

export interface ScheduleConfig {
    document?: Record<string, unknown> | string;
    file?: string;
    parts?: Parts;
    planRef?: PlanRef;
    schedule?: ScheduleSpec;
    projectId?: string;
    environmentId?: string;
    paused?: boolean;
}

export interface Fire {
    time: Time;
    local: string;
    mark?: "gap" | "first" | "second";
}

export interface FirePage {
    items: Array<Fire>;
}

export interface Tick {
    time: Time;
    until?: Time;
    count?: Integer;
    kind: "fire" | "trigger" | "backfill";
    outcome: "STARTED" | "QUEUED" | "SKIPPED" | "FAILED";
    reasonCode?: string;
    detail?: string;
    runId?: string;
    decidedAt: Time;
}

export interface TickPage {
    items: Array<Tick>;
}

export interface Schedule {
    name: string;
    projectId?: string;
    environmentId?: string;
    schedule?: ScheduleSpec;
    plan?: Record<string, unknown>;
    paused?: boolean;
    pausedBy?: string;
    pausedReason?: string;
    zone?: string;
    decidedUntil?: Time;
    waiting?: Array<Time>;
    lastTick?: Tick;
    next?: Array<Fire>;
    error?: string;
    createdAt?: Time;
    createdBy?: string;
    updatedAt?: Time;
    updatedBy?: string;
}

export interface SchedulePage {
    items: Array<Schedule>;
}

export interface NewEvent {
    id?: string;
    name: string;
    correlation?: string;
    data?: unknown;
    source?: string;
    projectId?: string;
    environmentId?: string;
}

export interface IncomingEvent {
    id: string;
    name: string;
    correlation?: string;
    data?: unknown;
    source?: string;
    projectId?: string;
    environmentId?: string;
    state: "KEPT" | "GIVEN" | "DELIVERED";
    runId?: string;
    stepId?: string;
    tries?: Integer;
    receivedAt: string;
    changedAt?: string;
    receivedBy?: string;
}

export interface IncomingEventPage {
    items: Array<IncomingEvent>;
}

export interface ScheduleTrigger {
    inputs?: Record<string, unknown>;
    reason?: string;
}

export interface NewBackfill {
    from: string;
    to: string;
    order?: "oldest" | "newest";
    limit?: Integer;
    parallel?: Integer;
    dryRun?: boolean;
    reason?: string;
}

export interface Backfill {
    id?: string;
    schedule?: string;
    from?: string;
    to?: string;
    order?: string;
    parallel?: Integer;
    dryRun?: boolean;
    count: Integer;
    inRange?: Integer;
    times?: Array<Fire>;
    begun?: Integer;
    status?: "RUNNING" | "DONE";
    reason?: string;
    createdBy?: string;
    createdAt?: Time;
}

export interface BackfillPage {
    items: Array<Backfill>;
}

export interface Queue {
    name: string;
    policy: "REJECT" | "QUEUE" | "DELAY";
    maxRunning: Integer;
    maxQueued: Integer;
    delayMs: Integer;
    priority: Integer;
    paused: boolean;
    running: Integer;
    queued: Integer;
    oldestQueuedAt?: Time;
}

export interface QueuePage {
    items: Array<Queue>;
}

export interface ReconcilePage {
    items: Array<Record<string, unknown>>;
}

export interface LimitsConfig {
    runsInFlight?: Integer;
    startsPerSecond?: Integer;
}

export interface Limits {
    runsInFlight: Integer;
    startsPerSecond: Integer;
    runsNow: Integer;
}

export interface StepLimitConfig {
    concurrency?: Integer;
    rate?: string;
}

export interface StepLimit {
    name: string;
    set: boolean;
    concurrency?: Integer;
    rate?: string;
    inUse: Integer;
    waiting: Integer;
    startsInRate?: Integer;
    holders?: Array<Record<string, unknown>>;
}

export interface StepLimitPage {
    items: Array<StepLimit>;
}

export interface RunReference {
    ref: Record<string, unknown> | string;
}

export interface CancelByReference {
    ref: Record<string, unknown> | string;
    reason?: string;
    signalId?: string;
}

export interface SignalByReference {
    ref: Record<string, unknown> | string;
    signal: Signal;
}

export interface ResolvedRun {
    runId: string;
    status: string;
    tenantId: string;
    projectId: string;
    environmentId: string;
    planId: string;
    planVersion: string;
    ref: Record<string, unknown>;
}

export interface Principal {
    id: string;
    tenantId?: string;
    roles: Array<string>;
    projects?: Array<string>;
    environments?: Array<string>;
    pool?: string;
    operations?: Array<string>;
    sessionExpiresAt?: Time;
    payloads?: boolean;
    expiresAt?: Time;
}

export interface NewSession {
    token?: string;
    ticket?: string;
}

export interface Session {
    id: string;
    key: string;
    expiresAt: Time;
    principal: Principal;
}

export interface Ticket {
    ticket: string;
    expiresAt: Time;
}

export interface SignIn {
    methods: Array<Record<string, unknown>>;
}

export interface Capabilities {
    provider: "cairn" | "temporal" | "conductor" | "mock";
    documents: Array<string>;
    schemaVersions: Array<string>;
    providers?: Array<string>;
    capabilities?: Array<Record<string, unknown>>;
    hosts?: Array<Record<string, unknown>>;
}

export interface PlanRef {
    uri: string;
    sha256: string;
    schemaVersion: string;
    planId: string;
    planVersion: string;
    sizeBytes?: Integer;
    expiresAt?: Time;
    compression?: "gzip" | "none";
}

export interface SinkPage {
    items: Array<Record<string, unknown>>;
    carriedBy?: Record<string, unknown>;
}

export interface StartRun {
    document?: Record<string, unknown> | string;
    file?: string;
    parts?: Parts;
    planRef?: PlanRef;
    context?: Record<string, unknown>;
    inputs?: Record<string, unknown>;
    input?: Record<string, unknown>;
    arguments?: string;
    runRequestId?: string;
    queue?: string;
    runId?: string;
    projectId?: string;
    environmentId?: string;
    tenantId?: string;
    targetAdapter?: string;
    cancelOnPause?: boolean;
    drainTimeoutMs?: Integer;
    triggerSource?: "manual" | "schedule" | "webhook" | "api";
}

export interface RunStatus {
    runId: string;
    status: "PENDING" | "APPROVED" | "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED";
    substatus?: string;
    message?: string;
    startedAt?: Time;
    completedAt?: Time;
    engineRunRef?: string;
    ref?: Record<string, unknown>;
    lastEventSeq?: Integer;
}

export interface Engines {
    items: Array<Record<string, unknown>>;
    nextCursor: Cursor;
    count: Integer;
    several: boolean;
    version: string;
    startedAt: Time;
    ready: boolean;
    turnedMs: Integer;
    storedMs: Integer;
    callsWaiting: Integer;
    projectorLagMs: Integer;
    hosts: Array<Record<string, unknown>>;
}

export interface StoreUsage {
    kind: string;
    runs: Integer;
    status: Record<string, unknown>;
    children?: Integer;
    events: Integer;
    ledgerEntries: Integer;
    eventsPerDay: Integer;
    removed?: Integer;
    oldest?: null | string;
    newest?: null | string;
    usage: Array<Record<string, unknown>>;
    biggest: Array<Record<string, unknown>>;
    days: Array<Record<string, unknown>>;
}

export interface Headline {
    state: string;
    text: string;
    detail?: string;
    by?: string;
    role?: string;
    due?: Time;
    brief?: boolean;
    parts: Array<HeadlinePart>;
}

export interface HeadlinePart {
    state: string;
    step: string;
    count?: Integer;
    attempt?: Integer;
    attempts?: Integer;
    code?: string;
    due?: Time;
}

export interface RunRow {
    runId: string;
    status: string;
    substatus?: null | string;
    planId: string;
    planVersion: string;
    name?: null | string;
    progress?: string;
    completed?: Integer;
    failed?: Integer;
    skipped?: Integer;
    total?: Integer;
    running?: Integer;
    createdAt?: null | string;
    startedAt?: null | string;
    endedAt?: null | string;
    durationMs?: Integer | null;
    cause?: null | string;
    headline?: unknown;
    lastSeq: Integer;
    tenantId?: string;
    projectId?: string;
    environmentId?: string;
    parentRunId?: null | string;
    originalRunId?: null | string;
    ownerPid?: Integer | null;
}

export interface Count {
    count: Integer;
}

export type Cursor = null | string;

export interface RunPage {
    items: Array<RunRow>;
    nextCursor: Cursor;
    total?: Integer;
    totalIs?: "exact" | "atLeast";
}

export interface RunSnapshot {
    runId: string;
    tenantId?: string;
    projectId?: string;
    environmentId?: string;
    planId?: string;
    planVersion?: string;
    name?: string;
    status: "PENDING" | "APPROVED" | "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED";
    substatus?: string;
    lastEventSeq: Integer;
    segment?: Record<string, unknown>;
    engineRunRef?: string;
    planRef?: Record<string, unknown>;
    documentSha256?: string;
    queuedAt?: Time;
    startedAt?: Time;
    completedAt?: Time;
    updatedAt?: Time;
    totalDurationMs?: Integer;
    runningSteps?: Integer;
    completedSteps?: Integer;
    failedSteps?: Integer;
    skippedSteps?: Integer;
    totalSteps?: Integer;
    rootCause?: Record<string, unknown>;
    cancelReason?: string;
    pauseReason?: string;
    message?: string;
    stale?: boolean;
    inconsistent?: boolean;
    forkedFrom?: Record<string, unknown>;
    originalRunId?: string;
    parentRunId?: string;
    parentStepId?: string;
    artifacts?: Array<Record<string, unknown>>;
    hash?: Sha256;
    queue?: QueuePlace;
    steps: Array<Step>;
}

export interface Step {
    stepId: string;
    status: "PENDING" | "RUNNING" | "SUCCESS" | "FAILED" | "SKIPPED";
    logicalAttemptId: Integer;
    engineAttemptId?: Integer;
    startedAt?: Time;
    completedAt?: Time;
    durationMs?: Integer;
    dueAt?: Time;
    artifacts: Array<Record<string, unknown>>;
    error?: Fault;
    awaitedEvent?: Record<string, unknown>;
    retrying?: boolean;
    held?: boolean;
    skipReason?: string;
    skipDetail?: string;
    result?: unknown;
    resultRef?: Record<string, unknown>;
    childRunId?: string;
    reusedFrom?: string;
    truncated?: boolean;
    actor?: string;
    iteration?: Integer;
    place?: Place;
    attempts?: Array<Attempt>;
}

export interface StepPage {
    items: Array<Step>;
    nextCursor: Cursor;
}

export interface EventPage {
    items: Array<Record<string, unknown>>;
    nextCursor: Cursor;
}

export type Parts = Array<Record<string, unknown>>;

export interface Rewind {
    position?: Integer;
    runId?: string;
    seq?: Integer;
    reason?: string;
}

export type RunId = string;

export type Reason = string;

export type StepNames = Array<Name>;

export type Outputs = Record<string, unknown>;

export interface ForkRun {
    fromSeq?: Integer;
    document?: string;
    file?: string;
    parts?: Parts;
    planRef?: PlanRef;
    inputs?: Record<string, unknown>;
    outputs?: Outputs;
    from?: StepNames;
    runId?: RunId;
    reason?: Reason;
}

export interface ReasonOnly {
    reason?: string;
}

export interface Redrive {
    sink: string;
    runId?: string;
    reason?: string;
}

export interface RerunRun {
    document?: string;
    file?: string;
    parts?: Parts;
    planRef?: PlanRef;
    inputs?: Record<string, unknown>;
    outputs?: Outputs;
    from?: StepNames;
    runId?: RunId;
    reason?: Reason;
}

export interface RetryRun {
    stepId: Name;
    inputs?: Record<string, unknown>;
    runId?: RunId;
    reason?: Reason;
}

export interface ForkPreview {
    how: "fork" | "rerun" | "retry";
    source: Record<string, unknown>;
    document: Record<string, unknown>;
    inputsChanged: Array<string>;
    steps: Array<Record<string, unknown>>;
    gone: Array<string>;
    endsAtOnce: boolean;
}

export type Sha256 = string;

export type Nothing = Record<string, unknown>;

export interface Definition {
    tenantId: string;
    projectId: string;
    environmentId: string;
    name: string;
    sha256: Sha256;
    planId: string;
    planVersion: string;
    schemaVersion?: string;
    uri: string;
    sizeBytes?: Integer;
    createdAt: Time;
    createdBy?: string;
    approvedAt?: Time;
    approvedBy?: string;
}

export interface DefinitionPage {
    items: Array<Definition>;
    nextCursor: Cursor;
}

export interface Payload {
    runId: string;
    inputs: Record<string, unknown>;
    arguments?: string;
}

export interface Graph {
    planId: string;
    planVersion: string;
    documentKind: "plan" | "nodes" | "playbook";
    steps: Array<Record<string, unknown>>;
    arcs: Array<Record<string, unknown>>;
}

export interface StepInputs {
    runId: string;
    stepId: string;
    attempt?: Integer;
    source?: unknown;
    rendered?: unknown;
    env?: Record<string, unknown>;
    why?: string;
    visit?: Integer;
    given?: Array<Record<string, unknown>>;
    ahead?: Array<Record<string, unknown>>;
    leftOut?: Integer;
}

export interface StepOutput {
    stepId: string;
    result: unknown;
    truncated: boolean;
}

export interface Fault {
    code: string;
    message: string;
    category?: string;
    detail?: string;
    retryable: boolean;
    exitCode?: Integer;
}

export interface Holder {
    runId: string;
    stepId?: string;
    since?: Time;
}

export interface Place {
    stepId: string;
    logicalAttemptId: Integer;
    engineAttemptId: Integer;
    state: "QUEUED" | "EXECUTING";
    since?: Time;
    pool?: string;
    worker?: string;
    position?: Integer;
    slots?: Integer;
    workers?: Integer;
    holders?: Array<Holder>;
    others?: Integer;
}

export interface QueuePlace {
    name: string;
    position: Integer;
    waiting: Integer;
    running: Integer;
    limitedBy: "PAUSED" | "QUEUE" | "TENANT" | "SERVICE" | "TURN";
    limit?: Integer;
    paused?: boolean;
    holders?: Array<Holder>;
    others?: Integer;
}

export interface Places {
    runId: string;
    attempts: Array<Place>;
    queue?: QueuePlace;
}

export interface Attempt {
    logicalAttemptId: Integer;
    engineAttemptId: Integer;
    startedAt?: Time;
    endedAt?: Time;
    durationMs?: Integer;
    error?: Fault;
}

export interface AttemptPage {
    items: Array<Attempt>;
    nextCursor: Cursor;
}

export interface Artifact {
    name: string;
    stepId: string;
    kind?: string;
    sizeBytes: Integer;
    sha256?: Sha256;
    expiresAt?: Time;
    state: "ok" | "changed" | "missing" | "expired";
}

export interface ArtifactPage {
    items: Array<Artifact>;
    nextCursor: Cursor;
}

export interface Checkpoint {
    tenantId: string;
    runId: string;
    lastSeq: Integer;
    head: Sha256;
    lastLedgerSeq: Integer;
    ledgerHead: Sha256;
    at: Time;
}

export interface Proof {
    checkpoint: Checkpoint;
    verified: boolean;
    faults: Array<Record<string, unknown>>;
    signature: string;
    keyId: Sha256;
    publicKey: string;
}

export type Why = Record<string, unknown>;

export interface Signal {
    signalId?: string;
    signalType?: string;
    type?: string;
    payload?: Record<string, unknown>;
    stepId?: string;
    reason?: string;
    requestedAt?: string;
}

export interface Decision {
    signalId: string;
    signalType: string;
    decision: "ACCEPTED" | "REJECTED" | "REVISION_REQUIRED";
    policyDecisionId?: string;
    runId?: string;
    newRunId?: string;
    causedSeq?: Integer;
}

export type DecisionRecord = Record<string, unknown>;

export interface DecisionPage {
    items: Array<DecisionRecord>;
    nextCursor: Cursor;
}

export interface ValidateDocument {
    document: Record<string, unknown> | string;
    file?: string;
    parts?: Parts;
    targetAdapter?: string;
}

export interface DrawDocument {
    document: Record<string, unknown> | string;
    file?: string;
    parts?: Parts;
}

export interface ValidationReport {
    status: "VALID" | "WARNINGS" | "ERRORS";
}

export interface NewToken {
    name?: string;
    tenantId?: string;
    roles: Array<string>;
    projects?: Array<string>;
    environments?: Array<string>;
    audience?: string;
    pool?: string;
    expiresAt?: Time;
    replaces?: string;
}

export interface TokenText {
    id: string;
    token: string;
}

export interface Token {
    id: string;
    name?: string;
    tenantId?: string;
    roles: Array<string>;
    pool?: string;
    audience?: string;
    projects?: Array<string>;
    environments?: Array<string>;
    createdBy?: string;
    createdAt?: Time;
    expiresAt?: Time;
    revokedAt?: Time;
}

export interface TokenPage {
    items: Array<Token>;
    nextCursor: Cursor;
}

export interface AuditRecord {
    seq: Integer;
    auditId: string;
    tenantId?: string;
    projectId?: string;
    environmentId?: string;
    engineAttemptId?: Integer;
    logicalAttemptId?: Integer;
    timestamp: Time;
    action: string;
    decision: "GRANTED" | "DENIED" | "COMPLETED" | "FAILED";
    actor?: Record<string, unknown>;
    resource?: Record<string, unknown>;
    reason?: Record<string, unknown>;
    context?: Record<string, unknown>;
    details?: Record<string, unknown>;
    previousHash: Sha256;
}

export interface AuditPage {
    items: Array<AuditRecord>;
    nextCursor: Cursor;
}

export interface AuditReport {
    tenantId: string;
    records: Integer;
    headHash: string;
    intact: boolean;
    fault?: Record<string, unknown>;
}

export type WorkerName = string;

export type TaskToken = string;

export type TaskEpoch = Integer;

export interface WorkerPoll {
    worker: WorkerName;
    tenant?: string;
    pool?: string;
    kinds?: Array<string>;
    max?: Integer;
    waitMs?: Integer;
    slots?: Integer;
    draining?: boolean;
}

export interface WorkerHeartbeat {
    worker: WorkerName;
    tenant?: string;
    pool?: string;
    tasks: Array<Record<string, unknown>>;
    waitMs?: Integer;
}

export interface WorkerLogs {
    worker: WorkerName;
    tenant?: string;
    pool?: string;
    chunks: Array<unknown>;
}

export interface WorkerChunk {
    token: TaskToken;
    epoch: TaskEpoch;
    stream: "stdout" | "stderr";
    offset?: Integer;
    text: string;
}

export interface WorkerResults {
    worker: WorkerName;
    tenant?: string;
    pool?: string;
    results: Array<unknown>;
}

export interface WorkerFault {
    code: string;
    message: string;
    category?: "infrastructure" | "business" | "validation" | "timeout";
    detail?: string;
    retryable?: boolean;
    exitCode?: Integer;
}

export type WorkerResult = Record<string, unknown>;

export interface WorkerFailure {
    token: TaskToken;
    epoch: TaskEpoch;
    error: WorkerFault;
    durationMs?: Integer;
}

export interface WorkerEvents {
    worker: WorkerName;
    tenant?: string;
    pool?: string;
    producer?: string;
    token: TaskToken;
    epoch: TaskEpoch;
    events: Array<unknown>;
}

export interface WorkerEvent {
    event_id: WorkerEventId;
    event_type: string;
    event_alias?: string;
    name?: string;
    timestamp: WorkerTime;
    execution_id: EntityId;
    source?: unknown;
    entity_type?: "playbook" | "workflow" | "step" | "task" | "loop" | "next" | "policy" | "result";
    entity_id?: EntityId;
    parent_id?: EntityId;
    seq?: Integer;
    workflow_run_id?: EntityId;
    step_run_id?: string;
    task_run_id?: EntityId;
    iteration?: Integer;
    iteration_id?: EntityId;
    attempt?: Integer;
    status?: "in_progress" | "success" | "error" | "skipped" | "paused";
    duration_ms?: Integer;
    payload?: WorkerEventPayload;
}

export interface OldWorkerEvent {
    event_id: WorkerEventId;
    event_type?: string;
    name?: string;
    timestamp?: WorkerTime;
    execution_id: EntityId;
    status?: string;
    iteration?: Integer;
    attempt?: Integer;
    duration_ms?: number;
    payload?: Record<string, unknown>;
}

export type WorkerEventId = string;

export type EntityId = string;

export type WorkerTime = string;

export interface WorkerOutcome {
    status: "ok" | "error";
    error?: Record<string, unknown>;
    meta?: Record<string, unknown>;
}

export interface WorkerEventPayload {
    outcome?: WorkerOutcome;
    result_ref?: Record<string, unknown>;
    error?: Record<string, unknown>;
    meta?: Record<string, unknown>;
}

export type WorkerAnswer = Record<string, unknown>;

export interface WorkerPage {
    items: Array<Record<string, unknown>>;
}

export type Alert = Record<string, unknown>;

export interface AlertPage {
    items: Array<Record<string, unknown>>;
}

export interface Request {
    query?: Record<string, unknown>;
    headers?: Record<string, unknown>;
    body?: unknown;
    content?: Uint8Array;
}

function pick(options: Record<string, unknown>, names: string[]): Record<string, unknown> {
    return Object.fromEntries(names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]));
}

/** One method for each operation; what they have in common is `operation` of the client. */
export abstract class Operations {
    protected abstract operation<T>(method: string, path: string, places: Record<string, string>, request?: Request): Promise<T>;

    /** The process lives. */
    getLivez(): Promise<Uint8Array | null> {
        return this.operation("GET", "/livez", {});
    }

    /** The store can be written and the engine turns. */
    getReadyz(options: { verbose?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/readyz", {}, { query: pick(options, ["verbose"]) });
    }

    /** It has started. */
    getStartupz(): Promise<Uint8Array | null> {
        return this.operation("GET", "/startupz", {});
    }

    /** Prometheus metrics. */
    getMetrics(): Promise<Uint8Array | null> {
        return this.operation("GET", "/metrics", {});
    }

    /** This description. */
    getOpenapiJson(): Promise<Uint8Array | null> {
        return this.operation("GET", "/openapi.json", {});
    }

    /** A JSON Schema of documents, events or signals. */
    getSchemasByName(name: string): Promise<Uint8Array | null> {
        return this.operation("GET", "/schemas/{name}", { name });
    }

    /** Who the token stands for. */
    getWhoami(): Promise<Principal> {
        return this.operation("GET", "/v1/whoami", {});
    }

    /** Sign in with a browser: a token or a ticket becomes a cookie and a key. */
    postSession(body: NewSession): Promise<Session> {
        return this.operation("POST", "/v1/session", {}, { body });
    }

    /** Sign out: the session is over everywhere. */
    deleteSession(): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/session", {});
    }

    /** A ticket for one sign-in with a browser, within two minutes. */
    postTickets(): Promise<Ticket> {
        return this.operation("POST", "/v1/tickets", {});
    }

    /** Ways to sign in. */
    getAuth(): Promise<SignIn> {
        return this.operation("GET", "/v1/auth", {});
    }

    /** What this engine can do. */
    getCapabilities(): Promise<Capabilities> {
        return this.operation("GET", "/v1/capabilities", {});
    }

    /** Runs, newest first. */
    getRuns(options: { q?: string | number | boolean; status?: string | number | boolean; plan?: string | number | boolean; tag?: string | number | boolean; startedAfter?: string | number | boolean; startedBefore?: string | number | boolean; sort?: string | number | boolean; limit?: string | number | boolean; cursor?: string | number | boolean; fields?: string | number | boolean; count?: string | number | boolean } = {}): Promise<RunPage> {
        return this.operation("GET", "/v1/runs", {}, { query: pick(options, ["q", "status", "plan", "tag", "startedAfter", "startedBefore", "sort", "limit", "cursor", "fields", "count"]) });
    }

    /** Start a run. */
    postRuns(body: StartRun, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<RunStatus> {
        return this.operation("POST", "/v1/runs", {}, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** A run, folded up to a moment. */
    getRunsByRun(run: string, options: { at?: string | number | boolean; fields?: string | number | boolean; Prefer?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean; "If-None-Match"?: string | number | boolean } = {}): Promise<RunSnapshot> {
        return this.operation("GET", "/v1/runs/{run}", { run }, { query: pick(options, ["at", "fields"]), headers: pick(options, ["Prefer", "Cairn-Min-Seq", "If-None-Match"]) });
    }

    /** Remove an ended run; two people must ask for it. */
    deleteRunsByRun(run: string, options: { reason?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/runs/{run}", { run }, { query: pick(options, ["reason"]) });
    }

    /** RunStatusSnapshot. */
    getRunsByRunStatus(run: string): Promise<RunStatus> {
        return this.operation("GET", "/v1/runs/{run}/status", { run });
    }

    /** Events: a page, NDJSON or SSE by Accept. */
    getRunsByRunEvents(run: string, options: { after?: string | number | boolean; cursor?: string | number | boolean; limit?: string | number | boolean; types?: string | number | boolean; step?: string | number | boolean; as?: string | number | boolean; wait?: string | number | boolean; "Last-Event-ID"?: string | number | boolean } = {}): Promise<EventPage> {
        return this.operation("GET", "/v1/runs/{run}/events", { run }, { query: pick(options, ["after", "cursor", "limit", "types", "step", "as", "wait"]), headers: pick(options, ["Last-Event-ID"]) });
    }

    /** Why the run is in its state. */
    getRunsByRunWhy(run: string, options: { at?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Why> {
        return this.operation("GET", "/v1/runs/{run}/why", { run }, { query: pick(options, ["at"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Which of its attempts wait for a slot or a worker, and where it stands in its queue. */
    getRunsByRunPlaces(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Places> {
        return this.operation("GET", "/v1/runs/{run}/places", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Its steps. */
    getRunsByRunSteps(run: string, options: { at?: string | number | boolean; fields?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<StepPage> {
        return this.operation("GET", "/v1/runs/{run}/steps", { run }, { query: pick(options, ["at", "fields"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** One step with its attempts. */
    getRunsByRunStepsByStep(run: string, step: string, options: { at?: string | number | boolean; fields?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Step> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}", { run, step }, { query: pick(options, ["at", "fields"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Why the step is in its state. */
    getRunsByRunStepsByStepWhy(run: string, step: string, options: { at?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Why> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}/why", { run, step }, { query: pick(options, ["at"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** What the step wrote. */
    getRunsByRunStepsByStepLogs(run: string, step: string, options: { attempt?: string | number | boolean; engineAttempt?: string | number | boolean; follow?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean; "Last-Event-ID"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}/logs", { run, step }, { query: pick(options, ["attempt", "engineAttempt", "follow"]), headers: pick(options, ["Cairn-Min-Seq", "Last-Event-ID"]) });
    }

    /** Decision records. */
    getRunsByRunSignals(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<DecisionPage> {
        return this.operation("GET", "/v1/runs/{run}/signals", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Send a signal. */
    postRunsByRunSignals(run: string, body: Signal, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<Decision> {
        return this.operation("POST", "/v1/runs/{run}/signals", { run }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** A decision record, by signalId or policyDecisionId. */
    getRunsByRunSignalsBySignal(run: string, signal: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<DecisionRecord> {
        return this.operation("GET", "/v1/runs/{run}/signals/{signal}", { run, signal }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Send a signal under an id of the client's. */
    putRunsByRunSignalsBySignal(run: string, signal: string, body: Signal, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<Decision> {
        return this.operation("PUT", "/v1/runs/{run}/signals/{signal}", { run, signal }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** What the run was given. */
    getRunsByRunPayload(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Payload> {
        return this.operation("GET", "/v1/runs/{run}/payload", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Steps of its document and the ways between them. */
    getRunsByRunGraph(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Graph> {
        return this.operation("GET", "/v1/runs/{run}/graph", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** What the step gave. */
    getRunsByRunStepsByStepOutput(run: string, step: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<StepOutput> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}/output", { run, step }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** What the step was given: as written, and with every reference replaced. */
    getRunsByRunStepsByStepInputs(run: string, step: string, options: { attempt?: string | number | boolean; at?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<StepInputs> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}/inputs", { run, step }, { query: pick(options, ["attempt", "at"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Its attempts. */
    getRunsByRunStepsByStepAttempts(run: string, step: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<AttemptPage> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}/attempts", { run, step }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** One attempt. */
    getRunsByRunStepsByStepAttemptsByN(run: string, step: string, n: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Attempt> {
        return this.operation("GET", "/v1/runs/{run}/steps/{step}/attempts/{n}", { run, step, n }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Files that its steps left. */
    getRunsByRunArtifacts(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<ArtifactPage> {
        return this.operation("GET", "/v1/runs/{run}/artifacts", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** The bytes of one; Range is understood. */
    getRunsByRunArtifactsContent(run: string, options: { name?: string | number | boolean; step?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/runs/{run}/artifacts/content", { run }, { query: pick(options, ["name", "step"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** The run as a signed file (docs/format/bundle.md). */
    getRunsByRunBundle(run: string, options: { redact?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/runs/{run}/bundle", { run }, { query: pick(options, ["redact"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Where its chains end, signed, and whether they hold. */
    getRunsByRunProof(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Proof> {
        return this.operation("GET", "/v1/runs/{run}/proof", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** A new run that goes on from an event of this one. */
    postRunsByRunForks(run: string, body: ForkRun, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<RunStatus> {
        return this.operation("POST", "/v1/runs/{run}/forks", { run }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** What a fork would take over. */
    postRunsByRunForksPreview(run: string, body: ForkRun): Promise<ForkPreview> {
        return this.operation("POST", "/v1/runs/{run}/forks/preview", { run }, { body });
    }

    /** A new run of the same document. */
    postRunsByRunRerun(run: string, body: RerunRun, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<RunStatus> {
        return this.operation("POST", "/v1/runs/{run}/rerun", { run }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** What a rerun would take over. */
    postRunsByRunRerunPreview(run: string, body: RerunRun): Promise<ForkPreview> {
        return this.operation("POST", "/v1/runs/{run}/rerun/preview", { run }, { body });
    }

    /** A new run that does one step of an ended run again, and everything below it. */
    postRunsByRunRetry(run: string, body: RetryRun, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<RunStatus> {
        return this.operation("POST", "/v1/runs/{run}/retry", { run }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** What a retry would take over. */
    postRunsByRunRetryPreview(run: string, body: RetryRun): Promise<ForkPreview> {
        return this.operation("POST", "/v1/runs/{run}/retry/preview", { run }, { body });
    }

    /** Events of all runs: a page, NDJSON or SSE by Accept. */
    getEvents(options: { after?: string | number | boolean; cursor?: string | number | boolean; limit?: string | number | boolean; types?: string | number | boolean; "Last-Event-ID"?: string | number | boolean } = {}): Promise<EventPage> {
        return this.operation("GET", "/v1/events", {}, { query: pick(options, ["after", "cursor", "limit", "types"]), headers: pick(options, ["Last-Event-ID"]) });
    }

    /** Send an event to the steps that wait for it. */
    postEvents(body: NewEvent, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<IncomingEvent> {
        return this.operation("POST", "/v1/events", {}, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** Definitions. */
    getDefinitions(options: { limit?: string | number | boolean; cursor?: string | number | boolean } = {}): Promise<DefinitionPage> {
        return this.operation("GET", "/v1/definitions", {}, { query: pick(options, ["limit", "cursor"]) });
    }

    /** Versions of a definition. */
    getDefinitionsByNameVersions(name: string, options: { limit?: string | number | boolean; cursor?: string | number | boolean } = {}): Promise<DefinitionPage> {
        return this.operation("GET", "/v1/definitions/{name}/versions", { name }, { query: pick(options, ["limit", "cursor"]) });
    }

    /** A version. */
    getDefinitionsByNameVersionsBySha256(name: string, sha256: string): Promise<Definition> {
        return this.operation("GET", "/v1/definitions/{name}/versions/{sha256}", { name, sha256 });
    }

    /** Keep a document under the hash of its bytes. */
    putDefinitionsByNameVersionsBySha256(name: string, sha256: string, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<Definition> {
        return this.operation("PUT", "/v1/definitions/{name}/versions/{sha256}", { name, sha256 }, { headers: pick(options, ["Idempotency-Key", "Prefer"]) });
    }

    /** Its bytes. */
    getDefinitionsByNameVersionsBySha256Document(name: string, sha256: string): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/definitions/{name}/versions/{sha256}/document", { name, sha256 });
    }

    /** Approve a version, which another person brought. */
    postDefinitionsByNameVersionsBySha256Approve(name: string, sha256: string, body: Nothing): Promise<Definition> {
        return this.operation("POST", "/v1/definitions/{name}/versions/{sha256}:approve", { name, sha256 }, { body });
    }

    /** Heads of runs as they are stored (docs/format/store-api.md). */
    getStoreRuns(options: { limit?: string | number | boolean; before?: string | number | boolean; status?: string | number | boolean; plan?: string | number | boolean; prefix?: string | number | boolean; since?: string | number | boolean; until?: string | number | boolean; unfinished?: string | number | boolean; roots?: string | number | boolean } = {}): Promise<StoredRuns> {
        return this.operation("GET", "/v1/store/runs", {}, { query: pick(options, ["limit", "before", "status", "plan", "prefix", "since", "until", "unfinished", "roots"]) });
    }

    /** The head of a run as it is stored. */
    getStoreRunsByRun(run: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<StoredRun> {
        return this.operation("GET", "/v1/store/runs/{run}", { run }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Events as they are stored. */
    getStoreRunsByRunRecords(run: string, options: { after?: string | number | boolean; limit?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/records", { run }, { query: pick(options, ["after", "limit"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Ledger entries as they are stored. */
    getStoreRunsByRunLedger(run: string, options: { after?: string | number | boolean; limit?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/ledger", { run }, { query: pick(options, ["after", "limit"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** A document or result that the run refers to. */
    getStoreRunsByRunBlobsBySha256(run: string, sha256: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/blobs/{sha256}", { run, sha256 }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Events without their values. */
    getStoreRunsByRunRedactedRecords(run: string, options: { after?: string | number | boolean; limit?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/redacted/records", { run }, { query: pick(options, ["after", "limit"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Ledger entries without their values. */
    getStoreRunsByRunRedactedLedger(run: string, options: { after?: string | number | boolean; limit?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/redacted/ledger", { run }, { query: pick(options, ["after", "limit"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** The document of the run, or a part of it. */
    getStoreRunsByRunRedactedBlobsBySha256(run: string, sha256: string, options: { "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/redacted/blobs/{sha256}", { run, sha256 }, { headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** A piece of a log or an artifact of the run. */
    getStoreRunsByRunFile(run: string, options: { what?: string | number | boolean; name?: string | number | boolean; offset?: string | number | boolean; limit?: string | number | boolean; tail?: string | number | boolean; "Cairn-Min-Seq"?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/store/runs/{run}/file", { run }, { query: pick(options, ["what", "name", "offset", "limit", "tail"]), headers: pick(options, ["Cairn-Min-Seq"]) });
    }

    /** Check a document. */
    postPlansValidate(body: ValidateDocument): Promise<ValidationReport> {
        return this.operation("POST", "/v1/plans:validate", {}, { body });
    }

    /** The steps of a document and the ways between them. */
    postPlansGraph(body: DrawDocument): Promise<Graph> {
        return this.operation("POST", "/v1/plans:graph", {}, { body });
    }

    /** Engines that share the store, and what executes attempts. */
    getEngines(): Promise<Engines> {
        return this.operation("GET", "/v1/engines", {});
    }

    /** Workers that were heard of lately. */
    getWorkers(): Promise<WorkerPage> {
        return this.operation("GET", "/v1/workers", {});
    }

    /** Tasks for a worker (docs/format/worker.md). */
    postWorkerPoll(body: WorkerPoll): Promise<WorkerAnswer> {
        return this.operation("POST", "/v1/worker/poll", {}, { body });
    }

    /** A worker lives, and renews its leases. */
    postWorkerHeartbeat(body: WorkerHeartbeat): Promise<WorkerAnswer> {
        return this.operation("POST", "/v1/worker/heartbeat", {}, { body });
    }

    /** What steps wrote. */
    postWorkerLogs(body: WorkerLogs): Promise<WorkerAnswer> {
        return this.operation("POST", "/v1/worker/logs", {}, { body });
    }

    /** Results of tasks. */
    postWorkerComplete(body: WorkerResults): Promise<WorkerAnswer> {
        return this.operation("POST", "/v1/worker/complete", {}, { body });
    }

    /** Failures of tasks. */
    postWorkerFail(body: WorkerResults): Promise<WorkerAnswer> {
        return this.operation("POST", "/v1/worker/fail", {}, { body });
    }

    /** Events of a playbook's run that a worker reports (docs/format/noetl-events.md). */
    postExecutionsByRunEvents(run: string, body: WorkerEvents): Promise<WorkerAnswer> {
        return this.operation("POST", "/v1/executions/{run}/events", { run }, { body });
    }

    /** A stored result, by its reference, for a task. */
    getWorkerResultsByToken(token: string, options: { ref?: string | number | boolean } = {}): Promise<Uint8Array | null> {
        return this.operation("GET", "/v1/worker/results/{token}", { token }, { query: pick(options, ["ref"]) });
    }

    /** A file that a step declared. */
    putWorkerArtifactsByTokenByPath(token: string, path: string): Promise<Uint8Array | null> {
        return this.operation("PUT", "/v1/worker/artifacts/{token}/{path}", { token, path });
    }

    /** Tokens of the tenant, without their secrets. */
    getTokens(): Promise<TokenPage> {
        return this.operation("GET", "/v1/tokens", {});
    }

    /** Make a token; its text is returned once. */
    postTokens(body: NewToken): Promise<TokenText> {
        return this.operation("POST", "/v1/tokens", {}, { body });
    }

    /** Revoke a token. */
    deleteTokensByToken(token: string): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/tokens/{token}", { token });
    }

    /** The run that an EngineRunRef names. */
    postRunsResolve(body: RunReference): Promise<ResolvedRun> {
        return this.operation("POST", "/v1/runs:resolve", {}, { body });
    }

    /** getRunStatus of the run that an EngineRunRef names. */
    postRunsStatus(body: RunReference): Promise<RunStatus> {
        return this.operation("POST", "/v1/runs:status", {}, { body });
    }

    /** cancelRun of the run that an EngineRunRef names. */
    postRunsCancel(body: CancelByReference): Promise<Decision> {
        return this.operation("POST", "/v1/runs:cancel", {}, { body });
    }

    /** Send a signal to the run that an EngineRunRef names. */
    postRunsSignal(body: SignalByReference): Promise<Decision> {
        return this.operation("POST", "/v1/runs:signal", {}, { body });
    }

    /** Schedules of the tenant. */
    getSchedules(): Promise<SchedulePage> {
        return this.operation("GET", "/v1/schedules", {});
    }

    /** A schedule, with its next times. */
    getSchedulesBySchedule(schedule: string): Promise<Schedule> {
        return this.operation("GET", "/v1/schedules/{schedule}", { schedule });
    }

    /** Make or change a schedule. */
    putSchedulesBySchedule(schedule: string, body: ScheduleConfig, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<Schedule> {
        return this.operation("PUT", "/v1/schedules/{schedule}", { schedule }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** Remove a schedule; its runs stay. */
    deleteSchedulesBySchedule(schedule: string): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/schedules/{schedule}", { schedule });
    }

    /** Nothing of it fires any more. */
    postSchedulesBySchedulePause(schedule: string, body: ReasonOnly): Promise<Schedule> {
        return this.operation("POST", "/v1/schedules/{schedule}/pause", { schedule }, { body });
    }

    /** It fires again, from now on. */
    postSchedulesByScheduleResume(schedule: string, body: ReasonOnly): Promise<Schedule> {
        return this.operation("POST", "/v1/schedules/{schedule}/resume", { schedule }, { body });
    }

    /** A run of it now, beside its times. */
    postSchedulesByScheduleTrigger(schedule: string, body: ScheduleTrigger, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<RunStatus> {
        return this.operation("POST", "/v1/schedules/{schedule}/trigger", { schedule }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** Its next times. */
    getSchedulesByScheduleNext(schedule: string, options: { limit?: string | number | boolean; from?: string | number | boolean } = {}): Promise<FirePage> {
        return this.operation("GET", "/v1/schedules/{schedule}/next", { schedule }, { query: pick(options, ["limit", "from"]) });
    }

    /** What became of its times, newest first. */
    getSchedulesByScheduleTicks(schedule: string, options: { limit?: string | number | boolean } = {}): Promise<TickPage> {
        return this.operation("GET", "/v1/schedules/{schedule}/ticks", { schedule }, { query: pick(options, ["limit"]) });
    }

    /** Its backfills. */
    getSchedulesByScheduleBackfills(schedule: string): Promise<BackfillPage> {
        return this.operation("GET", "/v1/schedules/{schedule}/backfills", { schedule });
    }

    /** Run the times of a range. */
    postSchedulesByScheduleBackfills(schedule: string, body: NewBackfill, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<Backfill> {
        return this.operation("POST", "/v1/schedules/{schedule}/backfills", { schedule }, { headers: pick(options, ["Idempotency-Key", "Prefer"]), body });
    }

    /** No more of its times begin. */
    deleteSchedulesByScheduleBackfillsByBackfill(schedule: string, backfill: string): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/schedules/{schedule}/backfills/{backfill}", { schedule, backfill });
    }

    /** A webhook that comes in, signed: it becomes an event. */
    postHooksByHook(hook: string, options: { "Idempotency-Key"?: string | number | boolean; Prefer?: string | number | boolean } = {}): Promise<IncomingEvent> {
        return this.operation("POST", "/v1/hooks/{hook}", { hook }, { headers: pick(options, ["Idempotency-Key", "Prefer"]) });
    }

    /** Events from outside, the oldest ids first. */
    getIncoming(options: { name?: string | number | boolean; state?: string | number | boolean; limit?: string | number | boolean } = {}): Promise<IncomingEventPage> {
        return this.operation("GET", "/v1/incoming", {}, { query: pick(options, ["name", "state", "limit"]) });
    }

    /** An event from outside, and who has taken it. */
    getIncomingByEvent(event: string): Promise<IncomingEvent> {
        return this.operation("GET", "/v1/incoming/{event}", { event });
    }

    /** Queues of the tenant. */
    getQueues(): Promise<QueuePage> {
        return this.operation("GET", "/v1/queues", {});
    }

    /** dequeueAndStart: give places that are free. */
    postQueuesReconcile(): Promise<ReconcilePage> {
        return this.operation("POST", "/v1/queues:reconcile", {});
    }

    /** A queue. */
    getQueuesByQueue(queue: string): Promise<Queue> {
        return this.operation("GET", "/v1/queues/{queue}", { queue });
    }

    /** Make or change a queue. */
    putQueuesByQueue(queue: string, body: QueueConfig): Promise<Queue> {
        return this.operation("PUT", "/v1/queues/{queue}", { queue }, { body });
    }

    /** Remove a queue in which nothing waits. */
    deleteQueuesByQueue(queue: string): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/queues/{queue}", { queue });
    }

    /** Nothing of it starts any more. */
    postQueuesByQueuePause(queue: string): Promise<Queue> {
        return this.operation("POST", "/v1/queues/{queue}/pause", { queue });
    }

    /** Its runs start again. */
    postQueuesByQueueResume(queue: string): Promise<Queue> {
        return this.operation("POST", "/v1/queues/{queue}/resume", { queue });
    }

    /** Limits of the tenant. */
    getLimits(): Promise<Limits> {
        return this.operation("GET", "/v1/limits", {});
    }

    /** Change them. */
    putLimits(body: LimitsConfig): Promise<Limits> {
        return this.operation("PUT", "/v1/limits", {}, { body });
    }

    /** Limits of steps, and who has their places. */
    getStepLimits(): Promise<StepLimitPage> {
        return this.operation("GET", "/v1/step-limits", {});
    }

    /** A limit of steps. */
    getStepLimitsByLimit(limit: string): Promise<StepLimit> {
        return this.operation("GET", "/v1/step-limits/{limit}", { limit });
    }

    /** Say how many attempts work at once, and how many begin in a time. */
    putStepLimitsByLimit(limit: string, body: StepLimitConfig): Promise<StepLimit> {
        return this.operation("PUT", "/v1/step-limits/{limit}", { limit }, { body });
    }

    /** Say nothing of a limit any more: documents do. */
    deleteStepLimitsByLimit(limit: string): Promise<Uint8Array | null> {
        return this.operation("DELETE", "/v1/step-limits/{limit}", { limit });
    }

    /** Alerts. */
    getAlerts(options: { run?: string | number | boolean; state?: string | number | boolean } = {}): Promise<AlertPage> {
        return this.operation("GET", "/v1/alerts", {}, { query: pick(options, ["run", "state"]) });
    }

    /** A person has seen it. */
    postAlertsByAlertAck(alert: string, body: Nothing): Promise<Alert> {
        return this.operation("POST", "/v1/alerts/{alert}:ack", { alert }, { body });
    }

    /** Sinks: where they are and what waits. */
    getOutbox(): Promise<SinkPage> {
        return this.operation("GET", "/v1/outbox", {});
    }

    /** Where a sink goes on. */
    postOutboxBySinkRewind(sink: string, body: Rewind): Promise<Count> {
        return this.operation("POST", "/v1/outbox/{sink}:rewind", { sink }, { body });
    }

    /** Dead letters. */
    getDlq(options: { sink?: string | number | boolean; limit?: string | number | boolean; cursor?: string | number | boolean } = {}): Promise<LetterPage> {
        return this.operation("GET", "/v1/dlq", {}, { query: pick(options, ["sink", "limit", "cursor"]) });
    }

    /** Send dead letters of a sink once more. */
    postDlqRedrive(body: Redrive): Promise<Count> {
        return this.operation("POST", "/v1/dlq:redrive", {}, { body });
    }

    /** Send a dead letter once more. */
    postDlqByLetterRedrive(letter: string, body: ReasonOnly): Promise<Count> {
        return this.operation("POST", "/v1/dlq/{letter}:redrive", { letter }, { body });
    }

    /** Give a dead letter up. */
    deleteDlqByLetter(letter: string, options: { reason?: string | number | boolean } = {}): Promise<Count> {
        return this.operation("DELETE", "/v1/dlq/{letter}", { letter }, { query: pick(options, ["reason"]) });
    }

    /** Decisions, allowed and denied. */
    getAudit(options: { after?: string | number | boolean; limit?: string | number | boolean; cursor?: string | number | boolean; sort?: string | number | boolean } = {}): Promise<AuditPage> {
        return this.operation("GET", "/v1/audit", {}, { query: pick(options, ["after", "limit", "cursor", "sort"]) });
    }

    /** Whether the chain of decisions is whole. */
    getAuditVerify(): Promise<AuditReport> {
        return this.operation("GET", "/v1/audit:verify", {});
    }

    /** What is in the store, how it grows and where its bytes are. */
    getUsage(): Promise<StoreUsage> {
        return this.operation("GET", "/v1/usage", {});
    }
}
