use pointsman::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(type = "file.moved", key = "file:{folder}/{number:04}", sub = "page:{page}", priority = 9000)]
struct FileMoved {
    folder: String,
    number: u32,
    page: u8,
}

#[derive(Event, Serialize, Deserialize)]
#[event(type = "pair", key = "{0}{{{1}}}")]
struct Pair(u8, String);

#[derive(Event, Serialize, Deserialize)]
#[event(type = "tick")]
struct Tick;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "user.seen", key = self.object_key(), sub = self.device.as_deref())]
struct UserSeen {
    tenant: String,
    user: u64,
    device: Option<String>,
}

impl UserSeen {
    fn object_key(&self) -> String {
        format!("user:{}/{}", self.tenant, self.user)
    }
}

#[derive(Event, Serialize, Deserialize)]
#[event(type = "settings.changed", key = "settings")]
struct SettingsChanged<T: Send + Sync + 'static>
where
    T: Serialize + serde::de::DeserializeOwned,
{
    #[serde(bound = "")]
    to: T,
}

#[test]
fn key_templates_are_filled_from_fields() {
    let moved = FileMoved { folder: "a".into(), number: 7, page: 2 };
    assert_eq!(FileMoved::TYPE, "file.moved");
    assert_eq!(FileMoved::PRIORITY, Some(9000));
    assert_eq!(moved.key().as_deref(), Some("file:a/0007"));
    assert_eq!(moved.sub().as_deref(), Some("page:2"));
    assert_eq!(Pair(1, "x".into()).key().as_deref(), Some("1{x}"));
}

#[test]
fn key_expressions_may_return_none() {
    let user_seen = |device| UserSeen { tenant: "t".into(), user: 5, device };
    assert_eq!(user_seen(None).key().as_deref(), Some("user:t/5"));
    assert_eq!(user_seen(None).sub(), None);
    assert_eq!(user_seen(Some("phone".into())).sub().as_deref(), Some("phone"));
}

#[test]
fn omitted_attributes_have_no_value() {
    assert_eq!((Tick::TYPE, Tick::PRIORITY, Tick.key(), Tick.sub()), ("tick", None, None, None));
    assert_eq!(SettingsChanged { to: 1 }.key().as_deref(), Some("settings"));
}
