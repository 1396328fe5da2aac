//! Generates the `impl Event` of a struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields};

use crate::attributes::{EventAttributes, KeySource};
use crate::template::KeyTemplate;

/// Generates the `impl Event` of a struct with `#[event(…)]` attributes.
pub(crate) fn expand_event(input: &DeriveInput) -> syn::Result<TokenStream> {
    let struct_name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(_) | Data::Union(_) => {
            return Err(Error::new(
                struct_name.span(),
                "an event is a struct; write one struct for each type of event",
            ));
        }
    };
    let EventAttributes { event_type, key, sub_object: sub, priority } =
        EventAttributes::parse(&input.attrs, struct_name)?;
    let key = key.map(|source| expand_key_method(&quote!(key), &source, fields)).transpose()?;
    let sub = sub.map(|source| expand_key_method(&quote!(sub), &source, fields)).transpose()?;
    let priority = priority.map(
        |number| quote!(const PRIORITY: ::core::option::Option<u16> = ::core::option::Option::Some(#number);),
    );
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::pointsman::Event for #struct_name #arguments #bounds {
            const TYPE: &'static str = #event_type;
            #priority
            #key
            #sub
        }
    })
}

/// Generates `fn key(&self)` or `fn sub(&self)`.
fn expand_key_method(
    method_name: &TokenStream,
    source: &KeySource,
    fields: &Fields,
) -> syn::Result<TokenStream> {
    let body = match source {
        KeySource::Expression(expression) => quote!(#expression),
        KeySource::Template(literal) => {
            let KeyTemplate { format_string: format, placeholder_fields } =
                KeyTemplate::parse(literal, fields)?;
            let format = syn::LitStr::new(&format, literal.span());
            quote!(::std::format!(#format #(, &self.#placeholder_fields)*))
        }
    };
    Ok(quote! {
        fn #method_name(&self) -> ::core::option::Option<::std::string::String> {
            ::pointsman::event::IntoKey::into_key(#body)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_to_text(item: &str) -> syn::Result<String> {
        expand_event(&syn::parse_str(item).unwrap()).map(|tokens| tokens.to_string())
    }

    #[test]
    fn a_struct_expands_to_an_event_impl() {
        let out = expand_to_text(
            r#"#[event(type = "a.b", key = "k:{id}", sub = self.part(), priority = 7)] struct E { id: u32 }"#,
        )
        .unwrap();
        for piece in [
            "impl :: pointsman :: Event for E",
            "\"a.b\"",
            "\"k:{}\" , & self . id",
            "self . part ()",
            "7u16",
        ] {
            assert!(out.contains(piece), "{piece} in {out}");
        }
    }

    #[test]
    fn omitted_attributes_keep_their_defaults() {
        let out = expand_to_text(r#"#[event(type = "a")] struct E;"#).unwrap();
        assert!(!out.contains("fn ") && !out.contains("PRIORITY"), "{out}");
    }

    #[test]
    fn only_structs_can_be_events() {
        let error = expand_to_text(r#"#[event(type = "a")] enum E { A, B }"#).unwrap_err();
        assert!(error.to_string().contains("an event is a struct"));
    }
}
