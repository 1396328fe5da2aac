//! What the tests of this folder share.

use super::fault::Findings;
use super::place::{Origin, Place, Source};
use super::yaml::{self, Node};

/// Reads one value from a text; the messages of its faults otherwise.
pub(super) fn read<T>(
    text: &str,
    read: impl FnOnce(&Node, &mut Findings) -> Option<T>,
) -> Result<T, Vec<String>> {
    let mut findings = Findings::default();
    let source = Source::new(Origin::File("test.yml".into()), 0, text.into());
    let value = yaml::parse(&source, &mut findings).and_then(|node| read(&node, &mut findings));
    match findings.finish(value, &Place::whole(&source)) {
        Ok((value, _)) => Ok(value),
        Err(faults) => Err(faults.iter().map(|fault| fault.message().to_owned()).collect()),
    }
}

/// The messages of the faults that reading a value finds.
pub(super) fn faults_of<T>(
    text: &str,
    read_value: impl FnOnce(&Node, &mut Findings) -> Option<T>,
) -> Vec<String> {
    read(text, read_value).err().unwrap_or_default()
}
