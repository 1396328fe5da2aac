//! Parses the attribute `#[event(…)]`.

use pointsman_core::{EventType, Priority, names};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitInt, LitStr};

/// The event attributes of one struct, each checked as far as possible without its fields.
pub(crate) struct EventAttributes {
    pub(crate) event_type: LitStr,
    pub(crate) key: Option<KeySource>,
    pub(crate) sub_object: Option<KeySource>,
    pub(crate) priority: Option<u16>,
}

/// How the derived code computes the key of an event's object or sub-object.
pub(crate) enum KeySource {
    /// A template with placeholders: `"record:{id}"`.
    Template(LitStr),
    /// An expression: `self.object_key()`, or any other.
    Expression(Box<Expr>),
}

impl EventAttributes {
    /// Parses all `#[event(…)]` attributes of the struct `struct_name`. The error about a missing type points at that
    /// name.
    pub(crate) fn parse(attributes: &[Attribute], struct_name: &syn::Ident) -> syn::Result<Self> {
        let mut event_type = None;
        let mut key = None;
        let mut sub_object = None;
        let mut priority = None;
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| {
                match meta.path.get_ident().map(ToString::to_string).as_deref() {
                    Some("type") => set_once(&mut event_type, &meta, parse_event_type),
                    Some("key") => set_once(&mut key, &meta, parse_key_source),
                    Some("sub") => set_once(&mut sub_object, &meta, parse_key_source),
                    Some("priority") => set_once(&mut priority, &meta, parse_priority),
                    _ => {
                        Err(meta.error("an event has `type`, `key`, `sub` and `priority`, and nothing else"))
                    }
                }
            })?;
        }
        let event_type = event_type.ok_or_else(|| {
            Error::new(
                struct_name.span(),
                "an event has a type; write one like #[event(type = \"record.published\")]",
            )
        })?;
        Ok(Self { event_type, key, sub_object, priority })
    }
}

/// Parses an attribute into `slot`; an attribute that is given twice is an error.
fn set_once<T>(
    slot: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    parse: impl FnOnce(&ParseNestedMeta<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    if slot.is_some() {
        return Err(meta.error("this attribute is given twice"));
    }
    *slot = Some(parse(meta)?);
    Ok(())
}

/// Parses the event type, and checks that a producer may emit it.
fn parse_event_type(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let literal: LitStr = meta.value()?.parse()?;
    let event_type = EventType::new(literal.value()).map_err(|error| Error::new(literal.span(), error))?;
    names::check_emittable_type(&event_type).map_err(|reserved| Error::new(literal.span(), reserved))?;
    Ok(literal)
}

fn parse_key_source(meta: &ParseNestedMeta<'_>) -> syn::Result<KeySource> {
    Ok(match meta.value()?.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Str(template), .. }) => KeySource::Template(template),
        expression => KeySource::Expression(Box::new(expression)),
    })
}

fn parse_priority(meta: &ParseNestedMeta<'_>) -> syn::Result<u16> {
    let literal: LitInt = meta.value()?.parse()?;
    let number = literal.base10_parse::<i64>()?;
    let priority = Priority::try_from(number).map_err(|error| Error::new(literal.span(), error))?;
    Ok(priority.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_attributes(attributes: &str) -> syn::Result<EventAttributes> {
        let input: syn::DeriveInput =
            syn::parse_str(&format!("{attributes} struct E {{ id: u32 }}")).unwrap();
        EventAttributes::parse(&input.attrs, &input.ident)
    }

    fn error_text(attributes: &str) -> String {
        match parse_attributes(attributes) {
            Ok(_) => panic!("{attributes} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn attributes_are_parsed_from_one_list_or_from_several() {
        for text in [
            r#"#[event(type = "a.b", key = "k:{id}", sub = self.part(), priority = 9000)]"#,
            r#"#[event(type = "a.b")] #[event(key = "k:{id}", sub = self.part())] #[event(priority = 9000)]"#,
        ] {
            let parsed = parse_attributes(text).ok().unwrap();
            assert_eq!(parsed.event_type.value(), "a.b");
            assert!(
                matches!(parsed.key, Some(KeySource::Template(template)) if template.value() == "k:{id}")
            );
            assert!(matches!(parsed.sub_object, Some(KeySource::Expression(_))));
            assert_eq!(parsed.priority, Some(9000));
        }
    }

    #[test]
    fn a_missing_invalid_or_reserved_event_type_is_rejected() {
        assert!(error_text("").contains("an event has a type"));
        assert!(error_text("#[event(key = \"k\")]").contains("an event has a type"));
        for bad in ["", "a..b", "a b", "a/b", "é"] {
            error_text(&format!("#[event(type = {bad:?})]"));
        }
        assert!(error_text("#[event(type = \"OrderStarted\")]").contains("only the engine itself"));
        assert!(error_text("#[event(type = \"task\")]").contains("task is the name of a frame"));
        assert!(error_text("#[event(type = 7)]").contains("string literal"));
    }

    #[test]
    fn unknown_repeated_and_out_of_range_attributes_are_rejected() {
        assert!(error_text("#[event(type = \"a\", colour = 1)]").contains("nothing else"));
        assert!(error_text("#[event(type = \"a\", type = \"b\")]").contains("twice"));
        assert!(error_text("#[event(type = \"a\", priority = 0)]").contains("1 to 9000"));
        assert!(error_text("#[event(type = \"a\", priority = 9001)]").contains("1 to 9000"));
    }
}
