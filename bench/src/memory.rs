//! How much memory a process holds.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::report::{Figure, Unit};

/// The resident memory of this process, in megabytes.
pub(crate) fn resident_mb() -> f64 {
    resident_of("self").unwrap_or(0.0)
}

fn resident_of(process: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kilobytes / 1024.0)
}

/// Starts a server of its own and looks at it when it has come to rest.
pub(crate) fn idle(program: &Path, dir: &Path) -> anyhow::Result<Vec<Figure>> {
    let home = tempfile::tempdir_in(dir)?;
    let mut server = Command::new(program)
        .args(["serve", "--listen", "127.0.0.1:0", "--store"])
        .arg(format!("sqlite:{}", home.path().join("idle.db").display()))
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} could not be started", program.display()))?;
    let measured = settled(&mut server);
    // It was started here and is ended here, whatever was measured.
    let _ = server.kill();
    let _ = server.wait();
    Ok(vec![Figure::new("memory of an idle server", measured?, Unit::Megabytes).below(30.0)])
}

/// Waits until the memory no longer changes.
fn settled(server: &mut std::process::Child) -> anyhow::Result<f64> {
    let process = server.id().to_string();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut last = 0.0;
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1500));
        if let Some(status) = server.try_wait()? {
            bail!("the server ended by itself: {status}");
        }
        let resident = resident_of(&process)?;
        if resident > 0.0 && (resident - last).abs() < 0.25 {
            return Ok(resident);
        }
        last = resident;
    }
    Ok(last)
}
