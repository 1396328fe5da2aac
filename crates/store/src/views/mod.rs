//! Conversion of rows into the views that callers see, and limits of pages; shared by the readers of all stores.
//! Nothing here depends on a database: each reader supplies the columns.

mod events;
mod objects;
mod orders;
mod tasks;

pub use events::{
    EventColumns, JournalPageBuilder, MAX_PAGE_BYTES, MAX_SCANNED_ROWS, encode_context, event_payload_size,
};
pub use objects::{LANES_TO_READ, build_object_view};
pub use orders::{
    OrderPageBuilder, OrderStatisticsColumns, StepTaskColumns, ViewEnvironment, build_chain_view,
    order_key_range, statistics_of_order,
};
pub use tasks::{
    ActiveRowFilter, ActiveTaskDetails, ArchivedRowFilter, MAX_LOG_PAGE_BYTES, TaskPageBuilder,
    append_successful_attempt, build_task_page, choose_row_filters, is_halted_or_missing,
    task_and_older_created_before, task_from_active_row, task_from_archived_row, task_matches_filter,
};
