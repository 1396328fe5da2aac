//! What readers of all stores share: how rows become what callers see, and how long a page is. It knows no database;
//! whoever reads brings the columns, in whatever way its database likes best.

mod events;
mod objects;
mod orders;
mod tasks;

pub use events::{EventColumns, JournalPage, PAGE_BYTES, SCAN, context_text, weight};
pub use objects::{LANES_READ, object_view};
pub use orders::{OrderColumns, OrderPaging, StepColumns, Surroundings, chain_view, counts, key_range};
pub use tasks::{
    LOG_BYTES, LiveNames, LiveRows, PastRows, TaskPaging, all_older_than, few_tasks, has_ended, matches,
    rows_wanted, task_of_live, task_of_past, with_success,
};
