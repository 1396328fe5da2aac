//! What our role may do, and how the schema stands.

use pointsman_store::finding::{Finding, Verdict};
use pointsman_store::transfer::NOTE;

use super::{BEGIN, Checked, Doctor, listed, refused};
use crate::inventory::names;
use crate::migrate::{self, KNOWN, Standing};
use crate::rights::Rights;
use crate::session::query;

impl Doctor {
    /// Answers whether there are tables that can be looked at.
    pub(super) async fn schema(&self) -> Checked<bool> {
        let rights = self.rights().await?;
        if rights.verdict != Verdict::Ok {
            return Ok((vec![rights], false));
        }
        let layout = migrate::look(&self.session, &self.endpoint).await;
        let ours = matches!(layout, Ok(Standing::Applied(KNOWN)));
        let layout = match layout {
            Ok(Standing::Absent | Standing::Empty) => {
                Finding::ok("layout", "there are no tables yet; the first node makes them")
            }
            Ok(Standing::Applied(KNOWN)) => Finding::ok("layout", format!("{KNOWN}, the newest")),
            Ok(Standing::Applied(older)) => Finding::ok(
                "layout",
                format!("{older}; the next node of this version brings it forward to {KNOWN}"),
            )
            .advise("Make a backup first; older versions will not open it any more."),
            Err(error) => refused("layout", &error),
        };
        let mut findings = vec![rights, layout];
        let mut whole = false;
        if ours {
            let found = self.whole().await?;
            whole = found.iter().all(|finding| finding.verdict != Verdict::Fault);
            findings.extend(found);
        }
        Ok((findings, whole))
    }

    /// Whether all is there that the layout has, and whether it is the whole of a store.
    async fn whole(&self) -> Result<Vec<Finding>, tokio_postgres::Error> {
        self.session.batch(BEGIN).await?;
        let looked = self.look_at_things().await;
        self.session.batch("ROLLBACK").await?;
        looked
    }

    async fn look_at_things(&self) -> Result<Vec<Finding>, tokio_postgres::Error> {
        let missing = migrate::missing(&self.session).await?;
        if !missing.is_empty() {
            return Ok(vec![
                Finding::fault("missing", format!("{} of the schema pointsman", listed(&missing))).advise(
                    "Somebody has removed it. Stop all nodes, and restore a backup; a store that has been without it \
                     cannot be mended by making it anew.",
                ),
            ]);
        }
        let note = self.session.query(query!("write/text", TEXT), &[&NOTE]).await?;
        let moved = Finding::fault("move", "a move to this store has not ended")
            .advise("Run the same `pointsman move` again, or begin with another target.");
        let missing = Finding::ok("missing", "nothing");
        Ok(if note.is_empty() { vec![missing] } else { vec![missing, moved] })
    }

    async fn rights(&self) -> Result<Finding, tokio_postgres::Error> {
        let rows = self.ask(query!("open/rights", TEXT_ARRAY), &[&names()]).await?;
        let Some(row) = rows.first() else { return Ok(Finding::fault("rights", "unknown")) };
        let rights = Rights::read(row)?;
        Ok(match rights.lacking() {
            None => Finding::ok("rights", rights.enough()),
            Some(lacking) => Finding::fault("rights", lacking)
                .advise(format!("Let an owner run: {}", rights.remedy(self.endpoint.database()))),
        })
    }
}
