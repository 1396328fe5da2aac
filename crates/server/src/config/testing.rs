//! Helpers of this folder's tests.

use super::fault::Findings;
use super::location::{ConfigText, SettingLocation, SettingOrigin};
use super::yaml::{self, YamlNode};

/// Reads one value from YAML text. The error has the messages of its faults.
pub(super) fn read_value_from_yaml<T>(
    text: &str,
    read: impl FnOnce(&YamlNode, &mut Findings) -> Option<T>,
) -> Result<T, Vec<String>> {
    let mut findings = Findings::default();
    let config_text = ConfigText::new(SettingOrigin::File("test.yml".into()), 0, text.into());
    let value = yaml::parse_yaml(&config_text, &mut findings).and_then(|node| read(&node, &mut findings));
    match findings.into_result(value, &SettingLocation::whole_text(&config_text)) {
        Ok((value, _)) => Ok(value),
        Err(faults) => Err(faults.iter().map(|fault| fault.message().to_owned()).collect()),
    }
}

/// The messages of the faults of a value.
pub(super) fn fault_messages<T>(
    text: &str,
    read_value: impl FnOnce(&YamlNode, &mut Findings) -> Option<T>,
) -> Vec<String> {
    read_value_from_yaml(text, read_value).err().unwrap_or_default()
}
