//! Finds the server that has the keys of the store.

use std::collections::HashMap;

use redis::{Connection, RedisConnectionInfo, RedisError, Value, from_redis_value};

use super::handshake::{Handshake, ServerKind};
use super::slot::key_slot;
use super::{DiscoveryMode, Endpoint, Login, ServerAddress};
use crate::error::{OpenError, error_reason};

impl Endpoint {
    /// Returns the current address of the server that has the keys of the store.
    pub(crate) fn resolve(&self) -> Result<ServerAddress, OpenError> {
        self.find_and_connect().map(|(master, _)| master)
    }

    /// Finds the server that has the keys of the store, and connects to it. A sentinel or cluster node may be down or name a
    /// former master: then the next host is queried.
    pub(super) fn find_and_connect(&self) -> Result<(ServerAddress, Connection), OpenError> {
        let (mut tried, mut errors) = (Vec::new(), Vec::new());
        for host in &self.hosts {
            match self.query_server_address(host) {
                Ok(master) if tried.contains(&master) => {}
                Ok(master) => match self.connect_and_check(&master) {
                    Ok(connection) => return Ok((master, connection)),
                    Err(error) => {
                        errors.push(error);
                        tried.push(master);
                    }
                },
                Err(error) => errors.push(error),
            }
        }
        Err(self.most_helpful_error(errors))
    }

    /// Returns the server that each host of the URL names; `None` if the URL names the server itself, without failover.
    pub(crate) async fn resolve_each_host(&self) -> Option<Vec<Result<ServerAddress, OpenError>>> {
        if !self.has_failover() {
            return None;
        }
        let endpoint = self.clone();
        let query_all =
            move || endpoint.hosts.iter().map(|host| endpoint.query_server_address(host)).collect();
        tokio::task::spawn_blocking(query_all).await.ok()
    }

    /// Queries one host of the URL for the address of the server.
    fn query_server_address(&self, host: &ServerAddress) -> Result<ServerAddress, OpenError> {
        match &self.mode {
            DiscoveryMode::Single => Ok(host.clone()),
            DiscoveryMode::Sentinel { master, login } => {
                self.query_sentinel_for_master(host, master, login.as_ref())
            }
            DiscoveryMode::Cluster => self.query_node_for_slot_owner(host),
        }
    }

    fn query_sentinel_for_master(
        &self,
        host: &ServerAddress,
        name: &str,
        login: Option<&Login>,
    ) -> Result<ServerAddress, OpenError> {
        let mut sentinel = self.connect_and_log_in(host, login)?;
        let handshake = Handshake::new(self, host, login);
        let reply = redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query(&mut sentinel);
        if reply.as_ref().is_err_and(is_unknown_command_error) {
            return Err(handshake.wrong_kind_error(ServerKind::Standalone));
        }
        let found: Option<(String, u16)> = handshake.decode_reply(reply)?;
        let Some((master, port)) = found else {
            let reply = redis::cmd("SENTINEL").arg("MASTERS").query(&mut sentinel);
            let masters: Vec<HashMap<String, String>> = handshake.decode_reply(reply)?;
            let mut names: Vec<String> =
                masters.into_iter().filter_map(|mut master| master.remove("name")).collect();
            names.sort();
            return Err(OpenError::UnknownMaster {
                address: host.to_string(),
                name: name.into(),
                known_masters: names.join(", "),
            });
        };
        Ok(ServerAddress { host: master, port })
    }

    fn query_node_for_slot_owner(&self, host: &ServerAddress) -> Result<ServerAddress, OpenError> {
        let mut node = self.connect_and_log_in(host, self.login.as_ref())?;
        let handshake = Handshake::new(self, host, self.login.as_ref());
        let reply = redis::cmd("CLUSTER").arg("SLOTS").query(&mut node);
        if reply.as_ref().is_err_and(is_unknown_command_error) {
            return Err(handshake.wrong_kind_error(ServerKind::Sentinel));
        }
        if reply.as_ref().is_err_and(|error| error_reason(error).contains("cluster support disabled")) {
            return Err(handshake.wrong_kind_error(ServerKind::Standalone));
        }
        let (ranges, our_slot): (Vec<Vec<Value>>, u16) =
            (handshake.decode_reply(reply)?, key_slot(&self.key_prefix));
        find_slot_owner(ranges, our_slot, host)
            .ok_or_else(|| OpenError::SlotNotServed { address: host.to_string(), slot: our_slot })
    }

