//! Reads the section `tenants`: the weight of each tenant in the weighted round robin. Other tenants have weight 1.

use std::collections::BTreeMap;

use pointsman_core::{Tenant, Weight};

use super::decode::{AllowedKeys, CheckedMap, read_map_entries};
use super::fault::Findings;
use super::handler_limits;
use super::yaml::YamlNode;

pub(super) const TENANT_KEYS: AllowedKeys =
    AllowedKeys { described_thing: "a tenant", names: &["weight"], not_yet_supported: &[] };

pub(super) fn read_tenants(node: &YamlNode, findings: &mut Findings) -> BTreeMap<Tenant, Weight> {
    let mut tenants = BTreeMap::new();
    for entry in read_map_entries(node, "`tenants`", findings).unwrap_or_default() {
        let name = Tenant::new(&entry.key)
            .map_err(|error| findings.add_fault(&entry.key_location, error.to_string()))
            .ok();
        let Some(fields) = CheckedMap::from_node_with_known_keys(&entry.value, &TENANT_KEYS, findings) else {
            continue;
        };
        let weight = handler_limits::read_weight(&fields, findings);
        tenants.extend(name.map(|name| (name, weight)));
    }
    tenants
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn read_all_tenants(node: &YamlNode, findings: &mut Findings) -> Option<BTreeMap<Tenant, Weight>> {
        Some(read_tenants(node, findings))
    }

    #[test]
    fn tenant_weights_are_read_and_default_to_one() {
        let tenants = read_value_from_yaml("shop: {weight: 3}\nother:\n", read_all_tenants).unwrap();
        let weights: Vec<(&str, u16)> =
            tenants.iter().map(|(t, weight)| (t.as_str(), weight.get())).collect();
        assert_eq!(weights, [("other", 1), ("shop", 3)]);
    }

    #[test]
    fn every_fault_of_a_tenant_is_reported() {
        assert_eq!(
            fault_messages("a b: {weight: 1}\nshop: {weight: 0}\nlab: {wieght: 2}\nx: 3\n", read_all_tenants),
            [
                "\"a b\" contains ' '; a tenant is made of letters, digits, `.`, `_` and `-`",
                "0 is too small; the least is 1",
                "unknown setting \"wieght\" of a tenant; did you mean `weight`?",
                "a tenant must be a map, not a plain value",
            ]
        );
    }
}
