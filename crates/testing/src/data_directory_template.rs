//! A PostgreSQL data directory that is created once and copied from then on: `initdb` takes most of a second, and
//! copying a tenth of that.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::server_folder::copy_folder_for_user;
use crate::server_os_user::ServerOsUser;
use crate::server_process::clear_environment_and_set_folder;
use crate::server_programs::PostgresPrograms;
use crate::target_folder;

/// The options of `initdb`. Every local user may log in, because the server listens on loopback only, for the time
/// of a test. The locale is the one that every machine has.
const INITDB_OPTIONS: [&str; 7] = [
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
    "--pgdata",
];

/// Creates a new data directory at `data`, inside of the server's folder.
pub(crate) fn create_data_directory(
    programs: &PostgresPrograms,
    user: &ServerOsUser,
    data: &Path,
) -> anyhow::Result<()> {
    let Some(templates) = target_folder::postgres_templates_folder() else {
        return run_initdb(programs, user, data);
    };
    let template = templates.join(format!("postgres-{}", programs.version));
    if template.exists() {
        return copy_folder_for_user(&template, data, user);
    }
    run_initdb(programs, user, data)?;
    save_as_template(data, &templates, &template)
}

fn run_initdb(programs: &PostgresPrograms, user: &ServerOsUser, data: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(&programs.initdb);
    command.args(INITDB_OPTIONS).arg(data);
    clear_environment_and_set_folder(
        &mut command,
        data.parent().context("the data directory has no parent folder")?,
    );
    user.apply_to_command(&mut command);
    let output = command.output().with_context(|| format!("cannot run {}", programs.initdb.display()))?;
    if !output.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Stores a copy of an unused data directory as the template. The rename is atomic, so that another process never finds
/// half a template.
fn save_as_template(data: &Path, templates: &Path, template: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(templates)?;
    let temporary_folder = tempfile::tempdir_in(templates)?;
    let copy = temporary_folder.path().join("data");
    copy_folder_for_user(data, &copy, &ServerOsUser::CurrentUser)?;
    match fs::rename(&copy, template) {
        Err(error) if !template.exists() => {
            Err(error).context("cannot store the data directory as a template")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
