//! A part of the tree as JSON, for the values of events.

use pointsman_core::Json;

use super::fault::Findings;
use super::yaml::{Kind, Node};

/// Plain `true`, `false`, `null` and numbers are what they look like; everything else is text.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<Json> {
    let mut out = String::new();
    write(node, &mut out);
    Json::parse(&out).map_err(|error| findings.fault(&node.place, error.to_string())).ok()
}

fn write(node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Null => out.push_str("null"),
        Kind::Scalar { text, plain } => match text.as_str() {
            "true" | "false" if *plain => out.push_str(text),
            number if *plain && is_number(number) => out.push_str(number),
            text => out.push_str(&quoted(text)),
        },
        Kind::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write(item, out);
            }
            out.push(']');
        }
        Kind::Map(entries) => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&quoted(&entry.key));
                out.push(':');
                write(&entry.value, out);
            }
            out.push('}');
        }
    }
}

/// Whether a text is a number in JSON's own notation, so that it can be passed on digit for digit.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// What a text without quotes stands for.
pub(super) fn plain(text: &str) -> serde_json::Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        number if is_number(number) => serde_json::from_str(number).unwrap_or_else(|_| number.into()),
        text => text.into(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    #[test]
    fn plain_values_are_what_they_look_like() {
        let json = |text: &str| read_text(text, read).unwrap().as_str().to_owned();
        assert_eq!(
            json("[1, 1.50, -2e3, true, ~, yes, 0x1f, 007, '12', \"a\\nb\"]"),
            r#"[1,1.50,-2e3,true,null,"yes","0x1f","007","12","a\nb"]"#
        );
        assert_eq!(json("{a: {b: []}, 'c d': ''}"), r#"{"a":{"b":[]},"c d":""}"#);
    }

    #[test]
    fn what_no_store_could_carry_is_a_fault() {
        assert_eq!(faults_of("a: \"x\\0y\"", read).len(), 1);
    }
}
