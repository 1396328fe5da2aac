//! Measures the resident memory of processes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::report::{Figure, MeasurementUnit};

/// Returns the resident memory of this process, in megabytes.
pub(crate) fn own_resident_mb() -> f64 {
    process_resident_mb("self").unwrap_or(0.0)
}

fn process_resident_mb(process: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kilobytes / 1024.0)
}

/// Starts a server and measures its memory once that is stable.
pub(crate) fn measure_idle_server_memory(program: &Path, dir: &Path) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir_in(dir)?;
    let mut server = Command::new(program)
        .args(["serve", "--listen", "127.0.0.1:0", "--store"])
        .arg(format!("sqlite:{}", folder.path().join("idle.db").display()))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let measured = wait_for_stable_resident_mb(&mut server);
    // The server was started here and is killed here, whether or not the measurement failed.
    let _ = server.kill();
    let _ = server.wait();
    Ok(vec![
        Figure::new("memory of an idle server", measured?, MeasurementUnit::Megabytes).with_max_value(30.0),
    ])
}

/// Waits until the server's memory no longer changes, or for 20 seconds, and returns it in megabytes.
fn wait_for_stable_resident_mb(server: &mut std::process::Child) -> anyhow::Result<f64> {
    let process = server.id().to_string();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut last = 0.0;
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1500));
        if let Some(status) = server.try_wait()? {
            bail!("the server ended while its memory was measured: {status}");
        }
        let resident = process_resident_mb(&process)?;
        if resident > 0.0 && (resident - last).abs() < 0.25 {
            return Ok(resident);
        }
        last = resident;
    }
    Ok(last)
}
