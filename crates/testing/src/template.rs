//! A database cluster made once and copied from then on: `initdb` takes most of a second, a copy a tenth of that.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::folder::copy;
use crate::process::plain;
use crate::programs::PostgresPrograms;
use crate::target;
use crate::user::Servant;

/// Loopback only, and for the time of a test: everybody there may come in. The locale is the one that every
/// machine has.
const INITDB: [&str; 7] = [
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
    "--pgdata",
];

/// Makes a new cluster in `data`, inside of the server's folder.
pub(crate) fn cluster(programs: &PostgresPrograms, servant: &Servant, data: &Path) -> anyhow::Result<()> {
    let Some(templates) = target::templates() else { return initdb(programs, servant, data) };
    let template = templates.join(format!("postgres-{}", programs.version));
    if template.exists() {
        return copy(&template, data, servant);
    }
    initdb(programs, servant, data)?;
    keep(data, &templates, &template)
}

fn initdb(programs: &PostgresPrograms, servant: &Servant, data: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(&programs.initdb);
    command.args(INITDB).arg(data);
    plain(&mut command, data.parent().context("a cluster needs a folder around it")?);
    servant.run(&mut command);
    let ended = command.output().with_context(|| format!("cannot run {}", programs.initdb.display()))?;
    if !ended.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&ended.stderr));
    }
    Ok(())
}

/// Keeps a copy of a cluster that was never used. It appears whole or not at all, whoever else makes one.
fn keep(data: &Path, templates: &Path, template: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(templates)?;
    let draft = tempfile::tempdir_in(templates)?;
    let copied = draft.path().join("data");
    copy(data, &copied, &Servant::Us)?;
    match fs::rename(&copied, template) {
        Err(error) if !template.exists() => Err(error).context("cannot keep a cluster for copying"),
        Ok(()) | Err(_) => Ok(()),
    }
}
