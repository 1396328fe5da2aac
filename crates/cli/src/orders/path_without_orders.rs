//! Explains why a path has no orders: it has no chain, or it is a folder.

use pointsman_api::client::Client;
use pointsman_core::suggestion::did_you_mean_suffix;

/// Explains in a sentence why there are no orders at a path. None if the path is that of a chain or of a folder with
/// chains, or if the chains cannot be read.
pub(super) async fn explain_path_without_orders(client: &Client, path: &str) -> Option<String> {
    let list = client.list_chains().await.ok()?;
    let chains: Vec<&str> =
        list.chains.iter().filter(|chain| chain.defined).map(|chain| chain.path.as_str()).collect();
    explain_path_without_orders_given_chains(path, &chains)
}

fn explain_path_without_orders_given_chains(path: &str, chains: &[&str]) -> Option<String> {
    let folder = path.strip_suffix('*').unwrap_or(path);
    if folder.ends_with('/') {
        let exists = folder == "/" || chains.iter().any(|chain| chain.starts_with(folder));
        return (!exists).then(|| format!("There is no folder {folder} with chains."));
    }
    // The path may be the key of one order.
    let chain = path.split(',').next().unwrap_or(path);
    if chains.contains(&chain) {
        return None;
    }
    let folder = format!("{chain}/");
    if chains.iter().any(|chain| chain.starts_with(&folder)) {
        return Some(format!("{chain} is a folder: write `{folder}` for the orders in it."));
    }
    let hint = did_you_mean_suffix(chain, chains.iter().copied());
    Some(format!("There is no chain {chain}{}", if hint.is_empty() { "." } else { &hint }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_chain_is_explained() {
        let explain = |path| {
            explain_path_without_orders_given_chains(path, &["/laundry/slow", "/laundry/fast", "/top"])
        };
        for path in ["/", "/*", "/laundry/", "/laundry/*", "/laundry/slow", "/laundry/slow,9", "/top"] {
            assert_eq!(explain(path), None, "{path}");
        }
        assert_eq!(
            explain("/laundry").unwrap(),
            "/laundry is a folder: write `/laundry/` for the orders in it."
        );
        assert_eq!(explain("/landry/").unwrap(), "There is no folder /landry/ with chains.");
        assert_eq!(
            explain("/laundry/slwo").unwrap(),
            "There is no chain /laundry/slwo; did you mean `/laundry/slow`?"
        );
        assert_eq!(explain("/laundry/nope,1").unwrap(), "There is no chain /laundry/nope.");
    }
}
