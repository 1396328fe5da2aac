//! Finds a task by the end of its id, which is what people can remember and type.

use std::borrow::Cow;

use pointsman_api::client::Client;

use super::similar_ids::{
    MAX_SEARCHED_TASKS, MAX_SUGGESTIONS, find_ids_with_similar_end, format_id_suggestion,
    list_newest_task_ids,
};
use crate::failure::{CommandResult, Failure};

/// The minimum number of characters of an id's end.
const MIN_ID_END_LENGTH: usize = 6;

/// Returns the full id of a task. A text that cannot be the end of a UUID is taken for a full id; otherwise it is the id
/// of the only task that ends in it.
pub(super) async fn resolve_task_id<'a>(client: &Client, text: &'a str) -> CommandResult<Cow<'a, str>> {
    if !is_uuid_end(text) {
        return Ok(text.into());
    }
    find_id_by_end(text, &list_newest_task_ids(client).await?).map(|id| Cow::Owned(id.to_owned()))
}

/// Whether a text can be the end of a UUID. A full task id cannot: it contains underscores.
fn is_uuid_end(text: &str) -> bool {
    (MIN_ID_END_LENGTH..=36).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn find_id_by_end<'a>(text: &str, ids: &'a [String]) -> CommandResult<&'a str> {
    let matching: Vec<&str> = ids.iter().map(String::as_str).filter(|id| id.ends_with(text)).collect();
    match matching.as_slice() {
        [id] => Ok(*id),
        [] => {
            let near = format_id_suggestion(&find_ids_with_similar_end(text, ids));
            let near = near.map(|near| format!("{near}\n\n")).unwrap_or_default();
            Err(Failure::runtime(format!(
                "none of the newest {MAX_SEARCHED_TASKS} tasks has an id that ends in {text}"
            ))
            .with_hint(format!("{near}`pointsman tasks list` prints full ids.")))
        }
        many => {
            let listed: Vec<&str> = many.iter().take(MAX_SUGGESTIONS).copied().collect();
            let more = if many.len() > MAX_SUGGESTIONS { "\n    …" } else { "" };
            Err(Failure::runtime(format!("{} tasks have ids that end in {text}", many.len())).with_hint(
                format!("Give more characters of one of these:\n    {}{more}", listed.join("\n    ")),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_uuid_is_distinguished_from_a_full_id() {
        assert!(is_uuid_end("00000f") && is_uuid_end("8000-00000000000f"));
        for other in ["a_b_04b6f200-0000-8000-8000-00000000000f", "some-id", "0f", ""] {
            assert!(!is_uuid_end(other), "{other}");
        }
    }

    #[test]
    fn the_end_of_an_id_must_match_exactly_one_task() {
        let ids = |many: &[&str]| many.iter().map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(find_id_by_end("00000f", &ids(&["a_b_00000e", "a_b_00000f"])).ok(), Some("a_b_00000f"));
        assert!(find_id_by_end("00000f", &[]).is_err());
        let near = format!("{:?}", find_id_by_end("00000f", &ids(&["a_b_00000e"])));
        assert!(near.contains("Did you mean") && near.contains("a_b_00000e"), "{near}");
        let several = format!("{:?}", find_id_by_end("00000f", &ids(&["a_b_00000f", "a_c_00000f"])));
        assert!(several.contains("2 tasks") && several.contains("a_c_00000f"), "{several}");
    }
}
