//! Templates: `"record:{id}"` is a format string whose names are fields of the struct.

use pointsman_core::ObjectKey;
use syn::{Error, Fields, LitStr, Member, Result};

/// A template taken apart: a format string with positional holes, and the field that fills each of them.
pub(crate) struct Template {
    pub(crate) format: String,
    pub(crate) fields: Vec<Member>,
}

impl Template {
    /// Reads a template. `{{` and `}}` are braces; `{field}` and `{field:spec}` are holes.
    pub(crate) fn read(literal: &LitStr, fields: &Fields) -> Result<Self> {
        let text = literal.value();
        let fault = |what: String| Error::new(literal.span(), what);
        let mut format = String::new();
        let mut holes = Vec::new();
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
                return Err(fault("a `}` that closes nothing; write `}}` for the character itself".into()));
            } else {
                let (hole, after) = rest.split_once('}').ok_or_else(|| {
                    fault("a `{` that is not closed; write `{{` for the character itself".into())
                })?;
                let (name, spec) = hole.split_once(':').map_or((hole, ""), |(name, spec)| (name, spec));
                holes.push(member(name, fields).map_err(fault)?);
                format.push_str(&if spec.is_empty() { "{}".into() } else { format!("{{:{spec}}}") });
                rest = after;
            }
        }
        format.push_str(rest);
        if holes.is_empty() {
            // Without a hole the key is known now, and so is whether it is one.
            let constant = text.replace("{{", "{").replace("}}", "}");
            ObjectKey::new(constant).map_err(|e| fault(e.to_string()))?;
        }
        Ok(Self { format, fields: holes })
    }
}

/// The field of this name (or, in a tuple struct, of this number).
fn member(name: &str, fields: &Fields) -> std::result::Result<Member, String> {
    let shown = |member: &Member| match member {
        Member::Named(ident) => ident.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    fields.members().find(|member| shown(member) == name).ok_or_else(|| {
        let known: Vec<_> = fields.members().map(|member| format!("`{}`", shown(&member))).collect();
        match known.is_empty() {
            true => format!("there is no field `{name}`: the struct has none"),
            false => format!("there is no field `{name}`; there is {}", known.join(", ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Span;

    fn read(template: &str, fields: &str) -> Result<Template> {
        let item: syn::ItemStruct = syn::parse_str(&format!("struct E {fields}")).unwrap();
        Template::read(&LitStr::new(template, Span::call_site()), &item.fields)
    }

    #[test]
    fn holes_become_positions() {
        let named = "{ id: u32, part: u8 }";
        for (template, format, count) in [
            ("record:{id}", "record:{}", 1),
            ("{part:02}/{id}/{id}", "{:02}/{}/{}", 3),
            ("{{{id}}}", "{{{}}}", 1),
            ("settings", "settings", 0),
        ] {
            let read = read(template, named).ok().unwrap();
            assert_eq!((read.format.as_str(), read.fields.len()), (format, count), "{template}");
        }
        assert_eq!(read("u:{0}", "(u32);").ok().unwrap().format, "u:{}");
    }

    #[test]
    fn faults_say_what_to_write() {
        let fault = |template: &str| read(template, "{ id: u32, title: String }").err().unwrap().to_string();
        assert_eq!(fault("record:{idd}"), "there is no field `idd`; there is `id`, `title`");
        assert!(fault("record:{id").contains("not closed"));
        assert!(fault("record:id}").contains("closes nothing"));
        assert!(fault("{}").contains("no field ``"));
        assert!(fault("").contains("1 to 512 bytes"));
        assert!(fault("a\nb").contains("control characters"));
        assert!(read("{x}", ";").err().unwrap().to_string().contains("the struct has none"));
    }
}
