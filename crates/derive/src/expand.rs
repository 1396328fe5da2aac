//! The impl that comes out.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::attributes::{Attributes, Naming};
use crate::template::Template;

pub(crate) fn event(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(_) | Data::Union(_) => {
            return Err(Error::new(
                name.span(),
                "an event is a struct; make one for each thing that happens",
            ));
        }
    };
    let Attributes { kind, key, sub, priority } = Attributes::read(&input.attrs, name)?;
    let key = key.map(|naming| method(&quote!(key), &naming, fields)).transpose()?;
    let sub = sub.map(|naming| method(&quote!(sub), &naming, fields)).transpose()?;
    let priority = priority.map(
        |number| quote!(const PRIORITY: ::core::option::Option<u16> = ::core::option::Option::Some(#number);),
    );
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::pointsman::Event for #name #arguments #bounds {
            const TYPE: &'static str = #kind;
            #priority
            #key
            #sub
        }
    })
}

/// `fn key(&self)` or `fn sub(&self)`.
fn method(name: &TokenStream, naming: &Naming, fields: &Fields) -> Result<TokenStream> {
    let body = match naming {
        Naming::Expression(expression) => quote!(#expression),
        Naming::Template(literal) => {
            let Template { format, fields } = Template::read(literal, fields)?;
            let format = syn::LitStr::new(&format, literal.span());
            quote!(::std::format!(#format #(, &self.#fields)*))
        }
    };
    Ok(quote! {
        fn #name(&self) -> ::core::option::Option<::std::string::String> {
            ::pointsman::event::IntoKey::into_key(#body)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: &str) -> Result<String> {
        event(&syn::parse_str(item).unwrap()).map(|tokens| tokens.to_string())
    }

    #[test]
    fn a_struct_becomes_an_impl() {
        let out = expanded(
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
    fn what_is_left_out_keeps_its_default() {
        let out = expanded(r#"#[event(type = "a")] struct E;"#).unwrap();
        assert!(!out.contains("fn ") && !out.contains("PRIORITY"), "{out}");
    }

    #[test]
    fn only_structs_are_events() {
        let fault = expanded(r#"#[event(type = "a")] enum E { A, B }"#).unwrap_err();
        assert!(fault.to_string().contains("an event is a struct"));
    }
}
