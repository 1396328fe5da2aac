//! Runs the conformance suite of store copies.

use crate::store_location::TestStoreLocation;

pointsman_store_conformance::copy_suite!(TestStoreLocation);
