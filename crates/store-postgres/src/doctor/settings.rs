//! Settings of the server that lose data, or hinder.

use std::collections::HashMap;
use std::time::Duration;

use pointsman_store::finding::{Finding, Verdict};
use tokio_postgres::Error;

use super::{Checked, Doctor, listed};
use crate::error::quoted;
use crate::session::query;

/// A setting, and when it is not as it should be.
struct Rule {
    name: &'static str,
    /// What it should be.
    right: &'static str,
    verdict: Verdict,
    is_wrong: fn(&Settings, &str) -> bool,
    /// What follows from it.
    so: &'static str,
}

const RULES: [Rule; 10] = [
    Rule {
        name: "fsync",
        right: "on",
        verdict: Verdict::Fault,
        is_wrong: |_, value| value == "off",
        so: "a crash of the machine can destroy the whole database",
    },
    Rule {
        name: "full_page_writes",
        right: "on",
        verdict: Verdict::Fault,
        is_wrong: |_, value| value == "off",
        so: "a crash of the machine can leave pages half written",
    },
    Rule {
        name: "synchronous_commit",
        right: "on",
        verdict: Verdict::Fault,
        // `local` waits for the disk, and without synchronous standbys there is nothing else to wait for.
        is_wrong: |all, value| {
            value == "off" || value == "local" && !all.text("synchronous_standby_names").is_empty()
        },
        so: "commits are answered too early, and what is emitted in SQL can be lost in a crash",
    },
    Rule {
        name: "autovacuum",
        right: "on",
        verdict: Verdict::Warning,
        is_wrong: |_, value| value == "off",
        so: "tables grow without end, and claims become slower and slower",
    },
    Rule {
        name: "track_counts",
        right: "on",
        verdict: Verdict::Warning,
        is_wrong: |_, value| value == "off",
        so: "autovacuum does not know where there is something to do",
    },
    Rule {
        name: "statement_timeout",
        right: "0",
        verdict: Verdict::Warning,
        is_wrong: |_, value| is_within(value, Duration::from_secs(60)),
        so: "a writer may wait 15 s for its turn, and reading a long list takes its time",
    },
    Rule {
        name: "idle_in_transaction_session_timeout",
        right: "0",
        verdict: Verdict::Warning,
        is_wrong: |_, value| is_within(value, Duration::from_secs(10)),
        so: "a node that is slow for a moment is cut off; writers set 10 s for themselves",
    },
    Rule {
        name: "idle_session_timeout",
        right: "0",
        verdict: Verdict::Warning,
        is_wrong: |_, value| value != "0",
        so: "connections that wait for news are cut off, and nodes wake later",
    },
    Rule {
        name: "lock_timeout",
        right: "0",
        verdict: Verdict::Warning,
        is_wrong: |_, value| is_within(value, Duration::from_secs(1)),
        so: "a read that meets a new slice may fail; writers set 15 s for themselves",
    },
    Rule {
        name: "transaction_timeout",
        right: "0",
        verdict: Verdict::Warning,
        is_wrong: |_, value| is_within(value, Duration::from_secs(60)),
        so: "a writer may wait 15 s for its turn, and reading a long list takes its time",
    },
];

/// What others ask for beside.
const ASKED_TOO: [&str; 1] = ["synchronous_standby_names"];

/// The settings as they are for us: each with its value and where that comes from.
struct Settings(HashMap<String, (String, String)>);

impl Settings {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |(value, _)| value.as_str())
    }
}

impl Doctor {
    pub(super) async fn settings(&self) -> Checked<()> {
        let names: Vec<&str> = RULES.iter().map(|rule| rule.name).chain(ASKED_TOO).collect();
        let mut settings = Settings(HashMap::new());
        // Not in a transaction like the others, which has settings of its own.
        for row in self.session.query(query!("doctor/settings", TEXT_ARRAY), &[&names]).await? {
            settings.0.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
        }
        let mut findings: Vec<Finding> =
            RULES.iter().filter_map(|rule| rule.judge(&settings, self)).collect();
        if findings.is_empty() {
            findings.push(Finding::ok("settings", "none loses data, none hinders"));
        }
        findings.extend(self.careless_roles().await?);
        Ok((findings, ()))
    }

    /// Roles whose commits do not wait for the disk, whatever the server says.
    async fn careless_roles(&self) -> Result<Option<Finding>, Error> {
        let mut roles = Vec::new();
        for row in self.ask(query!("doctor/role_settings"), &[]).await? {
            let (role, here, word): (&str, bool, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let whose = if role.is_empty() { "all roles".into() } else { quoted(role) };
            roles.push(format!("{word} for {whose}{}", if here { " in this database" } else { "" }));
        }
        Ok((!roles.is_empty()).then(|| {
            Finding::warning("roles", listed(&roles)).advise(
                "What such a role emits in SQL can be lost in a crash, although its commit was answered. \
                 Undo it where that matters: ALTER ROLE … RESET synchronous_commit, or ALTER ROLE … IN \
                 DATABASE … RESET synchronous_commit.",
            )
        }))
    }

    /// What puts a setting right, where it was put wrong.
    fn remedy(&self, rule: &Rule, source: &str) -> String {
        let Rule { name, right, .. } = rule;
        let (role, database) = (quoted(self.endpoint.role()), quoted(self.endpoint.database()));
        match source {
            "user" => format!("ALTER ROLE {role} RESET {name}"),
            "database" => format!("ALTER DATABASE {database} RESET {name}"),
            "database user" => format!("ALTER ROLE {role} IN DATABASE {database} RESET {name}"),
            "client" => format!("Take {name} out of the URL's options."),
            "command line" => format!("Take {name} off the command line by which the server is started."),
            _ => format!("ALTER SYSTEM SET {name} = {right}; SELECT pg_reload_conf()"),
        }
    }
}

impl Rule {
    /// None if it is as it should be, or if this server does not know it.
    fn judge(&self, settings: &Settings, doctor: &Doctor) -> Option<Finding> {
        let (value, source) = settings.0.get(self.name)?;
        if !(self.is_wrong)(settings, value) {
            return None;
        }
        let found = format!("{value}: {}", self.so);
        let advice = doctor.remedy(self, source);
        Some(Finding { name: self.name, verdict: self.verdict, found, advice: Some(advice) })
    }
}

/// Whether a time in milliseconds is set, and shorter than this.
fn is_within(value: &str, least: Duration) -> bool {
    value.parse().is_ok_and(|ms: u64| ms > 0 && Duration::from_millis(ms) < least)
}
