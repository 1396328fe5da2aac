//! Checks the running server at --url.

use pointsman_api::client::ClientError;
use pointsman_api::{HealthBody, NodeBody};
use pointsman_server::config::StoreUrl;
use pointsman_store::finding::Finding;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, format_with_root_cause};

/// Checks the server, if one answers. A server that does not answer is a fault only with --url.
pub(super) async fn check_server(
    global: &GlobalOptions,
    store: Option<&StoreUrl>,
    store_findings: &[Finding],
) -> CommandResult<Vec<Finding>> {
    let client = global.new_client()?;
    let url = client.url();
    Ok(match client.read_health().await {
        Ok(health) => {
            let mut findings = check_health(url, &health, store, store_findings);
            // If the token may not list nodes, the clocks are not checked.
            findings.extend(client.list_nodes().await.ok().map(|list| check_node_clocks(&list.nodes)));
            findings
        }
        Err(ClientError::Unreachable { .. } | ClientError::StreamTimeout { .. })
            if !global.has_explicit_url() =>
        {
            vec![Finding::ok("server", format!("no server at {url}"))]
        }
        Err(error) => vec![
            Finding::fault("server", format_with_root_cause(&error))
                .with_advice("Check that a Pointsman server runs at --url."),
        ],
    })
}

fn check_health(
    url: &str,
    health: &HealthBody,
    store: Option<&StoreUrl>,
    store_findings: &[Finding],
) -> Vec<Finding> {
    let found = format!("{} at {url}, version {}", health.status, health.version);
    let (reachable, writable) =
        health.store.as_ref().map_or((true, true), |store| (store.reachable, store.writable));
    let mut findings = vec![match (reachable, writable) {
        (true, true) => Finding::ok("server", found),
        (true, false) => Finding::fault("server", format!("{found}: it cannot write to its store"))
            .with_advice("See its log for the reason, and the checks of the store."),
        (false, _) => Finding::fault("server", format!("{found}: it cannot reach its store"))
            .with_advice("See its log, and check that its machine can reach the store."),
    }];
    let own_version = env!("CARGO_PKG_VERSION");
    if health.version != own_version {
        let found = format!("the server has version {}, this command {own_version}", health.version);
        findings.push(Finding::warning("server", found).with_advice("Use the same version for both."));
    }
    findings.extend(health.warnings.iter().map(|warning| Finding::warning("server", warning.as_str())));
    let other_store =
        health.store.as_ref().zip(store).and_then(|(server_store, store)| {
            describe_store_mismatch(&server_store.kind, store, store_findings)
        });
    findings.extend(
        other_store.map(|found| {
            Finding::warning("server", found).with_advice("Use the configuration of that server.")
        }),
    );
    findings
}

/// Says that the server uses another store than the configured one. None if both may be the same: a difference is
/// visible only if the kinds differ, or if no process uses the configured SQLite file.
fn describe_store_mismatch(
    server_kind: &str,
    store: &StoreUrl,
    store_findings: &[Finding],
) -> Option<String> {
    if server_kind != store.kind().name() {
        return Some(format!("the server uses {server_kind}, but the configured store is {store}"));
    }
    let is_unused_file = match store {
        StoreUrl::Sqlite { path } => {
            !path.exists()
                || store_findings
                    .iter()
                    .any(|finding| finding.name == "in use" && finding.observation == "no")
        }
        StoreUrl::SqliteMemory | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => false,
    };
    is_unused_file
        .then(|| format!("the server uses another file: no process uses the configured store {store}"))
}

/// The offset of a node's clock from the store's time, in milliseconds, above which it is reported.
const MAX_UNREPORTED_CLOCK_OFFSET_MS: u64 = 1000;

