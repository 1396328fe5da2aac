//! The conformance suite of copies.

use crate::store_location::TestStoreLocation;

pointsman_store_conformance::copy_suite!(TestStoreLocation);
