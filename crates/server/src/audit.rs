//! Audit entries: every call that changes something records whose token made the change.
//!
//! ```text
//!  a request ─▶ run_change_to_completion ─▶ the change ─▶ its audit entry
//!      ╎          └─ a spawned future, which ends when both are done
//!      └╌╌ may be cancelled by its client at any time
//! ```
//!
//! A client that disconnects cancels its request. A change that has started then still runs to its end, so that every
//! change is audited and everyone waiting for it is notified. The change and its audit entry are two commits: if the
//! process dies between them, the change has no audit entry.

use std::fmt::Display;
use std::panic::resume_unwind;

use pointsman_core::ErrorChain;
use pointsman_core::store::AuditEntry;

use crate::app_state::AppState;
use crate::auth::Caller;
use crate::problem::Problem;

/// Maximum length of an audit detail. The filter of a redrive becomes a detail and may be as long as a request body.
const MAX_DETAIL_BYTES: usize = 1 << 10;

impl AppState {
    /// Runs a change to its end, together with the record of its audit entry, whether or not the client waits for it.
    pub(crate) async fn run_change_to_completion<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        match self.changes_in_flight.spawn(change).await {
            Ok(done) => done,
            // The panic is reported and logged like any other panic of a call.
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(Problem::unavailable("the server is stopping; check whether the change was made")),
        }
    }

    /// Records what a caller changed. The change is already durable and the response must report success, so an audit
    /// entry that cannot be stored is logged instead.
    pub(crate) async fn record_audit_entry(
        &self,
        caller: &Caller,
        action: &str,
        target: impl Display,
        detail: impl Display,
    ) {
        let entry = AuditEntry {
            at: self.now(),
            actor: caller.token_name.clone(),
            action: action.into(),
            target: target.to_string(),
            detail: shorten_detail(detail.to_string()),
        };
        if let Err(error) = self.store().append_audit_entry(entry.clone()).await {
            let AuditEntry { actor, action, target, .. } = entry;
            tracing::warn!(
                error = %ErrorChain(&error),
                actor,
                action,
                audit_target = target,
                "audit entry could not be stored; the change was made and is missing from the audit log. \
                 If this persists, run `pointsman doctor` to check the store"
            );
        }
    }
}

/// Truncates a detail to [`MAX_DETAIL_BYTES`], with an ellipsis where it was cut.
fn shorten_detail(mut detail: String) -> String {
    const ELLIPSIS: char = '…';
    if detail.len() > MAX_DETAIL_BYTES {
        detail.truncate(detail.floor_char_boundary(MAX_DETAIL_BYTES - ELLIPSIS.len_utf8()));
        detail.push(ELLIPSIS);
    }
    detail
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures::poll;
    use pointsman_engine::{Engine, Settings, Setup};
    use pointsman_store_sqlite::Sqlite;
    use tokio::sync::Notify;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::auth::{AcceptedTokens, Role, hash_token};
    use crate::config::{ConfigInputs, TokenDef};

    #[tokio::test]
    async fn changes_finish_and_are_audited_even_if_the_client_disconnects() {
        let store = Arc::new(Sqlite::in_memory(pointsman_engine::machine_clock_now()).unwrap());
        let engine = Engine::start(store, Settings::default(), Setup::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = ConfigInputs { working_dir: folder.path().into(), ..ConfigInputs::default() }
            .load_config()
            .unwrap();
        let app = AppState::new(engine, &config, AcceptedTokens::default(), CancellationToken::new());
        let token =
            TokenDef { name: "ops".into(), role: Role::Operator, tenant: None, sha256: hash_token("x") };
        let (gate, caller) = (Arc::new(Notify::new()), Caller::from(&token));
        let (inner, opened) = (app.clone(), gate.clone());
        let mut request = Box::pin(app.run_change_to_completion(async move {
            opened.notified().await;
            inner.record_audit_entry(&caller, "pause", "handler index", "x".repeat(2000)).await;
            Ok(())
        }));
        assert!(poll!(&mut request).is_pending());
        drop(request);
        gate.notify_one();
        app.changes_in_flight.close();
        timeout(Duration::from_secs(60), app.changes_in_flight.wait()).await.expect("the change finishes");
        let entries = app.store().list_audit_entries(None, 10).await.unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (entries[0].1.target.as_str(), entries[0].1.detail.len()),
            ("handler index", MAX_DETAIL_BYTES)
        );
    }

    #[test]
    fn details_are_truncated_between_characters() {
        assert_eq!(shorten_detail("short".into()), "short");
        let long = shorten_detail("ü".repeat(1000));
        assert!(long.len() <= MAX_DETAIL_BYTES && long.ends_with('…'), "{}", long.len());
    }
}
