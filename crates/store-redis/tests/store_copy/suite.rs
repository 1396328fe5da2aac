//! What holds for moves to any store and from there.

use crate::store_location::StoreLocation;

pointsman_store_conformance::copy_suite!(StoreLocation);
