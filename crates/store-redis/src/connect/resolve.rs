//! Finds the server that has our keys.

use std::collections::HashMap;

use redis::{Connection, RedisConnectionInfo, RedisError, Value, from_redis_value};

use super::handshake::{Handshake, ServerKind};
use super::slot::key_slot;
use super::{DiscoveryMode, Endpoint, Login, ServerAddress};
use crate::error::{OpenError, error_reason};

impl Endpoint {
    /// Returns the current address of the server that has our keys.
    pub(crate) fn resolve(&self) -> Result<ServerAddress, OpenError> {
        self.find_server().map(|(master, _)| master)
    }

    /// Finds the server that has our keys and connects to it. Sentinels and nodes may be down, or name a former
    /// master: then the next host is asked.
    pub(super) fn find_server(&self) -> Result<(ServerAddress, Connection), OpenError> {
        let (mut tried, mut troubles) = (Vec::new(), Vec::new());
        for host in &self.hosts {
            match self.ask_for_server(host) {
                Ok(master) if tried.contains(&master) => {}
                Ok(master) => match self.connect_and_check(&master) {
                    Ok(connection) => return Ok((master, connection)),
                    Err(trouble) => {
                        troubles.push(trouble);
                        tried.push(master);
                    }
                },
                Err(trouble) => troubles.push(trouble),
            }
        }
        Err(self.most_helpful_error(troubles))
    }

    /// Returns the server that each host of the URL names; `None` if the URL names the server itself.
    pub(crate) async fn resolve_each_host(&self) -> Option<Vec<Result<ServerAddress, OpenError>>> {
        if !self.has_failover() {
            return None;
        }
        let endpoint = self.clone();
        let ask_all = move || endpoint.hosts.iter().map(|host| endpoint.ask_for_server(host)).collect();
        tokio::task::spawn_blocking(ask_all).await.ok()
    }

    /// Asks one host of the URL for the address of the server.
    fn ask_for_server(&self, host: &ServerAddress) -> Result<ServerAddress, OpenError> {
        match &self.mode {
            DiscoveryMode::Single => Ok(host.clone()),
            DiscoveryMode::Sentinel { master, login } => self.ask_sentinel(host, master, login.as_ref()),
            DiscoveryMode::Cluster => self.ask_cluster_node(host),
        }
    }

    fn ask_sentinel(
        &self,
        host: &ServerAddress,
        name: &str,
        login: Option<&Login>,
    ) -> Result<ServerAddress, OpenError> {
        let mut sentinel = self.connect_and_log_in(host, login)?;
        let handshake = Handshake::new(self, host, login);
        let asked = redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query(&mut sentinel);
        if asked.as_ref().is_err_and(is_unknown_command) {
            return Err(handshake.wrong_kind_error(ServerKind::Standalone));
        }
        let found: Option<(String, u16)> = handshake.decode_reply(asked)?;
        let Some((master, port)) = found else {
            let known = redis::cmd("SENTINEL").arg("MASTERS").query(&mut sentinel);
            let known: Vec<HashMap<String, String>> = handshake.decode_reply(known)?;
            let mut known: Vec<String> =
                known.into_iter().filter_map(|mut master| master.remove("name")).collect();
            known.sort();
            return Err(OpenError::UnknownMaster {
                address: host.to_string(),
                name: name.into(),
                known_masters: known.join(", "),
            });
        };
        Ok(ServerAddress { host: master, port })
    }

    fn ask_cluster_node(&self, host: &ServerAddress) -> Result<ServerAddress, OpenError> {
        let mut node = self.connect_and_log_in(host, self.login.as_ref())?;
        let handshake = Handshake::new(self, host, self.login.as_ref());
        let asked = redis::cmd("CLUSTER").arg("SLOTS").query(&mut node);
        if asked.as_ref().is_err_and(is_unknown_command) {
            return Err(handshake.wrong_kind_error(ServerKind::Sentinel));
        }
        if asked.as_ref().is_err_and(|error| error_reason(error).contains("cluster support disabled")) {
            return Err(handshake.wrong_kind_error(ServerKind::Standalone));
        }
        let (slots, ours): (Vec<Vec<Value>>, u16) = (handshake.decode_reply(asked)?, key_slot(&self.prefix));
        slot_owner(slots, ours, host)
            .ok_or_else(|| OpenError::SlotNotServed { address: host.to_string(), slot: ours })
    }

