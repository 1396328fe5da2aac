//! An order as the command line names it.

use pointsman_api::client::OrderName;

/// The arguments that name an order in a suggested command: its key, and `--tenant` where it was given.
pub(crate) fn words(order: &OrderName) -> String {
    format!("{}{}", order.key, tenant_words(order))
}

/// ` --tenant NAME` where a tenant was given; nothing otherwise.
pub(super) fn tenant_words(order: &OrderName) -> String {
    order.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default()
}
