//! Which tasks were perhaps meant by an id that none has.

use pointsman_api::client::{Client, TaskQuery};
use pointsman_server::config::nearest::several;

/// How many of the newest tasks are looked at: as many as the server tells at once.
pub(super) const LOOK: u32 = 1000;
/// How many of those that may be meant are named.
pub(super) const SHOWN: usize = 5;
/// The fewest characters of a part of an id that say something.
const SHORTEST: usize = 3;

/// The ids of the newest tasks.
pub(super) async fn newest(client: &Client) -> Result<Vec<String>, pointsman_api::client::ClientError> {
    let list = client.tasks(&TaskQuery { limit: Some(LOOK), ..TaskQuery::default() }).await?;
    Ok(list.tasks.into_iter().map(|task| task.id).collect())
}

/// A sentence with the ids that are near, each on a line of its own; none if nothing is near, or if the tasks cannot be
/// read: this is said beside something else.
pub(super) async fn told(client: &Client, wrong: &str) -> Option<String> {
    let ids = newest(client).await.ok()?;
    sentence(&near(wrong, &ids))
}

pub(super) fn sentence(near: &[&str]) -> Option<String> {
    match near {
        [] => None,
        [one] => Some(format!("Did you mean this one?\n    {one}")),
        many => Some(format!("Did you mean one of these?\n    {}", many.join("\n    "))),
    }
}

/// Those that have the text in them, the newest first; or else those that are spelt alike, the most alike first.
fn near<'a>(wrong: &str, ids: &'a [String]) -> Vec<&'a str> {
    let ids = || ids.iter().map(String::as_str);
    let has_it = ids().filter(|id| wrong.len() >= SHORTEST && id.contains(wrong)).take(SHOWN);
    let has_it: Vec<&str> = has_it.collect();
    if has_it.is_empty() { several(wrong, ids(), SHOWN) } else { has_it }
}

/// Those whose end is spelt like this one.
pub(super) fn near_end<'a>(wrong: &str, ids: &'a [String]) -> Vec<&'a str> {
    let end = |id: &'a str| id.get(id.len().checked_sub(wrong.len())?..).map(|end| (end, id));
    let ends: Vec<(&str, &str)> = ids.iter().filter_map(|id| end(id)).collect();
    let near = several(wrong, ends.iter().map(|(end, _)| *end), SHOWN);
    // Several ids may end alike.
    let mut whole: Vec<&str> = near
        .iter()
        .flat_map(|wanted| ends.iter().filter(move |(end, _)| end == wanted))
        .map(|(_, id)| *id)
        .collect();
    whole.dedup();
    whole.truncate(SHOWN);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "index_record.published_fdcb8f6e-b524-8c7e-8000-000000000001";
    const B: &str = "notify_record.published_fdcb8f6e-b524-8c7e-8000-000000000002";
    const C: &str = "shop_orders_fdcb8f6e-b524-8c7e-8000-0000000000a3";

    fn ids() -> Vec<String> {
        [C, B, A].map(String::from).to_vec()
    }

    #[test]
    fn a_mistyped_id_is_near_the_one_that_was_meant() {
        let ids = ids();
        assert_eq!(near(&A.replace("8c7e", "8c8e"), &ids)[0], A);
        assert_eq!(near(&C.replace("shop", "shpo"), &ids)[0], C);
        assert_eq!(near("banana", &ids), [] as [&str; 0]);
        assert_eq!(near("", &ids), [] as [&str; 0]);
    }

    #[test]
    fn a_part_of_an_id_means_all_that_have_it() {
        let ids = ids();
        assert_eq!(near("record.published", &ids), [B, A]);
        assert_eq!(near("shop_orders", &ids), [C]);
    }

    #[test]
    fn an_end_is_compared_with_ends() {
        let ids = ids();
        assert_eq!(near_end("0000b3", &ids)[0], C);
        assert_eq!(
            near_end("8000-000000000021", &ids)[0],
            A,
            "two of them are as near; the first of the two is {A}"
        );
        assert_eq!(near_end("ffffff", &ids), [] as [&str; 0]);
    }

    #[test]
    fn they_are_told_a_line_each() {
        assert_eq!(sentence(&[]), None);
        assert_eq!(sentence(&["a"]).unwrap(), "Did you mean this one?\n    a");
        assert_eq!(sentence(&["a", "b"]).unwrap(), "Did you mean one of these?\n    a\n    b");
    }
}
