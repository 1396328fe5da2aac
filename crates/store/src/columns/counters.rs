//! The counters of a store.

use super::columns;

columns! {
    /// The counters of a store, and the random numbers that it was created with: one row.
    CounterColumns key() {
        task_id_namespace: i64,
        salt: i64,
        last_event: i64,
        expired_up_to: i64,
        /// Number of events before the first that has not expired.
        expired_events: i64,
        journaled_events: i64,
        last_task: i64,
        last_fence: i64,
        last_object: i64,
        archived_tasks: i64,
        last_node: i64,
    }
}
