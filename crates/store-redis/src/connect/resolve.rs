//! Which server has our keys.

use std::collections::HashMap;

use redis::{Connection, RedisConnectionInfo, RedisError, Value, from_redis_value};

use super::greet::{Greeting, Kind};
use super::slot::slot;
use super::{Address, Endpoint, Login, Mode};
use crate::error::{OpenError, reason};

impl Endpoint {
    /// Where the server is now that has our keys.
    pub(crate) fn resolve(&self) -> Result<Address, OpenError> {
        self.find().map(|(master, _)| master)
    }

    /// Finds the server that has our keys, with a connection to it. Sentinels and nodes may be gone, or know of a master
    /// that is none any more: then the next is asked.
    pub(super) fn find(&self) -> Result<(Address, Connection), OpenError> {
        let (mut tried, mut troubles) = (Vec::new(), Vec::new());
        for host in &self.hosts {
            match self.ask(host) {
                Ok(master) if tried.contains(&master) => {}
                Ok(master) => match self.meet(&master) {
                    Ok(connection) => return Ok((master, connection)),
                    Err(trouble) => {
                        troubles.push(trouble);
                        tried.push(master);
                    }
                },
                Err(trouble) => troubles.push(trouble),
            }
        }
        Err(self.most_telling(troubles))
    }

    /// Where each host of the URL leads to; none if it names the server itself.
    pub(crate) async fn lead_where(&self) -> Option<Vec<Result<Address, OpenError>>> {
        if !self.fails_over() {
            return None;
        }
        let endpoint = self.clone();
        let ask_all = move || endpoint.hosts.iter().map(|host| endpoint.ask(host)).collect();
        tokio::task::spawn_blocking(ask_all).await.ok()
    }

    /// Asks one of the hosts of the URL which server it is.
    fn ask(&self, host: &Address) -> Result<Address, OpenError> {
        match &self.mode {
            Mode::Single => Ok(host.clone()),
            Mode::Sentinel { master, login } => self.ask_sentinel(host, master, login.as_ref()),
            Mode::Cluster => self.ask_node(host),
        }
    }

    fn ask_sentinel(&self, host: &Address, name: &str, login: Option<&Login>) -> Result<Address, OpenError> {
        let mut sentinel = self.open(host, login)?;
        let greeting = Greeting::new(self, host, login);
        let asked = redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query(&mut sentinel);
        if asked.as_ref().is_err_and(is_unknown) {
            return Err(greeting.is_other(Kind::Alone));
        }
        let found: Option<(String, u16)> = greeting.read(asked)?;
        let Some((master, port)) = found else {
            let known = redis::cmd("SENTINEL").arg("MASTERS").query(&mut sentinel);
            let known: Vec<HashMap<String, String>> = greeting.read(known)?;
            let mut known: Vec<String> =
                known.into_iter().filter_map(|mut master| master.remove("name")).collect();
            known.sort();
            return Err(OpenError::NoMaster {
                at: host.to_string(),
                name: name.into(),
                known: known.join(", "),
            });
        };
        Ok(Address { host: master, port })
    }

    fn ask_node(&self, host: &Address) -> Result<Address, OpenError> {
        let mut node = self.open(host, self.login.as_ref())?;
        let greeting = Greeting::new(self, host, self.login.as_ref());
        let asked = redis::cmd("CLUSTER").arg("SLOTS").query(&mut node);
        if asked.as_ref().is_err_and(is_unknown) {
            return Err(greeting.is_other(Kind::Sentinel));
        }
        if asked.as_ref().is_err_and(|error| reason(error).contains("cluster support disabled")) {
            return Err(greeting.is_other(Kind::Alone));
        }
        let (slots, ours): (Vec<Vec<Value>>, u16) = (greeting.read(asked)?, slot(&self.prefix));
        owner(slots, ours, host).ok_or_else(|| OpenError::NotServed { at: host.to_string(), slot: ours })
    }

