//! Denies other processes of the same user access to this one, whose memory and environment contain tokens and passwords.
//!
//! A command handler runs under the server's user unless it has a `user` of its own. Without this protection, the
//! command could read `/proc/PID/environ` and `/proc/PID/mem` of the server, and attach a debugger to it. The kernel
//! also writes no core dump of a process that refuses inspection. Root can inspect every process.
//!
//! Capabilities of this process are kept from commands as well: one with CAP_SETUID could become root.

use nix::sys::prctl::set_dumpable;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
};

use crate::failure::{CommandResult, Failure};

/// Denies other processes of this user access to this one, and drops inheritable capabilities. Must be called before any
/// thread starts: capabilities belong to threads, which inherit them from the thread that starts them.
pub(crate) fn protect_process() -> CommandResult {
    // The programs that this process starts are not affected: the kernel resets the attribute when a program is
    // executed.
    set_dumpable(false).map_err(|errno| {
        Failure::runtime(format!(
            "cannot deny other processes access to this process's memory: prctl(PR_SET_DUMPABLE): {errno}"
        ))
    })?;
    drop_inheritable_capabilities()
}

/// Keeps started programs from inheriting capabilities. This process keeps its own: a service manager grants them so that
/// commands can run as other users (`AmbientCapabilities=` of systemd). Programs of root have all of them anyway.
fn drop_inheritable_capabilities() -> CommandResult {
    let failed = |call: &str, errno: Errno| {
        Failure::runtime(format!("cannot keep commands from inheriting capabilities: {call}: {errno}"))
    };
    match clear_ambient_capability_set() {
        // The kernel has no ambient capabilities before Linux 4.3.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(failed("prctl(PR_CAP_AMBIENT)", errno)),
    }
    let sets = capabilities(None).map_err(|errno| failed("capget", errno))?;
    // Without ambient capabilities, inheritable ones matter only to programs whose file has inheritable capabilities.
    // They are kept under a seccomp filter such as systemd's `SystemCallFilter=~@privileged`, which would kill this
    // process for calling `capset`.
    if sets.inheritable.is_empty() || has_seccomp_filter() {
        return Ok(());
    }
    let without_inheritable = CapabilitySets { inheritable: CapabilitySet::empty(), ..sets };
    set_capabilities(None, without_inheritable).map_err(|errno| failed("capset", errno))
}

/// Whether a seccomp filter limits the system calls of this process. True if that cannot be read.
fn has_seccomp_filter() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Seccomp:")).is_none_or(|mode| mode.trim() != "0")
}
