//! JSON bodies about the configuration of a server process.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The configuration of the process that responds. Other nodes have their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigBody {
    /// The name of this node.
    #[serde(rename = "node")]
    pub node_name: String,
    /// The files from which the configuration was read, in order.
    pub files: Vec<String>,
    /// When the configuration took effect: the start of the process, or its last successful reload.
    pub loaded_at: String,
    /// Whether changes of the files are detected and applied.
    pub watched: bool,
    /// The whole configuration in YAML, as `pointsman config show` prints it: a comment after each value says where it
    /// comes from, and secrets are hidden.
    pub settings: String,
    /// Settings that are allowed but probably a mistake, each with its location.
    pub warnings: Vec<String>,
    /// The reloads since the start, the newest first; at most 50.
    pub reloads: Vec<ConfigReloadBody>,
}

/// A detected change of the files, and whether it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigReloadBody {
    /// When the change was detected.
    pub at: String,
    /// False if the previous configuration stayed in effect.
    pub applied: bool,
    /// Why the change was not applied; null if it was.
    pub error: Option<String>,
    /// Every fault in the files, in order; the first 200.
    pub faults: Vec<ConfigFaultBody>,
    /// The number of faults beyond the first 200.
    #[serde(rename = "more_faults")]
    pub omitted_fault_count: u64,
}

/// A mistake in a configuration file, a variable or a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigFaultBody {
    /// File, line and column, or the variable or flag.
    pub location: String,
    /// The fault and its remedy.
    pub message: String,
    /// The line, with a marker below the location; null if the line may contain a secret.
    pub excerpt: Option<String>,
}
