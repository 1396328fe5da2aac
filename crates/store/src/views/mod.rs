//! Conversion of rows into the views that callers see, and limits of pages; shared by the readers of all stores.
//! Nothing here depends on a database: each reader supplies the columns.

mod events;
mod objects;
mod orders;
mod tasks;

pub use events::{
    EventColumns, JournalPageBuilder, MAX_PAGE_BYTES, MAX_SCANNED_ROWS, encode_context, event_size,
};
pub use objects::{LANES_TO_READ, build_object_view};
pub use orders::{
    OrderPageBuilder, OrderStatisticsColumns, StepTaskColumns, ViewEnvironment, build_chain_view,
    count_order, order_key_range,
};
pub use tasks::{
    ActiveRowFilter, ActiveTaskNames, ArchivedRowFilter, MAX_LOG_PAGE_BYTES, TaskPageBuilder,
    add_success_attempt, are_all_older_than, choose_row_filters, is_halted_or_missing, page_of_tasks,
    task_from_active_row, task_from_archived_row, task_matches,
};
