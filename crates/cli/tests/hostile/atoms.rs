//! What hostile requests are made of: texts, JSON and bytes that programs have stumbled over before.

use pointsman_testing::Chance;

/// Texts for any place that takes one.
const TEXTS: &[&str] = &[
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "..%2f..%2f",
    "/",
    "//",
    "a/b",
    "a:b#c?d",
    "a&b=c;d",
    "\0",
    "a\0b",
    "a\r\nx-injected: yes",
    "\n",
    "\t",
    "\u{7f}",
    "\u{85}",
    "\u{feff}",
    "\u{202e}txt.exe",
    "\u{d7ff}\u{e000}\u{ffff}",
    "ünï",
    "🚂",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "${x}",
    "$(id)",
    "%",
    "%0",
    "%zz",
    "%00",
    "%ff",
    "%c0%af",
    "%ED%A0%80",
    "null",
    "true",
    "NaN",
    "Infinity",
    "-0",
    "-1",
    "+1",
    "0x10",
    "1_000",
    "1.0",
    "1e3",
    "1e400",
    "١٢٣",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "-9223372036854775809",
    "1h2m3s",
    "1.5m",
    ".1",
    "5ms",
    "PT",
    "P1Y",
    "P99999999999999999999D",
    "99999999999999999999h",
    "2024-02-30T00:00:00Z",
    "2024-01-01",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999999999999Z",
    "+275760-09-13T00:00:00Z",
    "-000001-01-01T00:00:00Z",
    "2024-01-01T00:00:60+99:99",
    "Event",
    "OrderStarted",
    "record..published",
    ".record",
    "record.",
];

/// Numbers and other scalars as JSON has them, and as it does not.
const SCALARS: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "1",
    "1.5",
    "-1",
    "1e400",
    "-1e400",
    "1e-400",
    "01",
    "+1",
    ".5",
    "1.",
    "0x1",
    "NaN",
    "Infinity",
    "9007199254740993",
    "18446744073709551616",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\x\"",
    "\"open",
    "'a'",
    "{}",
    "[]",
    "[,]",
    "{,}",
    "{\"a\"}",
    "[1,]",
    "{\"a\":1,}",
    "//",
    "/**/1",
    "\u{feff}1",
    "undefined",
    "tru",
    "\"a\nb\"",
    "\"\t\"",
];

const MEMBERS: &[&str] = &[
    "type",
    "key",
    "sub",
    "value",
    "context",
    "tenant",
    "delay",
    "at",
    "priority",
    "specversion",
    "id",
    "source",
    "subject",
    "data",
    "data_base64",
    "time",
    "datacontenttype",
    "reason",
    "TYPE",
    "Type",
    "__proto__",
    "",
    "a.b",
    "a/b~c",
    "eventId",
    "prev",
    "cause",
    "ünï",
];

/// A text to put anywhere.
pub(crate) fn text(chance: &mut Chance) -> String {
    match chance.below(8) {
        0 => random_text(chance),
        1 => chance.of(TEXTS).repeat(1 + chance.below(40)),
        2 => "x".repeat(100 + chance.below(2000)),
        _ => (*chance.of(TEXTS)).to_owned(),
    }
}

/// Characters from anywhere in Unicode.
fn random_text(chance: &mut Chance) -> String {
    let count = chance.below(30);
    let mut any = || char::from_u32((chance.number() % 0x11_0000) as u32).unwrap_or('\u{fffd}');
    (0..count).map(|_| any()).collect()
}

/// Bytes of any value.
pub(crate) fn bytes(chance: &mut Chance, most: usize) -> Vec<u8> {
    (0..chance.below(most)).map(|_| chance.number() as u8).collect()
}

/// Something like JSON, nested a little, with members that may come twice.
pub(crate) fn json(chance: &mut Chance, depth: usize) -> String {
    match chance.below(if depth == 0 { 3 } else { 6 }) {
        0 => (*chance.of(SCALARS)).to_owned(),
        1 => serde_json::Value::from(text(chance)).to_string(),
        2 => (chance.number() as i64).to_string(),
        3 => {
            let items: Vec<String> = (0..chance.below(5)).map(|_| json(chance, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => object(chance, depth - 1),
    }
}

fn object(chance: &mut Chance, depth: usize) -> String {
    let members: Vec<String> = (0..chance.below(6))
        .map(|_| {
            let name = if chance.one_in(6) { text(chance) } else { (*chance.of(MEMBERS)).to_owned() };
            format!("{}:{}", serde_json::Value::from(name), json(chance, depth))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Changes a few bytes: turns some, drops some, adds some, repeats some.
pub(crate) fn mutate(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..1 + chance.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = chance.below(bytes.len());
        match chance.below(5) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes[at] = chance.number() as u8,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, chance.number() as u8),
            _ => {
                let end = (at + 1 + chance.below(12)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}

/// A text as a client might write it in an address: properly escaped, or half so, or oddly.
pub(crate) fn escaped(text: &str, chance: &mut Chance) -> String {
    let style = chance.below(4);
    let mut out = String::new();
    for &byte in text.as_bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        // Of what may stand in an address at all: the family of broken heads sends the rest.
        let careless = b":/?#@!$&'()*+,;=%".contains(&byte) && style == 0;
        match byte {
            _ if plain && style != 3 => out.push(byte as char),
            _ if careless => out.push(byte as char),
            _ if style == 1 => out.push_str(&format!("%{byte:02x}")),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
