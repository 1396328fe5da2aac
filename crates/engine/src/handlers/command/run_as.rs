//! The user and group that a command runs as, if they are not those of the server.

use std::fs;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid};

/// Numbers of capabilities, from `linux/capability.h`.
const CAP_CHOWN: u32 = 0;
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_KILL: u32 = 5;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;

/// A user and a group of this machine. A command that runs as these has no other groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAsUser {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
    /// The user's home, if the user database names one.
    pub(super) home: Option<PathBuf>,
}

/// Why no command can run as the requested user or group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRunAsUser {
    /// Only root can run commands as another user.
    #[error(
        "this process may not run commands as another user or group: it needs to be root, or to have the \
         capabilities CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL and CAP_DAC_READ_SEARCH (or CAP_DAC_OVERRIDE)"
    )]
    NotPermitted,
    /// There is no user of this name.
    #[error(
        "there is no user {0:?} on this machine; name one that exists, or a number together with `group`"
    )]
    UnknownUser(String),
    /// There is no group of this name.
    #[error("there is no group {0:?} on this machine; name one that exists, or a number")]
    UnknownGroup(String),
    /// The system's user database could not be read.
    #[error("cannot look up {0:?} among the users and groups of this machine: {1}")]
    LookupFailed(String, nix::errno::Errno),
}

impl RunAsUser {
    /// Looks up a user and a group, each by name or number. The default of `group` is the group of the
    /// user, the default of `user` the user of this process.
    pub fn find(user: Option<&str>, group: Option<&str>) -> Result<Self, BadRunAsUser> {
        let (uid, own_group, home) = match user {
            Some(user) => find_user(user)?,
            None => (geteuid(), Some(getegid()), None),
        };
        let gid = match (group, own_group) {
            (Some(group), _) => find_group(group)?,
            (None, Some(own)) => own,
            (None, None) => return Err(BadRunAsUser::UnknownUser(user.unwrap_or_default().into())),
        };
        match may_switch_user() {
            true => Ok(Self { uid, gid, home }),
            false => Err(BadRunAsUser::NotPermitted),
        }
    }

    /// The numbers of the user and the group.
    pub fn uid_and_gid(&self) -> (u32, u32) {
        (self.uid.as_raw(), self.gid.as_raw())
    }
}

/// Finds a user's id, group and home. An id that the user database does not know has neither group nor home.
fn find_user(user: &str) -> Result<(Uid, Option<Gid>, Option<PathBuf>), BadRunAsUser> {
    let lookup_failed = |errno| BadRunAsUser::LookupFailed(user.into(), errno);
    let number = parse_uid_or_gid(user).map(Uid::from_raw);
    let found = match number {
        Some(uid) => User::from_uid(uid).map_err(lookup_failed)?,
        None => User::from_name(user).map_err(lookup_failed)?,
    };
    match (found, number) {
        (Some(found), _) => Ok((found.uid, Some(found.gid), Some(found.dir))),
        (None, Some(uid)) => Ok((uid, None, None)),
        (None, None) => Err(BadRunAsUser::UnknownUser(user.into())),
    }
}

fn find_group(group: &str) -> Result<Gid, BadRunAsUser> {
    if let Some(gid) = parse_uid_or_gid(group) {
        return Ok(Gid::from_raw(gid));
    }
    let found = Group::from_name(group).map_err(|errno| BadRunAsUser::LookupFailed(group.into(), errno))?;
    found.map(|found| found.gid).ok_or_else(|| BadRunAsUser::UnknownGroup(group.into()))
}

/// Parses a number that can be a user or group id. The largest number cannot: to the kernel it means "do not change".
fn parse_uid_or_gid(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| is_number && *id != u32::MAX)
}

/// Whether this process may run commands as other users.
fn may_switch_user() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(has_needed_capabilities)
}

/// Whether these capabilities suffice to set the user and the groups of a child, to give it the effects file and read
/// the file afterwards, and to kill the processes of the child.
fn has_needed_capabilities(effective: u64) -> bool {
    let has = |capability: u32| effective >> capability & 1 == 1;
    [CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL].into_iter().all(has)
        && (has(CAP_DAC_READ_SEARCH) || has(CAP_DAC_OVERRIDE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switching_users_requires_every_listed_capability() {
        let bits =
            |capabilities: &[u32]| capabilities.iter().fold(0, |bits, capability| bits | 1 << capability);
        let needed = [CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL, CAP_DAC_READ_SEARCH];
        assert!(has_needed_capabilities(bits(&needed)) && has_needed_capabilities(u64::MAX));
        for missing in needed {
            assert!(!has_needed_capabilities(bits(&needed) & !(1 << missing)), "{missing}");
        }
        assert!(has_needed_capabilities(bits(&[
            CAP_SETUID,
            CAP_SETGID,
            CAP_CHOWN,
            CAP_KILL,
            CAP_DAC_OVERRIDE
        ])));
    }

    #[test]
    fn users_and_groups_are_names_or_numbers() {
        let unknown_name = || Some("pointsman-no-such-user");
        assert_eq!(
            RunAsUser::find(unknown_name(), None),
            Err(BadRunAsUser::UnknownUser("pointsman-no-such-user".into()))
        );
        assert_eq!(
            RunAsUser::find(None, unknown_name()),
            Err(BadRunAsUser::UnknownGroup("pointsman-no-such-user".into()))
        );
        assert_eq!(
            RunAsUser::find(Some("4000000000"), None),
            Err(BadRunAsUser::UnknownUser("4000000000".into()))
        );
        assert_eq!(
            RunAsUser::find(Some("4294967295"), Some("0")),
            Err(BadRunAsUser::UnknownUser("4294967295".into()))
        );
        assert!(RunAsUser::find(Some("a\0b"), None).is_err() && RunAsUser::find(Some(""), None).is_err());
        match geteuid().is_root() {
            true => {
                assert_eq!(
                    RunAsUser::find(Some("4000000000"), Some("7")).unwrap().uid_and_gid(),
                    (4_000_000_000, 7)
                );
                assert_eq!(RunAsUser::find(Some("root"), None).unwrap().uid_and_gid(), (0, 0));
            }
            false => assert_eq!(RunAsUser::find(Some("root"), None), Err(BadRunAsUser::NotPermitted)),
        }
    }
}
