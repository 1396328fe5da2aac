//! Which task is meant by the end of an id: what people can remember and type.

use std::borrow::Cow;

use pointsman_api::client::{Client, TaskQuery};

use crate::failure::{Failure, Result};

/// The fewest characters that are taken for the end of an id.
const SHORTEST: usize = 6;
/// How many of the newest tasks are looked at: as many as the server tells at once.
const LOOK: u32 = 1000;
/// How many of those that match are named.
const SHOWN: usize = 5;

/// The id of the task that is meant: the text itself, unless it reads like the end of a uuid.
pub(super) async fn task<'a>(client: &Client, text: &'a str) -> Result<Cow<'a, str>> {
    if !is_end(text) {
        return Ok(text.into());
    }
    let list = client.tasks(&TaskQuery { limit: Some(LOOK), ..TaskQuery::default() }).await?;
    let ids = list.tasks.into_iter().map(|task| task.id);
    chosen(text, ids.filter(|id| id.ends_with(text)).collect()).map(Cow::Owned)
}

/// A whole id has underscores, and is longer than its uuid.
fn is_end(text: &str) -> bool {
    (SHORTEST..=36).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn chosen(text: &str, mut matching: Vec<String>) -> Result<String> {
    match matching.len() {
        1 => Ok(matching.remove(0)),
        0 => Err(Failure::runtime(format!("none of the newest {LOOK} tasks has an id that ends in {text}"))
            .hint("`pointsman tasks list` shows whole ids.")),
        n => {
            matching.truncate(SHOWN);
            let more = if n > SHOWN { "\n…" } else { "" };
            Err(Failure::runtime(format!("{n} tasks have ids that end in {text}"))
                .hint(format!("Say more of the one that is meant:\n{}{more}", matching.join("\n"))))
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
        assert_eq!(chosen("00000f", ids(&["a_b_00000f"])).ok(), Some("a_b_00000f".into()));
        assert!(chosen("00000f", vec![]).is_err());
        let several = format!("{:?}", chosen("00000f", ids(&["a_b_00000f", "a_c_00000f"])));
        assert!(several.contains("2 tasks") && several.contains("a_c_00000f"), "{several}");
    }
}