    /// Connects to the server that should be it, and sees whether it is.
    fn meet(&self, master: &Address) -> Result<Connection, OpenError> {
        let mut connection = self.open(master, self.login.as_ref())?;
        let greeting = Greeting::new(self, master, self.login.as_ref());
        greeting.is_fit(greeting.questions().query(&mut connection))?;
        Ok(connection)
    }

    /// Opens a connection and logs in.
    fn open(&self, host: &Address, login: Option<&Login>) -> Result<Connection, OpenError> {
        let greeting = Greeting::new(self, host, login);
        let client = self.client(host, RedisConnectionInfo::default().set_skip_set_lib_name())?;
        let patience = Some(self.patience);
        let opened = client.get_connection_with_timeout(self.patience).and_then(|connection| {
            connection.set_read_timeout(patience)?;
            connection.set_write_timeout(patience)?;
            Ok(connection)
        });
        let mut connection = opened.map_err(|error| greeting.explain(&error))?;
        greeting.is_let_in(greeting.login().query(&mut connection))?;
        Ok(connection)
    }

    /// Of what was met on the way, what helps most: rather what a server said than that another did not answer.
    fn most_telling(&self, mut troubles: Vec<OpenError>) -> OpenError {
        let said = troubles.iter().position(|trouble| !matches!(trouble, OpenError::Unreachable { .. }));
        match (said, troubles.len()) {
            (Some(said), _) => troubles.swap_remove(said),
            (None, 1) => troubles.swap_remove(0),
            (None, _) => {
                let each = troubles.iter().filter_map(|trouble| match trouble {
                    OpenError::Unreachable { at, reason } => Some(format!("{at}: {reason}")),
                    _ => None,
                });
                OpenError::Unreachable { at: self.place(), reason: each.collect::<Vec<_>>().join(", ") }
            }
        }
    }
}

fn is_unknown(error: &RedisError) -> bool {
    reason(error).starts_with("ERR unknown command")
}

/// Who has a slot, by what `CLUSTER SLOTS` answers: for each range its first and last slot, its master, its replicas.
fn owner(ranges: Vec<Vec<Value>>, slot: u16, asked: &Address) -> Option<Address> {
    ranges.into_iter().find_map(|range| {
        let mut range = range.into_iter();
        let (first, last): (u16, u16) =
            (from_redis_value(range.next()?).ok()?, from_redis_value(range.next()?).ok()?);
        let node = range.next().filter(|_| (first..=last).contains(&slot))?;
        let mut node = from_redis_value::<Vec<Value>>(node).ok()?.into_iter();
        let host: Option<String> = from_redis_value(node.next()?).ok()?;
        // A node that does not know its own name, or is told not to tell it, is where it was asked.
        let host = host.filter(|host| !host.is_empty() && host != "?").unwrap_or_else(|| asked.host.clone());
        Some(Address { host, port: from_redis_value(node.next()?).ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, host: Value) -> Vec<Value> {
        let node = |host, port| Value::Array(vec![host, Value::Int(port), Value::SimpleString("id".into())]);
        let replica = Value::BulkString(b"10.0.0.9".to_vec());
        vec![Value::Int(first), Value::Int(last), node(host, 7000 + first % 10), node(replica, 7009)]
    }

    fn named(host: &str) -> Value {
        Value::BulkString(host.as_bytes().to_vec())
    }

    #[test]
    fn the_master_of_a_slot_is_found_by_its_range() {
        let asked = Address { host: "asked".into(), port: 6379 };
        let ranges = vec![
            range(0, 5460, named("10.0.0.1")),
            range(5461, 10_922, named("node2.example")),
            range(10_923, 12_000, named("")),
            range(12_002, 13_000, Value::Nil),
            range(13_001, 16_383, named("?")),
        ];
        let found = |slot| owner(ranges.clone(), slot, &asked).map(|address| address.to_string());
        assert_eq!(found(0).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(found(5460).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(found(6572).as_deref(), Some("node2.example:7001"));
        for own in [11_000, 12_500, 16_383] {
            assert!(found(own).is_some_and(|address| address.starts_with("asked:")), "{own}");
        }
        assert_eq!(found(12_001), None, "nobody has it");
    }
}
