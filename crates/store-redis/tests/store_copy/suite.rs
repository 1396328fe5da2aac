//! The conformance suite of copies.

use crate::store_location::StoreLocation;

pointsman_store_conformance::copy_suite!(StoreLocation);
