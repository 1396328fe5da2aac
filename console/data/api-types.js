// Types of the API responses that the screens use; openapi.json describes all of them. Nothing here is run.

/** An event of the stream. Engine events have their own fields instead of `value`.
 * @typedef {{eventId: number, TYPE: string, key?: unknown, prev?: number | null, sub?: string, value?: unknown,
 *   context?: Record<string, string>, tenant?: string} & Record<string, unknown>} JournalEvent */

/** A task change, streamed when it happens.
 * @typedef {{id: string, handler: string, tenant: string, key: string | null, collection: string,
 *   event_id: number | null, status: string, state: string, attempt: number, error: string | null,
 *   delay_until: string, time: string}} TaskChange */

/** @typedef {{id: string, source: string, collection: string, priority: number, created_at: string, started_at: string,
 *   finished_at: string, status: string, state: string, handler: string, tenant: string, key: string | null,
 *   event_id: number | null, retries: number, attempt: number, planned_at: string, delay_until: string,
 *   error: string | null}} Task */

/** @typedef {{eventId: number, tasks: Task[], next: string | null}} TaskPage */

/** @typedef {{number: number, started_at: string, ended_at: string, end: string, error: string | null}} Attempt */

/** @typedef {Task & {eventId: number, running: {number: number, started_at: string, lease_until: string} | null,
 *   attempts: Attempt[], result: unknown}} TaskDetail */

/** @typedef {{gate: string, open: boolean, detail: string, until: string, tasks: string[], rule: Rule | null}} Gate */

/** @typedef {{eventId: number, task_id: string, status: string, summary: string, gates: Gate[]}} TaskWhy */

/** @typedef {{time: string, message: string, level: string}} LogLine */

/** @typedef {{handler: string | null, collection: string | null, tenant: string | null, key: string | null, status: string,
 *   start: string | null, end: string | null}} RedriveFilter */

/** @typedef {{id: string, state: string, stop_reason: string | null, by: string, filter: RedriveFilter, rate: string | null,
 *   canary: number | null, started_at: string, ended_at: string, matched: number, retried: number, refused: number}} Redrive */

/** @typedef {{event: JournalEvent, task: string | null, caused: CausedEvent[]}} CausedEvent */

/** @typedef {{eventId: number | null, task: string | null, depth: number}} EventCause */

/** @typedef {{eventId: number, event: JournalEvent, cause: EventCause | null, tasks: Task[], caused: CausedEvent[], causedTruncated: boolean}} EventDetail */

/** @typedef {{handler: string, head: Task, halted: boolean, waiting: number, more: boolean}} ObjectLane */

/** @typedef {{eventId: number, key: string, tenant: string, last: number, events: JournalEvent[], lanes: ObjectLane[],
 *   moreLanes: boolean}} ObjectDetail */

/** @typedef {{ready: number, waiting: number, scheduled: number, running: number, halted: number, missing: number}}
 * QueueCounts */

/** @typedef {{kind: "pause" | "block", space: "handler" | "collection" | "schedule" | "chain", name: string,
 *   tenant: string | null, by: string | null, reason: string | null, since: string}} Rule */

/** @typedef {QueueCounts & {tenant: string, collection: string | null, chain: string | null, node: string | null,
 *   oldest_runnable_seconds: number | null, held: boolean}} Queue */

/** @typedef {{concurrency: number | null, concurrency_per_key: number | null, rate: string | null, weight: number,
 *   ageing_seconds: number | null}} HandlerLimits */

/** @typedef {{name: string, defined: boolean, run: string | null, target: string | null, timeout_seconds: number | null,
 *   order: string | null, on_error: string | null, retry_max: number | null, limits: HandlerLimits | null, counts:
 * QueueCounts,
 *   oldest_runnable_seconds: number | null, queues: Queue[], more_queues: number, rules: Rule[],
 *   source: {tenant: string, collections: {name: string, priority: number}[]} | null,
 *   routes: {type: string, sync: boolean}[]}} Handler */

/** @typedef {{planned_at: string, decided_at: string, outcome: "fired" | "late" | "caught_up" | "skipped",
 *   reason: string | null, event_id: number | null, task_id: string | null}} Fire */

/** @typedef {{event?: {type: string, key: string | null, tenant: string}, run?: {source: string, collection: string},
 *   order?: {chain: string, id: string | null, node: string | null, tenant: string}}} ScheduleAction */

/** @typedef {{name: string, defined: boolean, expression: string, description: string, timezone: string, action: ScheduleAction | null,
 *   catch_up: string | null, catch_up_within_seconds: number, overlap: string | null, jitter_seconds: number,
 *   warnings: string[], next: string[], last: Fire | null, held: boolean, rules: Rule[]}} Schedule */

/** @typedef {{max: number, backoff: string, delay_seconds: number, max_delay_seconds: number,
 *   delays_seconds: number[]}} SetbackPolicy */

/** @typedef {"process" | "stop" | "next_state"} ChainNodeAction */

/** @typedef {{id: string, end: boolean, handler: string | null, next: string | null, on_error: string | null,
 *   setback: SetbackPolicy | null, action: ChainNodeAction, orders: number | null}} ChainNode */

/** @typedef {{path: string, defined: boolean, state: "running" | "stopped", nodes: ChainNode[],
 *   stranded: {node: string, orders: number}[], orders: number | null, rules: Rule[]}} Chain */

/** @typedef {{path: string, chain: string, id: string, node: string, value: unknown, tenant: string, priority: number,
 *   planned_at: string, created_at: string, started_at: string, suspended: boolean,
 *   task: {id: string, status: string, due: string} | null, setback_until: string, stranded: boolean, blocked_by?: string,
 *   failed?: {task: string, error: string}}} Order */

/** @typedef {{number: number, time: string, by: string, action: string, target: string, detail: string}} AuditEntry */

/** @typedef {{at: string, applied: boolean, error: string | null,
 *   faults: {location: string, message: string, excerpt: string | null}[], more_faults: number}} ConfigurationReload */

/** @typedef {{node: string, files: string[], loaded_at: string, watched: boolean, settings: string, warnings: string[],
 *   reloads: ConfigurationReload[]}} ConfigurationReport */

/** @typedef {{id: number, name: string, alive: boolean, joined_at: string, last_heartbeat_at: string, handlers: string[],
 *   slots: number, running: number, clock: {offset_ms: number, out_of_service: boolean, last_step: {at: string, by_ms: number} | null}}} Node */

/** @typedef {{status: string, version: string, store: {kind: string, reachable: boolean, writable: boolean} | null, warnings?: string[]}} Health */

export {};
