//! Keeps other processes of the same user out of this one, whose memory and environment hold tokens and passwords.
//!
//! A command handler runs under the server's user unless it has a `user` of its own. Without this it could read
//! `/proc/PID/environ` and `/proc/PID/mem` of the server, and attach a debugger to it. The kernel also writes no core dump
//! of a process that refuses inspection. Root can inspect every process.

use nix::sys::prctl::set_dumpable;

use crate::failure::{Failure, Result};

/// Refuses to be inspected by other processes of this user. The programs that this process starts are not affected:
/// the kernel resets the attribute when a program is executed.
pub(crate) fn refuse_inspection() -> Result {
    set_dumpable(false).map_err(|errno| {
        Failure::runtime(format!(
            "cannot deny other processes access to this process's memory: prctl(PR_SET_DUMPABLE): {errno}"
        ))
    })
}
