//! `#[derive(Event)]`: a plain struct becomes an event.
//!
//! ```text
//!  attributes   what stands in #[event(…)], checked by the rules of the core
//!  template     "record:{id}" as a format string over the struct's fields
//!  expand       the impl that comes out
//! ```
//!
//! The names in an attribute are checked by the very types that check them at run time, so a type that
//! compiles is a type that can be emitted. Every fault is shown at the attribute that has it.

mod attributes;
mod expand;
mod template;

use proc_macro::TokenStream;

/// Makes a struct an event. See `pointsman::Event`, which explains the attributes.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::event(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
