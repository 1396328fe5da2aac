//! A server that runs: how it says that it is.

use pointsman_api::Health;
use pointsman_api::client::ClientError;
use pointsman_server::config::StoreUrl;
use pointsman_store::finding::Finding;

use crate::args::Global;
use crate::failure::Result;

/// Asks the server, if there is one. That there is none is a fault only where one was named in so many words.
pub(super) async fn examine(global: &Global, store: Option<&StoreUrl>) -> Result<Vec<Finding>> {
    let client = global.client()?;
    let url = client.url();
    Ok(match client.health().await {
        Ok(health) => judge(url, &health, store),
        Err(ClientError::Unreachable { .. } | ClientError::Silent { .. }) if !global.names_server() => {
            vec![Finding::ok("server", format!("none answers at {url}"))]
        }
        Err(error) => vec![
            Finding::fault("server", error.to_string())
                .advise("Is it a Pointsman server, and does it run? See --url."),
        ],
    })
}

fn judge(url: &str, health: &Health, store: Option<&StoreUrl>) -> Vec<Finding> {
    let told = format!("{} at {url}, version {}", health.status, health.version);
    let (reachable, writable) =
        health.store.as_ref().map_or((true, true), |store| (store.reachable, store.writable));
    let mut findings = vec![match (reachable, writable) {
        (true, true) => Finding::ok("server", told),
        (true, false) => Finding::fault("server", format!("{told}: it cannot write to its store"))
            .advise("See its log, which says why, and what is found of the store."),
        (false, _) => Finding::fault("server", format!("{told}: it does not reach its store"))
            .advise("See its log, and whether the store can be reached from where it runs."),
    }];
    let mine = env!("CARGO_PKG_VERSION");
    if health.version != mine {
        let found = format!("it has version {}, and this command {mine}", health.version);
        findings.push(Finding::warning("server", found).advise("Use the same version for both."));
    }
    findings.extend(health.warnings.iter().map(|warning| Finding::warning("server", warning.as_str())));
    let other = health.store.as_ref().zip(store).filter(|(theirs, ours)| theirs.kind != ours.kind());
    if let Some((theirs, ours)) = other {
        let found = format!("it keeps its data on {}, and the store looked at here is {ours}", theirs.kind);
        findings.push(
            Finding::warning("server", found).advise("Give this command the configuration of that server."),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use pointsman_store::finding::Verdict;

    use super::*;

    fn verdicts(json: &str, store: &str) -> Vec<Verdict> {
        let health: Health = serde_json::from_str(json).unwrap();
        let findings = judge("http://x", &health, store.parse().ok().as_ref());
        findings.into_iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_server_is_judged_by_what_it_says() {
        let mine = env!("CARGO_PKG_VERSION");
        let health = |version: &str, kind: &str, reachable: bool| {
            format!(
                r#"{{"status":"x","version":"{version}","store":{{"kind":"{kind}","reachable":{reachable}}}}}"#
            )
        };
        use Verdict::{Fault, Ok, Warning};
        assert_eq!(verdicts(&health(mine, "sqlite", true), "sqlite:a"), [Ok]);
        assert_eq!(verdicts(&health(mine, "sqlite", false), "sqlite:a"), [Fault]);
        assert_eq!(verdicts(&health("0.0.0", "sqlite", true), "sqlite:a"), [Ok, Warning]);
        assert_eq!(verdicts(&health(mine, "postgres", true), "sqlite:a"), [Ok, Warning]);
        assert_eq!(verdicts(&health(mine, "postgres", true), "postgres://a@b/c"), [Ok]);
        assert_eq!(verdicts(&health(mine, "redis", true), "redis+cluster://a,b"), [Ok]);
        let warned = health(mine, "redis", true).replace(r#""status""#, r#""warnings":["a","b"],"status""#);
        assert_eq!(verdicts(&warned, "redis://a"), [Ok, Warning, Warning]);
    }
}
