//! Orphaned objects: they have events, but no producer queued them, or their dead owner does not name them. The scan for
//! dead workers requeues objects with a dead owner. Lists that no producer queued may belong to another application, so an
//! operator decides.

use std::collections::BTreeSet;

use crate::connect::shell_quote;
use crate::connection::{CommandArgs, args};
use crate::keys::Keys;

/// Maximum number of objects that one script call checks.
const OBJECTS_PER_SCRIPT_CALL: usize = 200;
/// Maximum number of objects that the command for an operator enqueues.
pub(crate) const MAX_OBJECTS_PER_ENQUEUE_COMMAND: usize = 10;
/// Pattern that matches `OBJ:events` and `OBJ:event.worker`, the keys whose names contain an object.
pub(crate) const OUTBOX_KEY_PATTERN: &str = "*:event*";
const ORPHANED_OBJECTS_LUA: &str = include_str!("../lua/orphaned_objects.lua");

pub(crate) type ObjectNames = BTreeSet<Vec<u8>>;

/// Returns the object whose outbox or owner a key contains; `None` for other keys.
pub(crate) fn object_of_outbox_key(name: &[u8]) -> Option<Vec<u8>> {
    name.strip_suffix(b":events").or_else(|| name.strip_suffix(b":event.worker")).map(<[u8]>::to_vec)
}

/// Returns the commands that find out which of these objects are orphaned.
pub(crate) fn find_orphaned_objects_commands(keys: &Keys, objects: &ObjectNames) -> Vec<CommandArgs> {
    let objects = Vec::from_iter(objects.iter().cloned());
    let find_command = |chunk: &[Vec<u8>]| {
        let script = args![
            "EVAL_RO",
            ORPHANED_OBJECTS_LUA,
            "1",
            keys.with_prefix("objects.with.events"),
            keys.with_prefix("")
        ];
        [&script, chunk].concat()
    };
    objects.chunks(OBJECTS_PER_SCRIPT_CALL).map(find_command).collect()
}

/// Returns the redis-cli command that enqueues the first of these objects.
pub(crate) fn enqueue_objects_command(redis_cli: &str, keys: &Keys, orphaned: &ObjectNames) -> String {
    let names: Vec<String> =
        orphaned.iter().take(MAX_OBJECTS_PER_ENQUEUE_COMMAND).map(|object| shell_quote(object)).collect();
    format!("{redis_cli} LPUSH {} {}", shell_quote(&keys.with_prefix("objects.with.events")), names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names_are_parsed_from_outbox_keys() {
        assert_eq!(object_of_outbox_key(b"record:1:events"), Some(b"record:1".to_vec()));
        assert_eq!(object_of_outbox_key(b"record:1:event.worker"), Some(b"record:1".to_vec()));
        assert_eq!(
            (object_of_outbox_key(b"event.worker:w:event"), object_of_outbox_key(b"objects.with.events")),
            (None, None)
        );
    }

    #[test]
    fn enqueue_command_names_the_first_objects() {
        let orphaned: ObjectNames = (10..30).map(|n| format!("o {n}").into_bytes()).collect();
        let command = enqueue_objects_command("redis-cli", &Keys::new("p:"), &orphaned);
        assert!(command.starts_with("redis-cli LPUSH p:objects.with.events 'o 10' 'o 11' "), "{command}");
        assert_eq!(command.matches("'o ").count(), MAX_OBJECTS_PER_ENQUEUE_COMMAND);
    }
}
