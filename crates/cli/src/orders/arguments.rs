//! The arguments that name an order in a suggested command.

use pointsman_api::client::TenantOrderKey;

/// The order's key, and `--tenant` if it was given.
pub(crate) fn order_arguments(order: &TenantOrderKey) -> String {
    format!("{}{}", order.key, tenant_argument(order))
}

/// ` --tenant NAME` if a tenant was given, else empty.
pub(super) fn tenant_argument(order: &TenantOrderKey) -> String {
    order.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default()
}
