//! What readers of all stores share: how rows become what callers see, and how long a page is. It knows no database;
//! whoever reads brings the columns, in whatever way its database likes best.

mod events;
mod objects;
mod orders;
mod tasks;

pub use events::{EventColumns, JournalPageBuilder, MAX_PAGE_BYTES, MAX_SCANNED_ROWS, context_text, weight};
pub use objects::{LANES_TO_READ, object_view};
pub use orders::{
    OrderPageBuilder, OrderStatisticsColumns, StepTaskColumns, ViewEnvironment, chain_view, counts, key_range,
};
pub use tasks::{
    ActiveRowFilter, ActiveTaskNames, ArchivedRowFilter, MAX_LOG_PAGE_BYTES, TaskPageBuilder, all_older_than,
    few_tasks, has_ended, matches, rows_wanted, task_of_live, task_of_past, with_success,
};
