//! The keys of a store as seen by a client that knows only documents 001 and 002.

use pointsman_testing::{
    RedisAdmin, RedisConnection, RedisReply, RedisServer, shared_redis, unique_key_prefix,
};

/// A server and the key prefix of a store.
#[derive(Clone, Debug)]
pub(crate) struct RedisLocation {
    pub(crate) admin: RedisAdmin,
    pub(crate) prefix: String,
    pub(crate) url: String,
}

impl RedisLocation {
    /// Returns a location with a new prefix on the server that all tests share.
    pub(crate) fn on_shared_server() -> Self {
        let (admin, prefix) = (shared_redis().unwrap().clone(), unique_key_prefix());
        let url = admin.url_with_prefix(&prefix);
        Self { admin, prefix, url }
    }

    /// Returns the location of a store without a key prefix on a server.
    pub(crate) fn on_server_without_prefix(server: &RedisServer) -> Self {
        Self { admin: server.admin().clone(), prefix: String::new(), url: server.url() }
    }

    /// Returns the same keys with another URL.
    pub(crate) fn with_url(&self, url: impl Into<String>) -> Self {
        Self { url: url.into(), ..self.clone() }
    }

    pub(crate) fn connect(&self) -> RawClient {
        self.try_connect().unwrap()
    }

    pub(crate) fn try_connect(&self) -> anyhow::Result<RawClient> {
        Ok(RawClient { connection: self.admin.connect()?, prefix: self.prefix.clone() })
    }
}

/// A client that sends plain commands. An argument that begins with `:` is a key: the prefix of the store replaces the
/// colon.
#[derive(Debug)]
pub(crate) struct RawClient {
    connection: RedisConnection,
    pub(crate) prefix: String,
}

impl RawClient {
    /// Returns a key with the prefix.
    pub(crate) fn prefixed_key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn try_run_command<W: AsRef<[u8]>>(&mut self, args: &[W]) -> anyhow::Result<RedisReply> {
        let add_prefix = |arg: &W| match arg.as_ref().strip_prefix(b":") {
            Some(name) => [self.prefix.as_bytes(), name].concat(),
            None => arg.as_ref().to_vec(),
        };
        let args: Vec<Vec<u8>> = args.iter().map(add_prefix).collect();
        self.connection.run_command(&args)
    }

    pub(crate) fn run_command<W: AsRef<[u8]>>(&mut self, args: &[W]) -> RedisReply {
        self.try_run_command(args).unwrap_or_else(|error| panic!("{error:#}"))
    }

    pub(crate) fn query_integer<W: AsRef<[u8]>>(&mut self, args: &[W]) -> i64 {
        self.run_command(args).number().unwrap()
    }

    pub(crate) fn query_text<W: AsRef<[u8]>>(&mut self, args: &[W]) -> Option<String> {
        self.run_command(args).text()
    }

    pub(crate) fn query_texts<W: AsRef<[u8]>>(&mut self, args: &[W]) -> Vec<String> {
        self.run_command(args).texts()
    }

    /// Pushes events of an object as in document 001: the main event first, then its subevents.
    pub(crate) fn push_events<E: AsRef<[u8]>>(&mut self, object: &str, events: &[E]) {
        self.try_push_events(object, events).unwrap_or_else(|error| panic!("{error:#}"));
    }

    pub(crate) fn try_push_events<E: AsRef<[u8]>>(
        &mut self,
        object: &str,
        events: &[E],
    ) -> anyhow::Result<()> {
        self.try_run_command(&["MULTI"])?;
        self.try_run_command(&["SET", &format!(":{object}:data"), "{}"])?;
        let mut args = vec![b"LPUSH".to_vec(), format!(":{object}:events").into_bytes()];
        args.extend(events.iter().map(|event| event.as_ref().to_vec()));
        self.try_run_command(&args)?;
        // The name of the object gets no prefix, because it is not a key.
        let queue = self.prefixed_key("objects.with.events");
        self.connection.run_command(&["LPUSH", &queue, object])?;
        let reply = self.try_run_command(&["EXEC"])?;
        anyhow::ensure!(reply.list().len() == 3, "EXEC replied {reply:?}");
        Ok(())
    }

    /// Lists the keys that match a pattern, without the prefix and sorted.
    pub(crate) fn list_keys(&mut self, pattern: &str) -> Vec<String> {
        let pattern = self.prefixed_key(pattern);
        let mut keys = self.query_texts(&["KEYS", &pattern]);
        keys.iter_mut().for_each(|key| *key = key[self.prefix.len()..].to_string());
        keys.sort();
        keys
    }

    /// Makes a worker the owner of an object, optionally with an event in flight; without a heartbeat it is dead.
    pub(crate) fn set_object_owner(&mut self, worker: &str, object: &str, in_flight: Option<(&str, &str)>) {
        self.run_command(&["MULTI"]);
        self.run_command(&["SET", &format!(":{object}:event.worker"), worker]);
        self.run_command(&["LPUSH", &format!(":event.worker:{worker}:object"), object]);
        if let Some((event, id)) = in_flight {
            self.run_command(&["LPUSH", &format!(":event.worker:{worker}:event"), event]);
            self.run_command(&["SET", &format!(":event.worker:{worker}:event.id"), id]);
        }
        self.run_command(&["EXEC"]);
    }

    /// Sets a heartbeat that does not expire.
    pub(crate) fn set_worker_heartbeat(&mut self, worker: &str) {
        self.run_command(&["SET", &format!(":event.worker:{worker}:heartbeat"), "1"]);
    }

    pub(crate) fn delete_worker_heartbeat(&mut self, worker: &str) {
        self.run_command(&["DEL", &format!(":event.worker:{worker}:heartbeat")]);
    }
}

/// Returns the JSON of an event as a producer writes it.
pub(crate) fn outbox_event_json(event_type: &str, value: impl std::fmt::Display) -> String {
    format!(r#"{{"type":"{event_type}","value":{value}}}"#)
}
