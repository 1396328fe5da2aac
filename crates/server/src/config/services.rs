//! Reads the setting `services`: the services that this process runs.

use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_engine::EnabledServices;

use super::decode::{read_list_items, read_text};
use super::fault::Findings;
use super::yaml::{YamlKind, YamlNode};

/// The names of all services. `sequencer` is accepted and has no effect: every node runs a sequencer, whatever services
/// are selected.
pub(super) const SERVICE_NAMES: &[&str] =
    &["http", "sequencer", "scheduler", "worker", "clock", "rescuer", "pruner"];

/// The services of the engine, and whether HTTP is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SelectedServices {
    pub(super) engine_services: EnabledServices,
    pub(super) serves_http: bool,
}

/// Reads a list, or names separated by commas as in a flag or variable.
pub(super) fn read_services(node: &YamlNode, findings: &mut Findings) -> Option<SelectedServices> {
    let mut selected = SelectedServices {
        engine_services: EnabledServices {
            scheduler: false,
            worker: false,
            clock: false,
            rescuer: false,
            pruner: false,
        },
        serves_http: false,
    };
    let mut enable = |name: &str, at: &YamlNode, findings: &mut Findings| match name {
        "http" => selected.serves_http = true,
        "sequencer" => {}
        "scheduler" => selected.engine_services.scheduler = true,
        "worker" => selected.engine_services.worker = true,
        "clock" => selected.engine_services.clock = true,
        "rescuer" => selected.engine_services.rescuer = true,
        "pruner" => selected.engine_services.pruner = true,
        other => {
            let suggestion = did_you_mean_suffix(other, SERVICE_NAMES.iter().copied());
            findings.add_fault(&at.location, format!("there is no service {other:?}{suggestion}"));
        }
    };
    let mut has_services = false;
    if let YamlKind::Scalar { text, .. } = &node.kind {
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            enable(name, node, findings);
            has_services = true;
        }
    } else {
        for item in read_list_items(node, "`services`", findings)? {
            if let Some(name) = read_text(item, findings) {
                enable(name, item, findings);
            }
            has_services = true;
        }
    }
    if !has_services {
        findings.add_fault(&node.location, "a process without any service does nothing; name at least one");
    }
    Some(selected)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn services_are_a_list_or_comma_separated_names() {
        let all = format!("[{}]", SERVICE_NAMES.join(", "));
        assert_eq!(
            read_value_from_yaml(&all, read_services),
            Ok(SelectedServices { engine_services: EnabledServices::default(), serves_http: true })
        );
        let some = read_value_from_yaml("http, worker", read_services).unwrap();
        assert!(some.serves_http && some.engine_services.worker && !some.engine_services.clock);
        assert_eq!(read_value_from_yaml("[http, worker]", read_services), Ok(some));
    }

    #[test]
    fn unknown_services_and_an_empty_list_are_faults() {
        assert_eq!(
            fault_messages("[wroker]", read_services),
            ["there is no service \"wroker\"; did you mean `worker`?"]
        );
        assert_eq!(
            fault_messages("[]", read_services),
            ["a process without any service does nothing; name at least one"]
        );
    }
}
