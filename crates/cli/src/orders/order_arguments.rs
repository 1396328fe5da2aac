//! The arguments that name an order in the command of a hint, such as `pointsman orders resume /publish/article,117`.

use pointsman_api::client::TenantOrderKey;

/// The order's key, and `--tenant` if it was given.
pub(crate) fn format_order_arguments(order: &TenantOrderKey) -> String {
    format!("{}{}", order.key, format_tenant_argument(order))
}

/// ` --tenant NAME` if a tenant was given, else empty.
pub(super) fn format_tenant_argument(order: &TenantOrderKey) -> String {
    order.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default()
}
