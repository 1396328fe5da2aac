//! `tenants`: whose tasks get how large a share of the turns. Tenants that are not named here share evenly.

use std::collections::BTreeMap;

use pointsman_core::{Tenant, Weight};

use super::decode::{Fields, Keys, entries};
use super::fault::Findings;
use super::limits;
use super::yaml::Node;

pub(super) const KEYS: Keys = Keys { of: "a tenant", known: &["weight"], later: &[] };

pub(super) fn read(node: &Node, findings: &mut Findings) -> BTreeMap<Tenant, Weight> {
    let mut tenants = BTreeMap::new();
    for entry in entries(node, "`tenants`", findings).unwrap_or_default() {
        let name = Tenant::new(&entry.key).map_err(|error| findings.fault(&entry.at, error.to_string())).ok();
        let Some(fields) = Fields::open(&entry.value, &KEYS, findings) else { continue };
        let weight = limits::weight(&fields, findings);
        tenants.extend(name.map(|name| (name, weight)));
    }
    tenants
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn all(node: &Node, findings: &mut Findings) -> Option<BTreeMap<Tenant, Weight>> {
        Some(read(node, findings))
    }

    #[test]
    fn a_tenant_has_a_share() {
        let tenants = read_text("shop: {weight: 3}\nother:\n", all).unwrap();
        let told: Vec<(&str, u16)> = tenants.iter().map(|(t, weight)| (t.as_str(), weight.get())).collect();
        assert_eq!(told, [("other", 1), ("shop", 3)]);
    }

    #[test]
    fn every_fault_is_told() {
        assert_eq!(
            faults_of("a b: {weight: 1}\nshop: {weight: 0}\nlab: {wieght: 2}\nx: 3\n", all),
            [
                "\"a b\" contains ' '; a tenant is made of letters, digits, `.`, `_` and `-`",
                "0 is too small; the least is 1",
                "unknown setting \"wieght\" of a tenant; did you mean `weight`?",
                "a tenant must be a map, not a plain value",
            ]
        );
    }
}
