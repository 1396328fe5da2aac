//! A server that runs: how it says that it is.

use pointsman_api::client::ClientError;
use pointsman_api::{Health, NodeBody};
use pointsman_server::config::StoreUrl;
use pointsman_store::finding::Finding;

use crate::args::Global;
use crate::failure::Result;

/// Asks the server, if there is one. That there is none is a fault only where one was named in so many words.
pub(super) async fn examine(global: &Global, store: Option<&StoreUrl>) -> Result<Vec<Finding>> {
    let client = global.client()?;
    let url = client.url();
    Ok(match client.health().await {
        Ok(health) => {
            let mut findings = judge(url, &health, store);
            // Without a token that may see the nodes, their clocks are left out.
            findings.extend(client.nodes().await.ok().map(|list| judge_clocks(&list.nodes)));
            findings
        }
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

/// By how many milliseconds the clock of a node may be off.
const OFFSET_MS: u64 = 1000;

/// The clocks of the nodes that live, by what they last reported.
fn judge_clocks(nodes: &[NodeBody]) -> Finding {
    let alive = || nodes.iter().filter(|node| node.alive);
    let mut found = Vec::new();
    for NodeBody { name, clock, .. } in alive() {
        let seconds = |ms: i64| ms as f64 / 1000.0;
        if clock.out_of_service || clock.offset_ms.unsigned_abs() > OFFSET_MS {
            let service = if clock.out_of_service { ", out of service" } else { "" };
            found.push(format!("{name} is off by {:+.1} s{service}", seconds(clock.offset_ms)));
        }
        if let Some(step) = &clock.last_step {
            found.push(format!("{name} was set by {:+.1} s at {}", seconds(step.by_ms), step.at));
        }
    }
    match found.is_empty() {
        true => Finding::ok("node clocks", format!("{} checked, none is off or was set", alive().count())),
        false => Finding::warning("node clocks", found.join("; ")).advise(
            "Synchronize the machines' clocks (NTP). A node whose clock is off by more than 30 s is out of service until it \
             agrees again.",
        ),
    }
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
    fn clocks_that_are_off_or_were_set_are_named() {
        let nodes = |clock: &str| -> Vec<NodeBody> {
            let node = |id: u8, alive: bool, clock: &str| {
                format!(
                    r#"{{"id":{id},"name":"n{id}","alive":{alive},"joined_at":"","heard_at":"","handlers":[],"slots":1,
                        "running":0{clock}}}"#
                )
            };
            let off = r#","clock":{"offset_ms":99999,"out_of_service":true,"last_step":null}"#;
            let list = [node(1, true, ""), node(2, true, clock), node(3, false, off)].join(",");
            serde_json::from_str(&format!("[{list}]")).unwrap()
        };
        let found = |clock: &str| {
            let Finding { verdict, found, .. } = judge_clocks(&nodes(clock));
            (verdict, found)
        };
        assert_eq!(found(""), (Verdict::Ok, "2 checked, none is off or was set".into()));
        let off = r#","clock":{"offset_ms":-93600000,"out_of_service":true,"last_step":null}"#;
        assert_eq!(found(off), (Verdict::Warning, "n2 is off by -93600.0 s, out of service".into()));
        let set = r#","clock":{"offset_ms":0,"out_of_service":false,"last_step":{"at":"T","by_ms":3000000}}"#;
        assert_eq!(found(set), (Verdict::Warning, "n2 was set by +3000.0 s at T".into()));
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
