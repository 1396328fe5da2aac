//! Suggests tasks for an id that does not exist.

use pointsman_api::client::{Client, TaskQuery};
use pointsman_core::suggestion::suggest_names;

/// The number of newest tasks whose ids are compared: the largest page of the server.
pub(super) const MAX_SEARCHED_TASKS: u32 = 1000;
/// The maximum number of suggestions.
pub(super) const MAX_SUGGESTIONS: usize = 5;
/// The minimum length of a text to suggest ids that contain it.
const MIN_SUBSTRING_LENGTH: usize = 3;

/// The ids of the newest tasks.
pub(super) async fn list_newest_task_ids(
    client: &Client,
) -> Result<Vec<String>, pointsman_api::client::ClientError> {
    let list =
        client.list_tasks(&TaskQuery { limit: Some(MAX_SEARCHED_TASKS), ..TaskQuery::default() }).await?;
    Ok(list.tasks.into_iter().map(|task| task.id).collect())
}

/// A question that lists existing ids similar to an unknown one, one per line. None if there are none or the tasks
/// cannot be read: the question only completes the hint of another error.
pub(super) async fn suggest_similar_tasks(client: &Client, unknown_id: &str) -> Option<String> {
    let ids = list_newest_task_ids(client).await.ok()?;
    format_id_suggestion(&find_similar_ids(unknown_id, &ids))
}

/// A question that lists the ids; none without ids.
pub(super) fn format_id_suggestion(ids: &[&str]) -> Option<String> {
    match ids {
        [] => None,
        [one] => Some(format!("Did you mean this one?\n    {one}")),
        many => Some(format!("Did you mean one of these?\n    {}", many.join("\n    "))),
    }
}

/// Finds ids that contain the unknown one, newest first; if there are none, ids that are spelt similarly, most similar
/// first.
fn find_similar_ids<'a>(unknown_id: &str, ids: &'a [String]) -> Vec<&'a str> {
    let ids = || ids.iter().map(String::as_str);
    let containing = ids()
        .filter(|id| unknown_id.len() >= MIN_SUBSTRING_LENGTH && id.contains(unknown_id))
        .take(MAX_SUGGESTIONS);
    let containing: Vec<&str> = containing.collect();
    if containing.is_empty() { suggest_names(unknown_id, ids(), MAX_SUGGESTIONS) } else { containing }
}

/// Finds ids whose end is spelt similarly to `unknown_end`. No id ends in exactly that text.
pub(super) fn find_ids_with_similar_end<'a>(unknown_end: &str, ids: &'a [String]) -> Vec<&'a str> {
    let end = |id: &'a str| id.get(id.len().checked_sub(unknown_end.len())?..).map(|end| (end, id));
    let ends: Vec<(&str, &str)> = ids.iter().filter_map(|id| end(id)).collect();
    let similar_ends = suggest_names(unknown_end, ends.iter().map(|(end, _)| *end), MAX_SUGGESTIONS);
    // Several ids may have the same end.
    let mut similar: Vec<&str> = similar_ends
        .iter()
        .flat_map(|similar_end| ends.iter().filter(move |(end, _)| end == similar_end))
        .map(|(_, id)| *id)
        .collect();
    similar.dedup();
    similar.truncate(MAX_SUGGESTIONS);
    similar
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX_TASK_ID: &str = "index_record.published_fdcb8f6e-b524-8c7e-8000-000000000001";
    const NOTIFY_TASK_ID: &str = "notify_record.published_fdcb8f6e-b524-8c7e-8000-000000000002";
    const SHOP_TASK_ID: &str = "shop_orders_fdcb8f6e-b524-8c7e-8000-0000000000a3";

    fn sample_ids() -> Vec<String> {
        [SHOP_TASK_ID, NOTIFY_TASK_ID, INDEX_TASK_ID].map(String::from).to_vec()
    }

    #[test]
    fn a_mistyped_id_suggests_the_most_similar_task() {
        let ids = sample_ids();
        assert_eq!(find_similar_ids(&INDEX_TASK_ID.replace("8c7e", "8c8e"), &ids)[0], INDEX_TASK_ID);
        assert_eq!(find_similar_ids(&SHOP_TASK_ID.replace("shop", "shpo"), &ids)[0], SHOP_TASK_ID);
        assert_eq!(find_similar_ids("banana", &ids), [] as [&str; 0]);
        assert_eq!(find_similar_ids("", &ids), [] as [&str; 0]);
    }

    #[test]
    fn a_part_of_an_id_suggests_all_ids_that_contain_it() {
        let ids = sample_ids();
        assert_eq!(find_similar_ids("record.published", &ids), [NOTIFY_TASK_ID, INDEX_TASK_ID]);
        assert_eq!(find_similar_ids("shop_orders", &ids), [SHOP_TASK_ID]);
    }

    #[test]
    fn the_end_of_an_id_is_compared_with_the_ends_of_other_ids() {
        let ids = sample_ids();
        assert_eq!(find_ids_with_similar_end("0000b3", &ids)[0], SHOP_TASK_ID);
        assert_eq!(
            find_ids_with_similar_end("8000-000000000021", &ids)[0],
            INDEX_TASK_ID,
            "two ids are equally similar; the first one is {INDEX_TASK_ID}"
        );
        assert_eq!(find_ids_with_similar_end("ffffff", &ids), [] as [&str; 0]);
    }

    #[test]
    fn suggestions_are_listed_one_per_line() {
        assert_eq!(format_id_suggestion(&[]), None);
        assert_eq!(format_id_suggestion(&["a"]).unwrap(), "Did you mean this one?\n    a");
        assert_eq!(format_id_suggestion(&["a", "b"]).unwrap(), "Did you mean one of these?\n    a\n    b");
    }
}
