//! The JSON reply of a target: whether it consists of effects.

use std::collections::BTreeMap;

use pointsman_core::event_json_parser::JsonError;
use pointsman_core::{Tenant, Timestamp};
use serde_json::value::RawValue;

use super::super::effects::Effects;

const EFFECTS_MEMBER_NAMES: [&str; 5] = ["emit", "log", "retry", "result", "snooze"];

/// Whether a reply consists of effects.
#[derive(Debug, PartialEq)]
pub(super) enum ReplyKind {
    Effects(Effects),
    /// The reply is no JSON object, or an object without members of effects. It is ignored.
    WithoutEffects,
    /// The reply has members of effects, but also this other member. An endpoint that was not written for Pointsman may
    /// have a `result` of its own.
    Ambiguous(String),
}

/// Parses the JSON body of an HTTP reply to a delivery of this tenant.
pub(super) fn parse_reply(text: &str, tenant: &Tenant, now: Timestamp) -> Result<ReplyKind, JsonError> {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text) else {
        return Ok(ReplyKind::WithoutEffects);
    };
    if !EFFECTS_MEMBER_NAMES.iter().any(|name| members.contains_key(*name)) {
        return Ok(ReplyKind::WithoutEffects);
    }
    match members.keys().find(|name| !EFFECTS_MEMBER_NAMES.contains(&name.as_str())) {
        // A reply with `emit` is meant as effects: if another member is misspelt, the reply is invalid, so that its
        // events are not ignored.
        Some(unknown) if !members.contains_key("emit") => Ok(ReplyKind::Ambiguous(unknown.clone())),
        _ => {
            let mut effects = Effects::default();
            effects.add_json(text, tenant, now)?;
            Ok(ReplyKind::Effects(effects))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_counts_as_effects_only_if_its_members_match() {
        let tenant = Tenant::new("shop").unwrap();
        let parse = |text: &str| parse_reply(text, &tenant, Timestamp::from_millis(1_000_000));
        for foreign in ["[]", "1", "{", r#"{"ok":true}"#, "{}"] {
            assert_eq!(parse(foreign).unwrap(), ReplyKind::WithoutEffects, "{foreign}");
        }
        assert!(matches!(
            parse(r#"{"retry":false}"#).unwrap(),
            ReplyKind::Effects(Effects { no_retry: true, .. })
        ));
        assert_eq!(parse(r#"{"result":"ok","id":5}"#).unwrap(), ReplyKind::Ambiguous("id".into()));
        assert!(parse(r#"{"emit":[],"lgo":[]}"#).unwrap_err().detail.contains("`lgo`"));
        assert!(parse(r#"{"emit":[{}]}"#).is_err());
    }
}
