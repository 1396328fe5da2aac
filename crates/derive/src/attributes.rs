//! What stands in `#[event(…)]`.

use pointsman_core::{HandlingKey, Priority, names};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitInt, LitStr, Result};

/// The attributes of one struct, each checked as far as it can be without looking at the fields.
pub(crate) struct Attributes {
    pub(crate) kind: LitStr,
    pub(crate) key: Option<Naming>,
    pub(crate) sub: Option<Naming>,
    pub(crate) priority: Option<u16>,
}

/// How an event names its object.
pub(crate) enum Naming {
    /// `"record:{id}"`.
    Template(LitStr),
    /// `self.object_key()`, or any other expression.
    Expression(Box<Expr>),
}

impl Attributes {
    /// Reads every `#[event(…)]`. `name` is the struct's, to be pointed at when there is none.
    pub(crate) fn read(attributes: &[Attribute], name: &syn::Ident) -> Result<Self> {
        let mut kind = None;
        let mut key = None;
        let mut sub = None;
        let mut priority = None;
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| {
                match meta.path.get_ident().map(ToString::to_string).as_deref() {
                    Some("type") => once(&mut kind, &meta, kind_of),
                    Some("key") => once(&mut key, &meta, naming),
                    Some("sub") => once(&mut sub, &meta, naming),
                    Some("priority") => once(&mut priority, &meta, priority_of),
                    _ => {
                        Err(meta.error("an event has `type`, `key`, `sub` and `priority`, and nothing else"))
                    }
                }
            })?;
        }
        let kind = kind.ok_or_else(|| {
            Error::new(
                name.span(),
                "an event has a type; write one like #[event(type = \"record.published\")]",
            )
        })?;
        Ok(Self { kind, key, sub, priority })
    }
}

fn once<T>(
    slot: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    read: impl FnOnce(&ParseNestedMeta<'_>) -> Result<T>,
) -> Result<()> {
    if slot.is_some() {
        return Err(meta.error("this stands here twice"));
    }
    *slot = Some(read(meta)?);
    Ok(())
}

fn kind_of(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let literal: LitStr = meta.value()?.parse()?;
    let kind = HandlingKey::new(literal.value()).map_err(|fault| Error::new(literal.span(), fault))?;
    names::check_emittable(&kind).map_err(|reserved| Error::new(literal.span(), reserved))?;
    Ok(literal)
}

fn naming(meta: &ParseNestedMeta<'_>) -> Result<Naming> {
    Ok(match meta.value()?.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Str(template), .. }) => Naming::Template(template),
        expression => Naming::Expression(Box::new(expression)),
    })
}

fn priority_of(meta: &ParseNestedMeta<'_>) -> Result<u16> {
    let literal: LitInt = meta.value()?.parse()?;
    let number = literal.base10_parse::<i64>()?;
    let priority = Priority::try_from(number).map_err(|fault| Error::new(literal.span(), fault))?;
    Ok(priority.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(attributes: &str) -> Result<Attributes> {
        let input: syn::DeriveInput =
            syn::parse_str(&format!("{attributes} struct E {{ id: u32 }}")).unwrap();
        Attributes::read(&input.attrs, &input.ident)
    }

    fn fault(attributes: &str) -> String {
        match read(attributes) {
            Ok(_) => panic!("{attributes} was taken"),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn all_attributes_are_read_from_one_list_or_from_several() {
        for text in [
            r#"#[event(type = "a.b", key = "k:{id}", sub = self.part(), priority = 9000)]"#,
            r#"#[event(type = "a.b")] #[event(key = "k:{id}", sub = self.part())] #[event(priority = 9000)]"#,
        ] {
            let read = read(text).ok().unwrap();
            assert_eq!(read.kind.value(), "a.b");
            assert!(matches!(read.key, Some(Naming::Template(template)) if template.value() == "k:{id}"));
            assert!(matches!(read.sub, Some(Naming::Expression(_))));
            assert_eq!(read.priority, Some(9000));
        }
    }

    #[test]
    fn types_are_held_to_the_rules_of_the_core() {
        assert!(fault("").contains("an event has a type"));
        assert!(fault("#[event(key = \"k\")]").contains("an event has a type"));
        for bad in ["", "a..b", "a b", "a/b", "é"] {
            fault(&format!("#[event(type = {bad:?})]"));
        }
        assert!(fault("#[event(type = \"OrderStarted\")]").contains("only the engine itself"));
        assert!(fault("#[event(type = \"task\")]").contains("task is the name of a frame"));
        assert!(fault("#[event(type = 7)]").contains("string literal"));
    }

    #[test]
    fn other_faults_are_named() {
        assert!(fault("#[event(type = \"a\", colour = 1)]").contains("nothing else"));
        assert!(fault("#[event(type = \"a\", type = \"b\")]").contains("twice"));
        assert!(fault("#[event(type = \"a\", priority = 0)]").contains("1 to 9000"));
        assert!(fault("#[event(type = \"a\", priority = 9001)]").contains("1 to 9000"));
    }
}
