// Names for what the API answers. Made from its own description (gen/api, by `npm run types`), with members that the description
// leaves open spelled out.
import type { components } from "./gen/api";

type S = components["schemas"];
export type RunRow = S["RunRow"];
export type StoreUsage = S["StoreUsage"];
export type StepInputs = S["StepInputs"];
export type Engines = S["Engines"];
export type Limits = S["Limits"];
export type Headline = S["Headline"];
export type HeadlinePart = S["HeadlinePart"];
export type Snapshot = S["RunSnapshot"];
export type Step = S["Step"] & { loop?: { done: number; failed: number; started: number; total: number }; visit?: number; tasks?: { label: string; attempts: number; done: number; failed: number; runs: number }[] };
export type Attempt = S["Attempt"];
export type Graph = S["Graph"];
export type GraphStep = Graph["steps"][number];
export type Problem = S["Problem"];
export type Principal = S["Principal"];
export type Definition = S["Definition"];
export type ForkPreview = S["ForkPreview"];
export type Queue = S["Queue"];
export type Fault = S["Fault"];
export type Schedule = S["Schedule"];
export type Tick = S["Tick"];
export type Fire = S["Fire"];
export type Backfill = S["Backfill"];
export type Incoming = S["IncomingEvent"];

// A sentence of the server in its parts: each has one member.
export interface Part { text?: string; step?: string; since?: string; due?: string; by?: string; code?: string; expr?: string; said?: string }
export interface Fail { code: string; message: string; retryable?: boolean; exitCode?: number; detail?: string }
export interface WhyAtom { text: string; joined?: string; reference: string; operator: string; right: unknown; left?: unknown; result?: boolean | null; error?: string }
export interface WhyArc { from?: string; to?: string; visit?: number; seq: number; taken: boolean; merged?: boolean; when?: string; holds?: boolean; values?: Record<string, unknown> }
export interface WhySignal { type: string; step?: string; decision: string; by: string; role: string; reason?: string; at: string; seq: number; errorCode?: string; errorMessage?: string }
export interface Why {
    runId: string; step?: string; kind?: string; at: { seq: number; time: string }; runStatus: string; substatus?: string; state?: string; reason: string; verdict: string; verdictParts?: Part[]; visit?: number; visits?: number;
    since?: string; seq?: number; reproduced: boolean; decisions?: { checked: number; reproduced: number; doubt?: string };
    cause?: { step: string; state: string; seq?: number; verdict: string; verdictParts?: Part[] };
    dependencies?: { step: string; state: string; reason?: string; seq?: number; errorCode?: string }[];
    rule?: { name: string; needs: string; success: number; failed: number; skipped: number; open: number; row: string; passes?: boolean; outlook?: string };
    when?: { text: string; broken?: boolean; decided: boolean; result?: boolean | null; atoms?: WhyAtom[] };
    gate?: { message: string; role: string; since?: string; timeoutMs?: number; deadline?: string; onTimeout?: string; answer?: { approved: boolean; by?: string; at: string; seq: number } };
    event?: { name: string; correlation?: string };
    loop?: { iteration: number; maxIterations: number; verdict?: string; open?: { step: string; state: string }[] };
    attempts?: { attempt: number; startedBy: string; seq: number; startedAt: string; result: string; endSeq?: number; endAfterSeq?: number; endedAt?: string; durationMs?: number; error?: Fail; retry?: string; redispatched?: number }[];
    retry?: { maxAttempts: number; used: number; left: number; on: string; backoff: string; delayMs: number; verdict?: string; next?: { attempt: number; notBefore: string; seq: number } };
    arcs?: WhyArc[]; routes?: WhyArc[]; admission?: { allowed: boolean; rule?: string; when?: string; seq: number };
    policy?: { task: string; iteration?: number; attempt: number; seq: number; action: string; rule?: string; when?: string; due?: string }[];
    due?: string; timeoutMs?: number; onFailure?: string; childRun?: string; reusedFrom?: string; givenBy?: string;
    pause?: { cycle: number; since: string; seq: number; by?: string; reason?: string; inFlight: number };
    signals?: WhySignal[]; owner?: { alive: boolean; pid?: number }; next?: string[];
    counts?: Record<string, number>; error?: Fail; failedStep?: string; steps?: { step: string; state: string; reason: string; seq?: number; verdict: string; verdictParts?: Part[] }[]; stepsLeftOut?: number;
}
export interface DecisionRecord {
    signalId: string; signalType: string; decision: string; policyDecisionId: string; signalDecisionId?: string; reason?: string; signalPayload?: Record<string, unknown>;
    audit: { actorId: string; actorRole: string; timestamp: string; reason?: string; sourceIp?: string };
    engineProcessedAt?: string; engineResult?: { status: string; errorCode?: string; newRunId?: string }; approvedBy?: string; approvalRequired?: boolean;
}
export interface Alert { id: string; name: string; priority: string; state: string; runId?: string; runSeq?: number; subject?: string; text?: string; count?: number; firstAt?: string; lastAt?: string; closedAt?: string; acknowledgedBy?: string; acknowledgedAt?: string }
export interface Sink { name: string; type: string; state: string; circuit: string; position?: number; end?: number; waiting?: number; lagMs?: number; delivered?: number; duplicates?: number; deadLetters?: number; attempts?: number; nextTryAt?: string; lastError?: string }
export interface Letter { id: string; sink: string; position: number; runId: string; runSeq: number; eventId: string; eventType: string; class: string; error: string; attempts: number; firstAt: string; lastAt: string; redrive: boolean }
export interface Worker { worker: string; tenant: string | null; pool: string; leases: number; slots: number; silentMs: number; draining: boolean }
