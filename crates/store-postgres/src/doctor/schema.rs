//! What our role may do, and how the schema stands.

use pointsman_store::finding::{Finding, Verdict};

use super::{Checked, Doctor, refused};
use crate::error::quoted;
use crate::migrate::{self, KNOWN, Standing};
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
        Ok((vec![rights, layout], ours))
    }

    async fn rights(&self) -> Result<Finding, tokio_postgres::Error> {
        let rows = self.ask(query!("doctor/rights"), &[]).await?;
        let Some(row) = rows.first() else { return Ok(Finding::fault("rights", "unknown")) };
        let role: &str = row.try_get(0)?;
        let Some(owner) = row.try_get::<_, Option<&str>>(2)? else {
            return Ok(match row.try_get(1)? {
                true => Finding::ok("rights", format!("{role} may make the schema pointsman")),
                false => {
                    let database = quoted(self.endpoint.database());
                    Finding::fault("rights", format!("{role} may not make the schema pointsman")).advise(
                        format!("Let an owner run: GRANT CREATE ON DATABASE {database} TO {}", quoted(role)),
                    )
                }
            });
        };
        let (usable, foreign): (bool, i64) = (row.try_get(3)?, row.try_get(4)?);
        if usable && foreign == 0 {
            return Ok(Finding::ok("rights", format!("{role} may do all that is needed")));
        }
        let found = match usable {
            true => format!("{foreign} tables and functions of the schema pointsman are not {role}'s"),
            false => format!("{role} may not use the schema pointsman, or not make tables in it"),
        };
        let grant = format!("GRANT {} TO {}", quoted(owner), quoted(role));
        Ok(Finding::fault("rights", found).advise(format!("Let an owner run: {grant}")))
    }
}
