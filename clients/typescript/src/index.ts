// A client of Cairn's service for browsers and Node, and workers for Node. No dependencies.
export * from "./api.js";
export { Client, Run, RunFailed, type RunEvent, type SignalOptions, type Start } from "./client.js";
export { parse, stringify } from "./exact.js";
export { CairnError, Problem, type Settings, Unreachable } from "./transport.js";
export { Permanent, Retryable, StepError, type StepFunction, Task, Worker, type WorkerSettings } from "./worker.js";
