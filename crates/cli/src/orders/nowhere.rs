//! What is said of a path at which there are no orders: perhaps because nothing is there, or because it was meant as a
//! folder.

use pointsman_api::client::Client;
use pointsman_server::config::nearest::hint;

/// What is wrong with a path, in a sentence. Nothing if a chain or a folder of chains is there, or if the list of them
/// cannot be read: this is said beside something else.
pub(super) async fn nowhere(client: &Client, path: &str) -> Option<String> {
    let list = client.chains().await.ok()?;
    let chains: Vec<&str> =
        list.chains.iter().filter(|chain| chain.defined).map(|chain| chain.path.as_str()).collect();
    wrong(path, &chains)
}

fn wrong(path: &str, chains: &[&str]) -> Option<String> {
    let folder = path.strip_suffix('*').unwrap_or(path);
    if folder.ends_with('/') {
        let is_there = folder == "/" || chains.iter().any(|chain| chain.starts_with(folder));
        return (!is_there).then(|| format!("There is no folder {folder} of chains."));
    }
    // One order may be asked for as well.
    let chain = path.split(',').next().unwrap_or(path);
    if chains.contains(&chain) {
        return None;
    }
    let below = format!("{chain}/");
    if chains.iter().any(|chain| chain.starts_with(&below)) {
        return Some(format!("{chain} is a folder: write `{below}` for the orders in it."));
    }
    let hint = hint(chain, chains.iter().copied());
    Some(format!("There is no chain {chain}{}", if hint.is_empty() { "." } else { &hint }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_orders_is_looked_at() {
        let told = |path| wrong(path, &["/laundry/slow", "/laundry/fast", "/top"]);
        for path in ["/", "/*", "/laundry/", "/laundry/*", "/laundry/slow", "/laundry/slow,9", "/top"] {
            assert_eq!(told(path), None, "{path}");
        }
        assert_eq!(
            told("/laundry").unwrap(),
            "/laundry is a folder: write `/laundry/` for the orders in it."
        );
        assert_eq!(told("/landry/").unwrap(), "There is no folder /landry/ of chains.");
        assert_eq!(
            told("/laundry/slwo").unwrap(),
            "There is no chain /laundry/slwo; did you mean `/laundry/slow`?"
        );
        assert_eq!(told("/laundry/nope,1").unwrap(), "There is no chain /laundry/nope.");
    }
}