    /// Connects to a server and checks that it is suitable.
    fn connect_and_check(&self, master: &ServerAddress) -> Result<Connection, OpenError> {
        let mut connection = self.connect_and_log_in(master, self.login.as_ref())?;
        let handshake = Handshake::new(self, master, self.login.as_ref());
        handshake.check_server(handshake.setup_commands().query(&mut connection))?;
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
        handshake.check_login_reply(handshake.login_command().query(&mut connection))?;
        Ok(connection)
    }

    /// Returns the most helpful of several errors: rather the reply of a server than that another did not reply.
    fn most_helpful_error(&self, mut troubles: Vec<OpenError>) -> OpenError {
        let said = troubles.iter().position(|trouble| !matches!(trouble, OpenError::Unreachable { .. }));
        match (said, troubles.len()) {
            (Some(said), _) => troubles.swap_remove(said),
            (None, 1) => troubles.swap_remove(0),
            (None, _) => {
                let each = troubles.iter().filter_map(|trouble| match trouble {
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

fn is_unknown_command(error: &RedisError) -> bool {
    error_reason(error).starts_with("ERR unknown command")
}

/// Finds the owner of a slot in the reply of `CLUSTER SLOTS`: first and last slot, master and replicas of each range.
fn slot_owner(ranges: Vec<Vec<Value>>, slot: u16, asked: &ServerAddress) -> Option<ServerAddress> {
    ranges.into_iter().find_map(|range| {
        let mut range = range.into_iter();
        let (first, last): (u16, u16) =
            (from_redis_value(range.next()?).ok()?, from_redis_value(range.next()?).ok()?);
        let node = range.next().filter(|_| (first..=last).contains(&slot))?;
        let mut node = from_redis_value::<Vec<Value>>(node).ok()?.into_iter();
        let host: Option<String> = from_redis_value(node.next()?).ok()?;
        // A node that does not announce its address is reachable where it was asked.
        let host = host.filter(|host| !host.is_empty() && host != "?").unwrap_or_else(|| asked.host.clone());
        Some(ServerAddress { host, port: from_redis_value(node.next()?).ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot_range(first: i64, last: i64, host: Value) -> Vec<Value> {
        let node = |host, port| Value::Array(vec![host, Value::Int(port), Value::SimpleString("id".into())]);
        let replica = Value::BulkString(b"10.0.0.9".to_vec());
        vec![Value::Int(first), Value::Int(last), node(host, 7000 + first % 10), node(replica, 7009)]
    }

    fn bulk_string(host: &str) -> Value {
        Value::BulkString(host.as_bytes().to_vec())
    }

    #[test]
    fn slot_owner_is_found_by_its_range() {
        let asked = ServerAddress { host: "asked".into(), port: 6379 };
        let ranges = vec![
            slot_range(0, 5460, bulk_string("10.0.0.1")),
            slot_range(5461, 10_922, bulk_string("node2.example")),
            slot_range(10_923, 12_000, bulk_string("")),
            slot_range(12_002, 13_000, Value::Nil),
            slot_range(13_001, 16_383, bulk_string("?")),
        ];
        let found = |slot| slot_owner(ranges.clone(), slot, &asked).map(|address| address.to_string());
        assert_eq!(found(0).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(found(5460).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(found(6572).as_deref(), Some("node2.example:7001"));
        for own in [11_000, 12_500, 16_383] {
            assert!(found(own).is_some_and(|address| address.starts_with("asked:")), "{own}");
        }
        assert_eq!(found(12_001), None, "nobody has it");
    }
}
