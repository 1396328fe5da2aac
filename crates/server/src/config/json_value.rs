//! Converts YAML nodes to JSON, for the values of events and orders.

use pointsman_core::Json;

use super::fault::Findings;
use super::yaml::{YamlKind, YamlNode};

/// Converts a node. Unquoted `true`, `false`, `null` and numbers become JSON values of that kind, all other scalars text.
pub(super) fn read_json(node: &YamlNode, findings: &mut Findings) -> Option<Json> {
    let mut out = String::new();
    write_json(node, &mut out);
    Json::parse(&out).map_err(|error| findings.add_fault(&node.location, error.to_string())).ok()
}

fn write_json(node: &YamlNode, out: &mut String) {
    match &node.kind {
        YamlKind::Null => out.push_str("null"),
        YamlKind::Scalar { text, is_plain: plain } => match text.as_str() {
            "true" | "false" if *plain => out.push_str(text),
            number if *plain && is_json_number(number) => out.push_str(number),
            text => out.push_str(&quote_json(text)),
        },
        YamlKind::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_json(item, out);
            }
            out.push(']');
        }
        YamlKind::Map(entries) => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&quote_json(&entry.key));
                out.push(':');
                write_json(&entry.value, out);
            }
            out.push('}');
        }
    }
}

/// Whether a text is a number in JSON notation, so that its digits can be copied unchanged.
fn is_json_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Converts a scalar that is written without quotes.
pub(super) fn plain_scalar_to_json(text: &str) -> serde_json::Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        number if is_json_number(number) => serde_json::from_str(number).unwrap_or_else(|_| number.into()),
        text => text.into(),
    }
}

pub(super) fn quote_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn unquoted_scalars_become_json_numbers_booleans_and_null() {
        let json = |text: &str| read_value_from_yaml(text, read_json).unwrap().as_str().to_owned();
        assert_eq!(
            json("[1, 1.50, -2e3, true, ~, yes, 0x1f, 007, '12', \"a\\nb\"]"),
            r#"[1,1.50,-2e3,true,null,"yes","0x1f","007","12","a\nb"]"#
        );
        assert_eq!(json("{a: {b: []}, 'c d': ''}"), r#"{"a":{"b":[]},"c d":""}"#);
    }

    #[test]
    fn a_value_with_a_nul_character_is_a_fault() {
        assert_eq!(fault_messages("a: \"x\\0y\"", read_json).len(), 1);
    }
}
