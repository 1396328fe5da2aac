//! Which task is meant by the end of an id: what people can remember and type.

use std::borrow::Cow;

use pointsman_api::client::Client;

use super::near::{LOOK, SHOWN, near_end, newest, sentence};
use crate::failure::{Failure, Result};

/// The fewest characters that are taken for the end of an id.
const SHORTEST: usize = 6;

/// The id of the task that is meant: the text itself, unless it reads like the end of a uuid.
pub(super) async fn task<'a>(client: &Client, text: &'a str) -> Result<Cow<'a, str>> {
    if !is_end(text) {
        return Ok(text.into());
    }
    chosen(text, &newest(client).await?).map(|id| Cow::Owned(id.to_owned()))
}

/// A whole id has underscores, and is longer than its uuid.
fn is_end(text: &str) -> bool {
    (SHORTEST..=36).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn chosen<'a>(text: &str, ids: &'a [String]) -> Result<&'a str> {
    let matching: Vec<&str> = ids.iter().map(String::as_str).filter(|id| id.ends_with(text)).collect();
    match matching.as_slice() {
        [one] => Ok(*one),
        [] => {
            let near = sentence(&near_end(text, ids)).map(|near| format!("{near}\n\n")).unwrap_or_default();
            Err(Failure::runtime(format!("none of the newest {LOOK} tasks has an id that ends in {text}"))
                .hint(format!("{near}`pointsman tasks list` shows whole ids.")))
        }
        many => {
            let shown: Vec<&str> = many.iter().take(SHOWN).copied().collect();
            let more = if many.len() > SHOWN { "\n    …" } else { "" };
            Err(Failure::runtime(format!("{} tasks have ids that end in {text}", many.len()))
                .hint(format!("Say more of the one that is meant:\n    {}{more}", shown.join("\n    "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_uuid_is_told_from_a_whole_id() {
        assert!(is_end("00000f") && is_end("8000-00000000000f"));
        for whole in ["a_b_04b6f200-0000-8000-8000-00000000000f", "some-id", "0f", ""] {
            assert!(!is_end(whole), "{whole}");
        }
    }

    #[test]
    fn an_end_means_one_task_or_none() {
        let ids = |many: &[&str]| many.iter().map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(chosen("00000f", &ids(&["a_b_00000e", "a_b_00000f"])).ok(), Some("a_b_00000f"));
        assert!(chosen("00000f", &[]).is_err());
        let near = format!("{:?}", chosen("00000f", &ids(&["a_b_00000e"])));
        assert!(near.contains("Did you mean") && near.contains("a_b_00000e"), "{near}");
        let several = format!("{:?}", chosen("00000f", &ids(&["a_b_00000f", "a_c_00000f"])));
        assert!(several.contains("2 tasks") && several.contains("a_c_00000f"), "{several}");
    }
}
