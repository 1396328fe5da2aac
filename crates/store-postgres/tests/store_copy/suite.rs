//! Runs the conformance suite of store copies.

use crate::store_location::StoreLocation;

pointsman_store_conformance::transfers!(StoreLocation);
