//! Events that nobody looks at.

use std::collections::HashSet;

use pointsman_store::finding::Finding;
use redis::RedisResult;

use super::work::{LOOKED_THROUGH, PAGE, is_of_another_type, listed};
use super::{Checked, Doctor, escaped};
use crate::keys::Keys;
use crate::outbox::stray::{FORM, NAMED, Objects, object_of, put_in_line, questions};

type Line = HashSet<Vec<u8>>;

impl Doctor {
    pub(super) async fn strays(&self) -> Checked {
        let strays = match self.find_strays().await {
            // That is told already.
            Err(error) if is_of_another_type(&error) => return Ok(vec![]),
            strays => strays?,
        };
        if strays.is_empty() {
            return Ok(vec![Finding::ok("not in line", "no events")]);
        }
        let (call, keys) = (self.endpoint.redis_cli().await, Keys::new(self.endpoint.prefix()));
        Ok(vec![judge(&strays, &put_in_line(&call, &keys, &strays))])
    }

    async fn find_strays(&self) -> RedisResult<Objects> {
        let found = self.scan_for_strays(&self.names_in_line().await?).await?;
        match found.is_empty() {
            true => Ok(found),
            // They may have been put in line meanwhile, or taken out of it.
            false => self.stray_of(&found, &self.names_in_line().await?).await,
        }
    }

    async fn names_in_line(&self) -> RedisResult<Line> {
        let (keys, mut connection) = (Keys::new(self.endpoint.prefix()), self.connection());
        let mut names = Line::new();
        for first in (0..LOOKED_THROUGH).step_by(PAGE) {
            let mut range = redis::cmd("LRANGE");
            range.arg(keys.with_prefix("objects.with.events")).arg(first).arg(first + PAGE - 1);
            let page: Vec<Vec<u8>> = range.query_async(&mut connection).await?;
            let is_last = page.len() < PAGE;
            names.extend(page);
            if is_last {
                break;
            }
        }
        Ok(names)
    }

    async fn scan_for_strays(&self, line: &Line) -> RedisResult<Objects> {
        let (keys, mut connection) = (Keys::new(self.endpoint.prefix()), self.connection());
        let pattern = format!("{}{FORM}", escaped(self.endpoint.prefix()));
        let (mut cursor, mut looked_at, mut found) = (0_u64, 0, Objects::new());
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
            let objects = page.iter().filter_map(|key| object_of(keys.without_prefix(key)?)).collect();
            found.append(&mut self.stray_of(&objects, line).await?);
            (cursor, looked_at) = (next, looked_at + PAGE);
            if cursor == 0 || looked_at >= LOOKED_THROUGH {
                return Ok(found);
            }
        }
    }

    /// Those of some objects that are not in line, and have events that nobody looks at.
    async fn stray_of(&self, objects: &Objects, line: &Line) -> RedisResult<Objects> {
        let keys = Keys::new(self.endpoint.prefix());
        let outside = objects.iter().filter(|object| !line.contains(*object)).cloned().collect();
        let mut stray = Objects::new();
        for args in questions(&keys, &outside) {
            let mut ask = redis::Cmd::new();
            ask.arg(args);
            stray.extend(ask.query_async::<Vec<Vec<u8>>>(&mut self.connection()).await?);
        }
        Ok(stray)
    }
}

fn judge(strays: &Objects, command: &str) -> Finding {
    let names: Vec<String> = strays.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let count = match names.len() {
        1 => "1 object has events that no node looks at".into(),
        count => format!("{count} objects have events that no node looks at"),
    };
    let again = if names.len() > NAMED { ", and look again" } else { "" };
    Finding::warning("not in line", listed(&count, &names)).advise(format!(
        "Whoever pushes events pushes the object's name to objects.with.events, too. If these are Pointsman's, do that \
         for them{again}: {command}"
    ))
}
