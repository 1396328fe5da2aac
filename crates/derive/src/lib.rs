//! `#[derive(Event)]`: implements `pointsman::Event` for a plain struct.
//!
//! ```text
//!  attributes   parses #[event(…)], checked by the rules of the core
//!  template     parses "record:{id}" as a format string over the struct's fields
//!  expand       generates the impl
//! ```
//!
//! The names in an attribute are checked by the same types as at run time, so a type that compiles can be emitted.
//! Every error points at its attribute.

#![warn(missing_docs)]

mod attributes;
mod expand;
mod template;

use proc_macro::TokenStream;

/// Implements `pointsman::Event` for a struct. That trait documents the attributes.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand_event(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
