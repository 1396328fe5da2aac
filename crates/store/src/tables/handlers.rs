//! The table of handlers.

use pointsman_core::HandlerDef;
use pointsman_core::limit::LimiterAndBreakerState;

use crate::error::TableResult;
use crate::row::{HandlerId, HandlerRow};

/// Handlers with their limiter states and missed events.
pub trait HandlerTable {
    /// Lists all handlers ever registered, by number; the numbers are 1, 2, 3, ….
    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>>;

    /// Makes these the defined handlers; all others become undefined.
    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()>;

    fn write_limiter_state(&mut self, handler: HandlerId, state: &LimiterAndBreakerState) -> TableResult<()>;

    /// Reads the ranges of the journal in which a handler was not defined, as written by
    /// [`Self::write_missed_event_ranges_json`].
    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String>;

    fn write_missed_event_ranges_json(&mut self, handler: HandlerId, gaps: &str) -> TableResult<()>;
}
