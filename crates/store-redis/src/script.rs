//! The Lua scripts: one file each in `lua/`, loaded on connecting and called by hash.

use std::sync::LazyLock;

/// A script and its SHA-1 hash.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    hash: LazyLock<String>,
}

/// Declares scripts and lists them all.
macro_rules! scripts {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: Script = Script {
            source: include_str!(concat!("lua/", $file)),
            hash: LazyLock::new(|| redis::Script::new(include_str!(concat!("lua/", $file))).get_hash().into()),
        };)*
        pub(crate) static ALL_SCRIPTS: &[&Script] = &[$(&$name),*];
    };
}

scripts! {
    BEGIN_TRANSACTION = "begin_transaction.lua";
    CAUSED_EVENTS = "caused_events.lua";
    OBJECT_EVENTS = "object_events.lua";
    COMMIT = "commit.lua";
    OBJECT_LANES = "object_lanes.lua";
    READY_TASKS = "ready_tasks.lua";
    READ_OUTBOXES = "read_outboxes.lua";
    REQUEUE_OBJECTS = "requeue_objects.lua";
    CLAIM_OBJECTS = "claim_objects.lua";
    UNIT_OF_WORK = "unit_of_work.lua";
}

impl Script {
    /// Builds the `SCRIPT LOAD` command of the script.
    pub(crate) fn build_load_command(&self) -> Vec<Vec<u8>> {
        vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), self.source.as_bytes().to_vec()]
    }

    /// Builds the `EVALSHA` command that calls the script with these keys and arguments.
    pub(crate) fn build_evalsha_command(&self, keys: Vec<Vec<u8>>, arguments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut args = Vec::with_capacity(3 + keys.len() + arguments.len());
        args.push(b"EVALSHA".to_vec());
        args.push(self.hash.as_bytes().to_vec());
        args.push(keys.len().to_string().into_bytes());
        args.extend(keys);
        args.extend(arguments);
        args
    }
}
