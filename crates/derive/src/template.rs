//! Templates of object keys: `"record:{id}"` is a format string whose names are fields of the struct.

use pointsman_core::ObjectKey;
use syn::{Error, Fields, LitStr, Member};

/// A parsed key template: a format string with positional placeholders, and the struct's field for each of them.
pub(crate) struct KeyTemplate {
    pub(crate) format_string: String,
    /// The field of each placeholder, in order.
    pub(crate) placeholder_fields: Vec<Member>,
}

impl KeyTemplate {
    /// Parses a template. `{{` and `}}` are braces; `{field}` and `{field:spec}` are placeholders.
    pub(crate) fn parse(literal: &LitStr, fields: &Fields) -> syn::Result<Self> {
        let text = literal.value();
        let error = |message: String| Error::new(literal.span(), message);
        let mut format = String::new();
        let mut placeholder_fields = Vec::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['{', '}']) {
            format.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                format.push_str(brace);
                format.push_str(brace);
                rest = after;
            } else if brace == "}" {
                return Err(error("a `}` that closes nothing; write `}}` for the character itself".into()));
            } else {
                let (placeholder, after) = rest.split_once('}').ok_or_else(|| {
                    error("a `{` that is not closed; write `{{` for the character itself".into())
                })?;
                let (name, spec) =
                    placeholder.split_once(':').map_or((placeholder, ""), |(name, spec)| (name, spec));
                placeholder_fields.push(find_field(name, fields).map_err(error)?);
                format.push_str(&if spec.is_empty() { "{}".into() } else { format!("{{:{spec}}}") });
                rest = after;
            }
        }
        format.push_str(rest);
        if placeholder_fields.is_empty() {
            // Without a placeholder the key is constant, so it can be checked now.
            let constant = text.replace("{{", "{").replace("}}", "}");
            ObjectKey::new(constant).map_err(|e| error(e.to_string()))?;
        }
        Ok(Self { format_string: format, placeholder_fields })
    }
}

/// Finds the field of this name (or, in a tuple struct, of this number).
fn find_field(name: &str, fields: &Fields) -> Result<Member, String> {
    let field_name = |member: &Member| match member {
        Member::Named(ident) => ident.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    fields.members().find(|member| field_name(member) == name).ok_or_else(|| {
        let field_names: Vec<_> =
            fields.members().map(|member| format!("`{}`", field_name(&member))).collect();
        match field_names.is_empty() {
            true => format!("there is no field `{name}`: the struct has none"),
            false => format!("there is no field `{name}`; there is {}", field_names.join(", ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Span;

    fn parse_template(template: &str, fields: &str) -> syn::Result<KeyTemplate> {
        let item: syn::ItemStruct = syn::parse_str(&format!("struct E {fields}")).unwrap();
        KeyTemplate::parse(&LitStr::new(template, Span::call_site()), &item.fields)
    }

    #[test]
    fn placeholders_become_positional_in_the_format_string() {
        let named = "{ id: u32, part: u8 }";
        for (template, format, count) in [
            ("record:{id}", "record:{}", 1),
            ("{part:02}/{id}/{id}", "{:02}/{}/{}", 3),
            ("{{{id}}}", "{{{}}}", 1),
            ("settings", "settings", 0),
        ] {
            let parsed = parse_template(template, named).ok().unwrap();
            assert_eq!(
                (parsed.format_string.as_str(), parsed.placeholder_fields.len()),
                (format, count),
                "{template}"
            );
        }
        assert_eq!(parse_template("u:{0}", "(u32);").ok().unwrap().format_string, "u:{}");
    }

    #[test]
    fn template_errors_state_the_remedy() {
        let error = |template: &str| {
            parse_template(template, "{ id: u32, title: String }").err().unwrap().to_string()
        };
        assert_eq!(error("record:{idd}"), "there is no field `idd`; there is `id`, `title`");
        assert!(error("record:{id").contains("not closed"));
        assert!(error("record:id}").contains("closes nothing"));
        assert!(error("{}").contains("no field ``"));
        assert!(error("").contains("1 to 512 bytes"));
        assert!(error("a\nb").contains("control characters"));
        assert!(parse_template("{x}", ";").err().unwrap().to_string().contains("the struct has none"));
    }
}
