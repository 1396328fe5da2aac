//! Who changed what: every call that changes something writes down whose token it was.
//!
//! ```text
//!  a request ─▶ deed ─▶ what was asked for ─▶ its note
//!      ╎          └─ a task of its own, which ends when both are done
//!      └╌╌ may be given up by its client at any time
//! ```
//!
//! A client that goes away takes its request with it. What has been begun by then is carried to its end all the same,
//! so that nothing is done without being written down, and nobody who should be told of it is passed over. The two
//! are two commits: should the process die between them, the deed stands without its note.

use std::fmt::Display;
use std::panic::resume_unwind;

use pointsman_core::store::Deed;

use crate::app::Shared;
use crate::auth::Caller;
use crate::problem::Problem;

/// How much of a detail is written down, in bytes. A filter may be as long as a body.
const LONGEST_DETAIL: usize = 1 << 10;

impl Shared {
    /// Does what changes something, notes included, to its end, whether or not the client waits for it.
    pub(crate) async fn deed<T: Send + 'static>(
        &self,
        act: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        match self.deeds.spawn(act).await {
            Ok(done) => done,
            // Told and logged like any other panic of a call.
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(Problem::unavailable("the server is stopping; look whether it was done")),
        }
    }

    /// Writes down what a caller did. It has been done by then, and the answer must say so: a note that cannot be
    /// written is told to the log instead.
    pub(crate) async fn note(&self, caller: &Caller, action: &str, what: impl Display, detail: impl Display) {
        let deed = Deed {
            at: self.now(),
            by: caller.name.clone(),
            action: action.into(),
            what: what.to_string(),
            detail: cut(detail.to_string()),
        };
        if let Err(error) = self.store().note(deed.clone()).await {
            let Deed { by, action, what, .. } = deed;
            tracing::warn!(%error, by, action, what, "what was done could not be written down");
        }
    }
}

/// A detail of at most [`LONGEST_DETAIL`], with a visible mark where it was cut.
fn cut(mut detail: String) -> String {
    const MARK: char = '…';
    if detail.len() > LONGEST_DETAIL {
        detail.truncate(detail.floor_char_boundary(LONGEST_DETAIL - MARK.len_utf8()));
        detail.push(MARK);
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
    use crate::auth::{Role, Tokens, hash};
    use crate::config::{Sources, TokenDef};

    #[tokio::test]
    async fn what_was_begun_is_done_and_noted_though_the_client_goes_away() {
        let store = Arc::new(Sqlite::in_memory(pointsman_engine::now()).unwrap());
        let engine = Engine::start(store, Settings::default(), Setup::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = Sources { working: folder.path().into(), ..Sources::default() }.load().unwrap();
        let app = Shared::new(engine, &config, Tokens::default(), CancellationToken::new());
        let token = TokenDef { name: "ops".into(), role: Role::Operator, tenant: None, sha256: hash("x") };
        let (at_it, caller) = (Arc::new(Notify::new()), Caller::from(&token));
        let (inner, go_on) = (app.clone(), at_it.clone());
        let mut request = Box::pin(app.deed(async move {
            go_on.notified().await;
            inner.note(&caller, "pause", "handler index", "x".repeat(2000)).await;
            Ok(())
        }));
        assert!(poll!(&mut request).is_pending());
        drop(request);
        at_it.notify_one();
        app.deeds.close();
        timeout(Duration::from_secs(60), app.deeds.wait()).await.expect("it ends");
        let deeds = app.store().deeds(None, 10).await.unwrap();
        assert_eq!(deeds.len(), 1);
        assert_eq!((deeds[0].1.what.as_str(), deeds[0].1.detail.len()), ("handler index", LONGEST_DETAIL));
    }

    #[test]
    fn details_are_cut_between_characters() {
        assert_eq!(cut("lunch".into()), "lunch");
        let long = cut("ü".repeat(1000));
        assert!(long.len() <= LONGEST_DETAIL && long.ends_with('…'), "{}", long.len());
    }
}
