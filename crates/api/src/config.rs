//! What a process was set up with, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The configuration of the process that answers. Other nodes have theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigBody {
    /// The name of this node.
    pub node: String,
    /// The files it was read from, in their order.
    pub files: Vec<String>,
    /// Since when it holds: the start of the process, or the last change that was taken up.
    pub loaded_at: String,
    /// Changes of the files are noticed and taken up.
    pub watched: bool,
    /// All of it in YAML, as `pointsman config show` has it: behind each value a comment tells where it comes from, and
    /// secrets are not shown.
    pub settings: String,
    /// What is allowed but probably not meant, each with its place.
    pub warnings: Vec<String>,
    /// What became of the changes that were noticed since the start, the newest first; at most 50.
    pub reloads: Vec<ReloadBody>,
}

/// A change of the files that was noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReloadBody {
    pub at: String,
    /// False if everything stayed as it was.
    pub applied: bool,
    /// Why it was not taken up; null if it was.
    pub error: Option<String>,
    /// Every fault of the files, in their order; the first 200.
    pub faults: Vec<FaultBody>,
    /// How many faults are not shown.
    pub more_faults: u64,
}

/// Something that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultBody {
    /// File, line and column, or the variable or flag.
    pub place: String,
    pub message: String,
    /// The line, and a mark below the place; null where the line may hold a secret.
    pub excerpt: Option<String>,
}