/// Checks the clocks of the live nodes, as they last reported them.
fn check_node_clocks(nodes: &[NodeBody]) -> Finding {
    let live_nodes = || nodes.iter().filter(|node| node.alive);
    let mut problems = Vec::new();
    for NodeBody { name, clock, .. } in live_nodes() {
        let seconds = |ms: i64| ms as f64 / 1000.0;
        if clock.out_of_service || clock.offset_ms.unsigned_abs() > MAX_UNREPORTED_CLOCK_OFFSET_MS {
            let service = if clock.out_of_service { ", out of service" } else { "" };
            problems.push(format!("{name} is off by {:+.1} s{service}", seconds(clock.offset_ms)));
        }
        if let Some(step) = &clock.last_step {
            problems.push(format!("{name} was set by {:+.1} s at {}", seconds(step.by_ms), step.at));
        }
    }
    match problems.is_empty() {
        true => Finding::ok("node clocks", format!("{} checked, none is off or was changed", live_nodes().count())),
        false => Finding::warning("node clocks", problems.join("; ")).with_advice(
            "Synchronize the machines' clocks (NTP). A node whose clock is off by more than 30 s is out of service until the \
             clocks agree again.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_store::finding::FindingSeverity;

    use super::*;

    fn health_severities(json: &str, store: &str) -> Vec<FindingSeverity> {
        let health: HealthBody = serde_json::from_str(json).unwrap();
        let findings = check_health("http://x", &health, store.parse().ok().as_ref(), &[]);
        findings.into_iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn clocks_that_are_off_or_were_changed_are_reported() {
        let nodes = |clock: &str| -> Vec<NodeBody> {
            let node = |id: u8, alive: bool, clock: &str| {
                format!(
                    r#"{{"id":{id},"name":"n{id}","alive":{alive},"joined_at":"","last_heartbeat_at":"","handlers":[],"slots":1,
                        "running":0{clock}}}"#
                )
            };
            let off = r#","clock":{"offset_ms":99999,"out_of_service":true,"last_step":null}"#;
            let list = [node(1, true, ""), node(2, true, clock), node(3, false, off)].join(",");
            serde_json::from_str(&format!("[{list}]")).unwrap()
        };
        let found = |clock: &str| {
            let Finding { severity, observation, .. } = check_node_clocks(&nodes(clock));
            (severity, observation)
        };
        assert_eq!(found(""), (FindingSeverity::Ok, "2 checked, none is off or was changed".into()));
        let off = r#","clock":{"offset_ms":-93600000,"out_of_service":true,"last_step":null}"#;
        assert_eq!(found(off), (FindingSeverity::Warning, "n2 is off by -93600.0 s, out of service".into()));
        let set = r#","clock":{"offset_ms":0,"out_of_service":false,"last_step":{"at":"T","by_ms":3000000}}"#;
        assert_eq!(found(set), (FindingSeverity::Warning, "n2 was set by +3000.0 s at T".into()));
    }

    #[test]
    fn an_unreachable_store_is_a_fault_and_a_version_or_store_mismatch_a_warning() {
        let own_version = env!("CARGO_PKG_VERSION");
        let health = |version: &str, kind: &str, reachable: bool| {
            format!(
                r#"{{"status":"x","version":"{version}","store":{{"kind":"{kind}","reachable":{reachable}}}}}"#
            )
        };
        use FindingSeverity::{Fault, Ok, Warning};
        assert_eq!(health_severities(&health(own_version, "sqlite", true), "sqlite:Cargo.toml"), [Ok]);
        assert_eq!(health_severities(&health(own_version, "sqlite", false), "sqlite:Cargo.toml"), [Fault]);
        assert_eq!(health_severities(&health("0.0.0", "sqlite", true), "sqlite:Cargo.toml"), [Ok, Warning]);
        assert_eq!(health_severities(&health(own_version, "postgres", true), "sqlite:a"), [Ok, Warning]);
        assert_eq!(health_severities(&health(own_version, "postgres", true), "postgres://a@b/c"), [Ok]);
        assert_eq!(health_severities(&health(own_version, "redis", true), "redis+cluster://a,b"), [Ok]);
        let warned =
            health(own_version, "redis", true).replace(r#""status""#, r#""warnings":["a","b"],"status""#);
        assert_eq!(health_severities(&warned, "redis://a"), [Ok, Warning, Warning]);
    }

    #[test]
    fn a_server_on_another_sqlite_file_is_reported() {
        let describe = |store: &str, in_use: &str| {
            describe_store_mismatch("sqlite", &store.parse().unwrap(), &[Finding::ok("in use", in_use)])
        };
        assert_eq!(describe("sqlite:Cargo.toml", "by pointsman, pid 7"), None);
        let other = "the server uses another file: no process uses the configured store sqlite:Cargo.toml";
        assert_eq!(describe("sqlite:Cargo.toml", "no").as_deref(), Some(other));
        assert!(describe("sqlite:there-is-none.db", "no").is_some());
    }
}
