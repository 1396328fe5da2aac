//! Conversion of rows into the views that callers see, and limits of pages; shared by the readers of all stores.
//! Nothing here depends on a database: each reader supplies the columns.

mod events;
mod objects;
mod orders;
mod tasks;

pub use events::{JournalPageBuilder, MAX_PAGE_PAYLOAD_BYTES, MAX_SCANNED_ROWS_PER_PAGE, event_payload_size};
pub use objects::{LANES_READ_PER_OBJECT_VIEW, build_object_view};
pub use orders::{
    OrderPageBuilder, OrderStatisticsColumns, StepTaskColumns, ViewEnvironment, build_chain_view,
    order_key_range, statistics_of_order,
};
pub use tasks::{
    ActiveRowFilter, ActiveTaskDetails, ArchivedRowFilter, MAX_LOG_PAGE_BYTES, TaskPageBuilder,
    append_successful_attempt, are_task_and_older_created_before, build_page_of_unsorted_tasks,
    choose_row_filters, is_halted_or_missing, task_from_active_row, task_from_archived_row,
    task_matches_filter,
};
