//! The kinds of handlers.
