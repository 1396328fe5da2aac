//! The roles of tokens.

use std::fmt;
use std::str::FromStr;

/// The role of a token. Each call of the API requires one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads everything, changes nothing.
    Viewer,
    /// Emits events.
    Producer,
    /// Claims tasks of pull handlers, renews their leases, and reports how their attempts ended.
    Worker,
    /// Reads everything, retries and cancels tasks, pauses, runs schedules, controls orders and chains.
    Operator,
    /// Everything, including blocking and the audit.
    Admin,
}

impl Role {
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Producer, Self::Worker, Self::Operator, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Producer => "producer",
            Self::Worker => "worker",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Whether this role permits everything that `required` permits.
    pub fn includes(self, required: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Operator => matches!(required, Self::Operator | Self::Viewer),
            Self::Viewer | Self::Producer | Self::Worker => self == required,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not the name of a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; there are viewer, producer, worker, operator and admin")]
pub struct BadRole(String);

impl FromStr for Role {
    type Err = BadRole;
    fn from_str(text: &str) -> Result<Self, BadRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| BadRole(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_includes_all_and_operator_includes_viewer() {
        for required in Role::ALL {
            assert!(Role::Admin.includes(required));
            for role in [Role::Viewer, Role::Producer, Role::Worker] {
                assert_eq!(role.includes(required), role == required, "{role} {required}");
            }
        }
        assert!(Role::Operator.includes(Role::Viewer));
        assert!(!Role::Operator.includes(Role::Producer));
        assert!(!Role::Operator.includes(Role::Admin));
    }

    #[test]
    fn displayed_roles_parse_to_the_same_role() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse::<Role>(), Ok(role));
        }
        assert!("root".parse::<Role>().is_err());
    }
}
