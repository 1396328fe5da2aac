//! Handlers.

use std::borrow::Cow;

use super::columns;

columns! {
    /// The columns of a handler that was ever registered.
    HandlerColumns<'a> key(id) {
        id: i64,
        name: Cow<'a, str>,
        /// The definition, as JSON.
        def: Cow<'a, str>,
        defined: bool,
        /// JSON; empty if the handler has no limiter.
        limiter_state: Cow<'a, str>,
        /// The ranges of the journal in which the handler was not defined, as JSON.
        gaps: Cow<'a, str>,
    }
}