    /// Connects to a server and checks that it is suitable.
    fn connect_and_check(&self, master: &ServerAddress) -> Result<Connection, OpenError> {
        let mut connection = self.connect_and_log_in(master, self.login.as_ref())?;
        let handshake = Handshake::new(self, master, self.login.as_ref());
        handshake.check_server(handshake.inspect_and_setup_commands().query(&mut connection))?;
        Ok(connection)
    }

    /// Opens a connection and logs in.
    fn connect_and_log_in(
        &self,
        host: &ServerAddress,
        login: Option<&Login>,
    ) -> Result<Connection, OpenError> {
        let handshake = Handshake::new(self, host, login);
        let client = self.build_client(host, RedisConnectionInfo::default().set_skip_set_lib_name())?;
        let connect_timeout = Some(self.connect_timeout);
        let opened = client.get_connection_with_timeout(self.connect_timeout).and_then(|connection| {
            connection.set_read_timeout(connect_timeout)?;
            connection.set_write_timeout(connect_timeout)?;
            Ok(connection)
        });
        let mut connection = opened.map_err(|error| handshake.open_error_from(&error))?;
        handshake.check_login_reply(handshake.login_or_ping_command().query(&mut connection))?;
        Ok(connection)
    }

    /// Returns the most helpful of several errors: the first reply of a server, or, if no host replied, all reasons.
    fn most_helpful_error(&self, mut errors: Vec<OpenError>) -> OpenError {
        let informative = errors.iter().position(|error| !matches!(error, OpenError::Unreachable { .. }));
        match (informative, errors.len()) {
            (Some(index), _) => errors.swap_remove(index),
            (None, 1) => errors.swap_remove(0),
            (None, _) => {
                let each = errors.iter().filter_map(|error| match error {
                    OpenError::Unreachable { address: at, reason } => Some(format!("{at}: {reason}")),
                    _ => None,
                });
                OpenError::Unreachable {
                    address: self.display_location(),
                    reason: each.collect::<Vec<_>>().join(", "),
                }
            }
        }
    }
}

fn is_unknown_command_error(error: &RedisError) -> bool {
    error_reason(error).starts_with("ERR unknown command")
}

/// Finds the owner of a slot in the reply of `CLUSTER SLOTS`: first and last slot, master and replicas of each range.
fn find_slot_owner(ranges: Vec<Vec<Value>>, slot: u16, queried: &ServerAddress) -> Option<ServerAddress> {
    ranges.into_iter().find_map(|range| {
        let mut range = range.into_iter();
        let (first, last): (u16, u16) =
            (from_redis_value(range.next()?).ok()?, from_redis_value(range.next()?).ok()?);
        let node = range.next().filter(|_| (first..=last).contains(&slot))?;
        let mut node = from_redis_value::<Vec<Value>>(node).ok()?.into_iter();
        let host: Option<String> = from_redis_value(node.next()?).ok()?;
        // A node that does not announce its address is reachable at the queried address.
        let host =
            host.filter(|host| !host.is_empty() && host != "?").unwrap_or_else(|| queried.host.clone());
        Some(ServerAddress { host, port: from_redis_value(node.next()?).ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot_range_reply(first: i64, last: i64, host: Value) -> Vec<Value> {
        let node = |host, port| Value::Array(vec![host, Value::Int(port), Value::SimpleString("id".into())]);
        let replica = Value::BulkString(b"10.0.0.9".to_vec());
        vec![Value::Int(first), Value::Int(last), node(host, 7000 + first % 10), node(replica, 7009)]
    }

    fn bulk_string(host: &str) -> Value {
        Value::BulkString(host.as_bytes().to_vec())
    }

    #[test]
    fn slot_owner_is_found_by_its_range() {
        let queried = ServerAddress { host: "queried".into(), port: 6379 };
        let ranges = vec![
            slot_range_reply(0, 5460, bulk_string("10.0.0.1")),
            slot_range_reply(5461, 10_922, bulk_string("node2.example")),
            slot_range_reply(10_923, 12_000, bulk_string("")),
            slot_range_reply(12_002, 13_000, Value::Nil),
            slot_range_reply(13_001, 16_383, bulk_string("?")),
        ];
        let found = |slot| find_slot_owner(ranges.clone(), slot, &queried).map(|address| address.to_string());
        assert_eq!(found(0).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(found(5460).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(found(6572).as_deref(), Some("node2.example:7001"));
        for unannounced in [11_000, 12_500, 16_383] {
            assert!(
                found(unannounced).is_some_and(|address| address.starts_with("queried:")),
                "{unannounced}"
            );
        }
        assert_eq!(found(12_001), None, "no node has it");
    }
}
